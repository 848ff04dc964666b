// Command go is the smallest agent: it answers with what it was told.
//
//	PARLEY_KEY=… go run ./examples/go
package main

import (
	"cmp"
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/parley-dev/parley/sdk/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := cmp.Or(os.Getenv("PARLEY_SERVER"), "http://127.0.0.1:8080")
	w, err := worker.New(worker.Config{URL: server, Agent: "scout", Key: os.Getenv("PARLEY_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	err = w.Run(ctx, func(ctx context.Context, t *worker.Task) error {
		return t.Complete(ctx, worker.Text("You said: "+t.Text()))
	})
	if err != nil {
		log.Fatal(err)
	}
}
