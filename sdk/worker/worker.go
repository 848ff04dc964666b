package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// The causes of the end of a handler's context; see context.Cause.
var (
	ErrCanceled  = errors.New("worker: the sender canceled the task")
	ErrLeaseLost = errors.New("worker: the lease is lost; the task goes to another worker")
	ErrStopping  = errors.New("worker: the worker is stopping")
	ErrOverdue   = errors.New("worker: the deadline of the task has passed")
)

// ErrFinished is returned by a report on a task that this handler has already finished.
var ErrFinished = errors.New("worker: the task is already finished")

// Error is a refusal by the server.
type Error = client.Error

// Handler does the work of one task; see "Handlers" in the package documentation. As many handlers
// run at a time as the worker's capacity.
type Handler func(ctx context.Context, t *Task) error

// Worker works for one agent. Use New to make one and Run to run it.
type Worker struct {
	api       *client.Client
	leases    *client.WorkerClient
	agent     string
	name      string
	capacity  int
	lease     time.Duration
	grace     time.Duration
	log       *slog.Logger
	onMessage func(context.Context, DirectMessage)
}

// Client returns the worker's client, for handlers that call other agents or submit proposals. The
// key needs the scopes for that.
func (w *Worker) Client() *client.Client { return w.api }

// Run works until ctx ends, then stops cleanly; see the package documentation. It returns nil then,
// and an error if the server refuses the worker permanently. A Worker runs once at a time.
func (w *Worker) Run(ctx context.Context, handle Handler) error {
	return newShift(ctx, w, handle).run(ctx)
}
