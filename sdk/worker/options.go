package worker

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// Option changes how a worker works.
type Option func(*Worker)

// WithCapacity lets the worker run n tasks at a time; 1 unless given.
func WithCapacity(n int) Option { return func(w *Worker) { w.capacity = n } }

// WithName names the worker: it is how the server tells an agent's workers apart.
// The name is made of the host's name and the process id unless given.
func WithName(name string) Option { return func(w *Worker) { w.name = name } }

// WithLease sets how long a task stays with this worker when the server hears
// nothing of it: 30 seconds unless given, in whole seconds. The lease is
// prolonged by itself; it need not be as long as the work.
func WithLease(d time.Duration) Option { return func(w *Worker) { w.lease = d } }

// WithGrace sets how long handlers may go on after the worker was told to stop; 5
// seconds unless given.
func WithGrace(d time.Duration) Option { return func(w *Worker) { w.grace = d } }

// WithHTTPClient sets the client for all requests. It must not have a Timeout
// below a minute, because a claim waits for work.
func WithHTTPClient(c *http.Client) Option { return func(w *Worker) { w.http = c } }

// WithLogger sets where the worker says what it does; slog.Default unless given.
func WithLogger(l *slog.Logger) Option { return func(w *Worker) { w.log = l } }

// WithMessages sets the function that gets direct messages, one after the other in
// the order of their arrival. Without one they are logged and dropped. Its context
// ends when the worker has stopped.
func WithMessages(f func(context.Context, DirectMessage)) Option {
	return func(w *Worker) { w.onMessage = f }
}
