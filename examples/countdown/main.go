// Command countdown is an agent that takes its time: it counts down from the number
// it is sent, one a second, and shows what a worker can do on the way: progress, an
// artifact that grows, a question, an end to the work when the sender cancels.
//
//	PARLEY_KEY=… go run ./examples/countdown AGENT
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/parley-dev/parley/sdk/worker"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: countdown AGENT")
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	w, err := worker.New(worker.Config{
		URL:      cmp.Or(os.Getenv("PARLEY_SERVER"), "http://127.0.0.1:8080"),
		Agent:    os.Args[1],
		Key:      os.Getenv("PARLEY_KEY"),
		Capacity: 4,
		Grace:    time.Second,
		OnMessage: func(_ context.Context, m worker.DirectMessage) {
			slog.Info("message", "from", m.From, "text", m.Text())
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx, countdown); err != nil {
		log.Fatal(err)
	}
}

func countdown(ctx context.Context, t *worker.Task) error {
	n, err := strconv.Atoi(strings.TrimSpace(t.Text()))
	if err != nil {
		return t.AskForInput(ctx, "From which number?")
	}
	if n > 3600 {
		return t.Reject(ctx, "I do not count for more than an hour.")
	}
	slog.Info("counting", "task", t.ID, "from", n, "attempt", t.Attempt)
	defer func() {
		if ctx.Err() != nil {
			slog.Info("given up", "task", t.ID, "at", n, "why", context.Cause(ctx))
		}
	}()
	if err := t.Progress(ctx, fmt.Sprintf("Counting down from %d", n)); err != nil {
		return err
	}
	for ; n > 0; n-- {
		if err := t.AppendArtifact(ctx, worker.Artifact{ID: "count", Parts: []worker.Part{worker.Text(fmt.Sprintf("%d ", n))}}); err != nil {
			return err
		}
		select {
		case <-time.After(time.Second):
		case turn, ok := <-t.Turns():
			if !ok {
				return ctx.Err()
			}
			if n, err = strconv.Atoi(strings.TrimSpace(turn.Text())); err != nil {
				return t.Fail(ctx, "That is not a number.")
			}
		}
	}
	return t.AppendArtifact(ctx, worker.Artifact{ID: "count", Parts: []worker.Part{worker.Text("lift-off")}, LastChunk: true})
}
