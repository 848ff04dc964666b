package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

func Example() {
	ctx := context.Background()
	c, err := client.New(client.Config{URL: server.URL, Key: server.Key})
	if err != nil {
		log.Fatal(err)
	}
	p, err := c.Proposals.Submit(ctx, client.ProposalSubmission{
		Title: "Retry the deploy step", Category: client.Reliability,
		Problem: "It fails on a busy registry.", SuggestedFix: "Retry it three times.",
	})
	if err != nil {
		log.Fatal(err)
	}
	vote, err := c.Proposals.Vote(ctx, p.ID, client.Ballot{Vote: client.For})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Status, vote.VotesFor)
	// Output: open 1
}

// Send a task and wait for its outcome.
func ExampleAgentClient_Send() {
	ctx := context.Background()
	c, err := client.New(client.Config{URL: server.URL, Key: server.Key})
	if err != nil {
		log.Fatal(err)
	}
	task, err := c.Agent("echo").Send(ctx, client.SendParams{
		Message: client.NewMessage(client.Text("Are you there?")),
		Wait:    30 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(task.Status.State, task.Text())
	// Output: completed Are you there?
}

// Follow a task. The stream survives broken connections.
func ExampleAgentClient_Stream() {
	ctx := context.Background()
	c, err := client.New(client.Config{URL: server.URL, Key: server.Key})
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range c.Agent("echo").Stream(ctx,
		client.SendParams{Message: client.NewMessage(client.Text("Hello"))}) {
		if err != nil {
			log.Fatal(err)
		}
		switch {
		case event.Artifact != nil:
			fmt.Println("artifact:", event.Artifact.Text())
		case event.Final:
			fmt.Println("state:", event.Status.State)
		}
	}
	// Output:
	// artifact: Hello
	// state: completed
}

// Iterate over all pages of a list.
func ExampleProposalsService_All() {
	ctx := context.Background()
	c, err := client.New(client.Config{URL: server.URL, Key: server.Key})
	if err != nil {
		log.Fatal(err)
	}
	for i := range 3 {
		_, err := c.Proposals.Submit(ctx, client.ProposalSubmission{
			Title: fmt.Sprint("Iterate ", i), Category: client.Process, Problem: "P", SuggestedFix: "F",
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	n := 0
	for p, err := range c.Proposals.All(ctx, client.ProposalListParams{Query: "iterate", Limit: 2}) {
		if err != nil {
			log.Fatal(err)
		}
		if p.Status == client.ProposalOpen {
			n++
		}
	}
	fmt.Println(n >= 3)
	// Output: true
}

// Follow what happens in the org. The number of the last event is enough to continue later.
func ExampleClient_FollowEvents() {
	ctx := context.Background()
	c, err := client.New(client.Config{URL: server.URL, Key: server.Key})
	if err != nil {
		log.Fatal(err)
	}
	options := client.EventsOptions{Types: []string{"proposal.submitted", "proposal.approved"}}
	for event, err := range c.FollowEvents(ctx, options) {
		switch {
		case errors.Is(err, client.ErrEventsReset):
			fmt.Println("some events are gone; read the proposals again")
			continue
		case err != nil:
			log.Fatal(err)
		}
		var p client.Proposal
		if err := json.Unmarshal(event.Data, &p); err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Seq, event.Type, p.Title)
	}
}

// Read the events about one proposal, and wait for the next one.
func ExampleClient_Events() {
	ctx := context.Background()
	c, err := client.New(client.Config{URL: server.URL, Key: server.Key})
	if err != nil {
		log.Fatal(err)
	}
	options := client.EventsOptions{Subject: "proposal:prop-01k5x8r2m4v7c9w3q6z1t0h8ye", Wait: 30 * time.Second}
	page, err := c.Events(ctx, options)
	if err != nil {
		log.Fatal(err)
	}
	for _, event := range page.Events {
		fmt.Println(event.Time, event.Actor, event.Type)
	}
	options.After = &page.LastSeq // continue here
}

// A refusal says what is wrong with the request.
func ExampleError() {
	ctx := context.Background()
	c, err := client.New(client.Config{URL: server.URL, Key: server.Key})
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Proposals.Submit(ctx, client.ProposalSubmission{Title: "T", Category: client.Process, Problem: "P"})
	var refused *client.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Status, refused.Code)
		for _, f := range refused.Fields {
			fmt.Println(f.Name(), f.Detail)
		}
	}
	// Output:
	// 422 request.invalid
	// suggested_fix is required and must not be blank
}
