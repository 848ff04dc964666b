package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/parley-dev/parley/sdk/worker"
)

// A complete agent.
func Example() {
	ctx, stop := context.WithCancel(context.Background()) // usually signal.NotifyContext
	defer stop()
	os.Setenv("PARLEY_KEY", register("scout"))

	w, err := worker.New(worker.Config{URL: server.URL, Agent: "scout", Key: os.Getenv("PARLEY_KEY")})
	if err != nil {
		panic(err)
	}
	go w.Run(ctx, func(ctx context.Context, t *worker.Task) error {
		return t.Complete(ctx, worker.Text("You said: "+t.Text()))
	})

	fmt.Println(send("scout", "example-1", "Hello"))
	// Output: completed: You said: Hello
}

// An artifact that grows while the sender watches.
func ExampleTask_AppendArtifact() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	w, err := worker.New(worker.Config{URL: server.URL, Agent: "writer", Key: register("writer")})
	if err != nil {
		panic(err)
	}
	go w.Run(ctx, func(ctx context.Context, t *worker.Task) error {
		if err := t.Progress(ctx, "Writing"); err != nil {
			return err
		}
		for _, word := range strings.Fields(t.Text()) {
			chunk := worker.Artifact{ID: "poem", Name: "A poem", Parts: []worker.Part{worker.Text(word + "! ")}}
			if err := t.AppendArtifact(ctx, chunk); err != nil {
				return err
			}
		}
		return nil // completes the task
	})

	fmt.Println(send("writer", "example-1", "Fire Water"))
	// Output: completed: Fire! Water!
}

// A question. The handler returns after it, and is called again with the reply.
func ExampleTask_AskForInput() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	w, err := worker.New(worker.Config{URL: server.URL, Agent: "barista", Key: register("barista")})
	if err != nil {
		panic(err)
	}
	go w.Run(ctx, func(ctx context.Context, t *worker.Task) error {
		if !t.Replied() {
			return t.AskForInput(ctx, "With milk?")
		}
		return t.Complete(ctx, worker.Text(t.History[0].Text()+", with milk: "+t.Text()))
	})

	fmt.Println(send("barista", "example-1", "Coffee"))
	fmt.Println(send("barista", "example-1", "yes"))
	// Output:
	// input-required (With milk?)
	// completed: Coffee, with milk: yes
}

// Work that notices why it has to stop.
func ExampleWorker_Run_cancellation() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	began, ended := make(chan struct{}), make(chan struct{})
	w, err := worker.New(worker.Config{URL: server.URL, Agent: "slow", Key: register("slow"), Capacity: 8})
	if err != nil {
		panic(err)
	}
	go w.Run(ctx, func(ctx context.Context, t *worker.Task) error {
		close(began)
		select {
		case <-time.After(time.Hour):
			return t.Complete(ctx, worker.Text("at last"))
		case <-ctx.Done():
			fmt.Println("canceled:", errors.Is(context.Cause(ctx), worker.ErrCanceled))
			close(ended)
			return ctx.Err()
		}
	})

	go send("slow", "example-1", "Take your time")
	<-began
	call("slow", "tasks/cancel", "example-1", "")
	<-ended
	// Output: canceled: true
}

// Parts of several kinds. MediaType says what a file or a text is.
func ExampleTask_Complete() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	w, err := worker.New(worker.Config{URL: server.URL, Agent: "reporter", Key: register("reporter")})
	if err != nil {
		panic(err)
	}
	go w.Run(ctx, func(ctx context.Context, t *worker.Task) error {
		for _, p := range t.Message.Parts {
			if p.Kind != worker.PartText {
				return t.Reject(ctx, "I read text only")
			}
		}
		return t.Complete(ctx,
			worker.Text("A report for "+t.Sender.ID),
			worker.Data(map[string]int{"rows": 2}),
			worker.File("report.csv", "text/csv", []byte("a,b\n1,2\n")),
		)
	})

	fmt.Println(send("reporter", "example-1", "Report, please"))
	// Output: completed: A report for admin
}

// Follow what happens in the agent's org, beside the tasks.
func ExampleWorker_Events() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	w, err := worker.New(worker.Config{URL: server.URL, Agent: "watcher", Key: os.Getenv("PARLEY_KEY")})
	if err != nil {
		panic(err)
	}
	for event, err := range w.Events(ctx, worker.EventsOptions{Types: []string{"proposal.approved"}}) {
		if err != nil && !errors.Is(err, worker.ErrEventsReset) {
			panic(err)
		}
		fmt.Println(event.Subject, string(event.Data))
	}
}

// A friction is reported each time it happens. The third report files a proposal.
func ExampleTask_Friction() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	w, err := worker.New(worker.Config{URL: server.URL, Agent: "puller", Key: register("puller", "svc:tasks:write")})
	if err != nil {
		panic(err)
	}
	go w.Run(ctx, func(ctx context.Context, t *worker.Task) error {
		count, err := t.Friction(ctx, worker.Friction{
			Fingerprint: "example:slow", Title: "Pulls are slow", Category: "performance", Problem: "A pull takes minutes.",
		})
		if err != nil {
			return err
		}
		return t.Complete(ctx, worker.Text(fmt.Sprint("reported, counted: ", count.Counted)))
	})

	fmt.Println(send("puller", "example-1", "Pull"))
	// Output: completed: reported, counted: true
}
