// Command driver is the agent of the conformance suite for sdk/worker. ../README.md has the
// contract that the drivers of all SDKs follow.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/parley-dev/parley/sdk/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	out := &journal{lines: json.NewEncoder(os.Stdout)}
	cfg, err := config()
	if err != nil {
		return err
	}
	cfg.OnMessage = func(_ context.Context, m worker.DirectMessage) {
		out.print(line{Event: "message", Text: m.Text()})
	}
	w, err := worker.New(cfg)
	if err != nil {
		return err
	}
	out.print(line{Event: "ready"})
	err = w.Run(ctx, func(ctx context.Context, t *worker.Task) error {
		at := line{Task: t.ID, Attempt: t.Attempt}
		out.print(at.as("start"))
		defer func() { // also after a panic
			at.Reason = reason(ctx)
			if at.Reason != "" {
				out.print(at.as("interrupted"))
			} else {
				out.print(at.as("end"))
			}
		}()
		return obey(ctx, t)
	})
	var refused *worker.Error
	switch {
	case errors.As(err, &refused):
		out.print(line{Event: "refused", Status: refused.Status})
		return err
	case err != nil:
		return err
	}
	out.print(line{Event: "stopped"})
	return nil
}

// config reads the environment.
func config() (worker.Config, error) {
	cfg := worker.Config{
		URL: os.Getenv("PARLEY_SERVER"), Key: os.Getenv("PARLEY_KEY"),
		Agent: os.Getenv("AGENT"), Name: os.Getenv("WORKER"),
	}
	capacity, err := number("CONCURRENCY", 1)
	if err != nil {
		return cfg, err
	}
	lease, err := number("LEASE", 0)
	if err != nil {
		return cfg, err
	}
	grace, err := number("GRACE", -1)
	if err != nil {
		return cfg, err
	}
	cfg.Capacity, cfg.Lease = capacity, time.Duration(lease)*time.Second
	switch {
	case grace == 0:
		cfg.Grace = -1
	case grace > 0:
		cfg.Grace = time.Duration(grace) * time.Millisecond
	}
	return cfg, nil
}

// number returns the value of an environment variable, or missing if it is not set.
func number(name string, missing int) (int, error) {
	value := os.Getenv(name)
	if value == "" {
		return missing, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// line is one line of the output.
type line struct {
	Event   string `json:"event"`
	Task    string `json:"task,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Text    string `json:"text,omitempty"`
	Status  int    `json:"status,omitempty"`
}

func (l line) as(event string) line {
	l.Event = event
	return l
}

// journal prints lines one at a time.
type journal struct {
	mu    sync.Mutex
	lines *json.Encoder
}

func (j *journal) print(l line) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.lines.Encode(l); err != nil {
		panic(err) // the suite reads stdout; without it the driver is of no use
	}
}

// reason returns why the SDK interrupted the handler; "" if it did not.
func reason(ctx context.Context) string {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, worker.ErrCanceled):
		return "canceled"
	case errors.Is(cause, worker.ErrLeaseLost):
		return "lease-lost"
	case errors.Is(cause, worker.ErrStopping):
		return "stopping"
	}
	return ""
}
