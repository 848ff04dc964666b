// Command events prints decisions on proposals as they happen.
//
//	PARLEY_KEY=parley_… go run ./examples/events http://127.0.0.1:8080
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/parley-dev/parley/sdk/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := follow(ctx); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func follow(ctx context.Context) error {
	api, err := client.New(client.Config{URL: os.Args[1], Key: os.Getenv("PARLEY_KEY")})
	if err != nil {
		return err
	}
	decisions := client.EventsOptions{Types: []string{"proposal.approved", "proposal.rejected"}}
	for event, err := range api.FollowEvents(ctx, decisions) {
		if errors.Is(err, client.ErrEventsReset) {
			continue // some events are missing: a mirror of the records would read them again
		}
		if err != nil {
			return err
		}
		fmt.Println(event.Seq, event.Type, event.Subject)
	}
	return nil
}
