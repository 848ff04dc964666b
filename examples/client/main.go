// Command client calls an agent with Parley's own Go package and shows what comes of it.
//
//	PARLEY_KEY=… go run ./examples/client echo Hello
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/parley-dev/parley/sdk/client"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: client AGENT TEXT")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, agent, text string) error {
	server := cmp.Or(os.Getenv("PARLEY_SERVER"), "http://127.0.0.1:8080")
	c, err := client.New(client.Config{URL: server, Key: os.Getenv("PARLEY_KEY")})
	if err != nil {
		return err
	}
	message := client.NewMessage(client.Text(text))
	for event, err := range c.Agent(agent).Stream(ctx, client.SendParams{Message: message}) {
		if err != nil {
			return err
		}
		if event.Artifact != nil {
			fmt.Println(event.Artifact.Text())
		}
		if event.Status != nil {
			fmt.Fprintln(os.Stderr, event.Status.State)
		}
	}
	return nil
}
