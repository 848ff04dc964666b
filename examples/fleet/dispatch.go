package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/parley-dev/parley/sdk/client"
	"github.com/parley-dev/parley/sdk/worker"
)

// dispatch is the agent in Go: it plans the way of an order, and votes on what other agents propose.
func dispatch(ctx context.Context, url, key string) error {
	w, err := worker.New(worker.Config{
		URL: url, Agent: "dispatch", Key: key, Capacity: 4, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{URL: url, Key: key})
	if err != nil {
		return err
	}
	voted := make(chan error, 1)
	go func() { voted <- vote(ctx, c) }()
	err = w.Run(ctx, func(ctx context.Context, t *worker.Task) error {
		_, city, ok := strings.Cut(t.Text(), " to ")
		if !ok {
			return t.Fail(ctx, "an order names a city: \"3 kg of tea to Oslo\"")
		}
		return t.Complete(ctx, worker.Text("the van to "+city))
	})
	return errors.Join(err, <-voted)
}

// vote votes for proposals that other agents have filed with evidence.
func vote(ctx context.Context, c *client.Client) error {
	o := client.EventsOptions{FromNow: true, Types: []string{"proposal.submitted"}}
	for e, err := range c.FollowEvents(ctx, o) {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		_, id, _ := strings.Cut(e.Subject, ":")
		if e.Actor == "agent:dispatch" {
			continue
		}
		b := client.Ballot{Vote: client.For, Comment: "Vans wait for orders that a person reads."}
		if _, err := c.Proposals.Vote(ctx, id, b); err != nil {
			return fmt.Errorf("vote on %s: %w", id, err)
		}
		say("%-9s voted for %s", "dispatch", id)
	}
	return nil
}
