package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// Why a handler's context ended; see context.Cause.
var (
	ErrCanceled  = errors.New("worker: the sender canceled the task")
	ErrLeaseLost = errors.New("worker: the lease is lost; the task is not ours any more")
	ErrStopping  = errors.New("worker: the worker is stopping")
)

// ErrFinished is returned by a report about a task that this handler has already
// finished.
var ErrFinished = errors.New("worker: the task is finished already")

// Error is a refusal by the server.
type Error = client.Error

// Handler does the work of one task; the package's documentation says what it owes.
// Up to the worker's capacity of handlers run at a time.
type Handler func(ctx context.Context, t *Task) error

// Worker works for one agent. It is made by New and run by Run.
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

// Client returns the client that the worker calls the server with, for handlers that
// call other agents or submit proposals. The key needs the scopes for that.
func (w *Worker) Client() *client.Client { return w.api }

// Run works until ctx ends, and then stops in good order: see the package's
// documentation. It returns nil after such an end, and an error if the server
// refuses the worker for good. A Worker runs once at a time.
func (w *Worker) Run(ctx context.Context, handle Handler) error {
	return newShift(ctx, w, handle).run(ctx)
}
