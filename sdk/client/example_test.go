package client_test

import (
	"context"
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
