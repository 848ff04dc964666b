package store

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/trace"
)

// queue passes writes from many callers to few goroutines that commit them in batches. Its size
// is limited: if it is full, callers wait until their context ends.
//
// Wide writes, of megabytes, have their own queue and are committed one by one between the
// batches: a small write waits for at most one of them.
type queue struct {
	waiting chan *request
	wide    chan *request
	met     *metrics
	tracer  *trace.Tracer // nil: no spans
	pace    *pace         // nil: batches start at once

	mu      sync.RWMutex // guards closed against senders
	closed  bool
	serving sync.WaitGroup
}

// request is one write and its result.
type request struct {
	fn       func(*tx) error
	change   *change // instead of fn in the queue of the updater
	err      error
	answered chan struct{}
	apart    bool        // handed over: it is completed separately from its batch
	mark     *trace.Mark // of the span that the write belongs to; nil if it has none
}

func newQueue(met *metrics, tracer *trace.Tracer) *queue {
	return &queue{waiting: make(chan *request, 1024), wide: make(chan *request, 64), met: met, tracer: tracer}
}

func newPacedQueue(met *metrics, tracer *trace.Tracer) *queue {
	q := newQueue(met, tracer)
	q.pace = newPace()
	return q
}

var errClosed = errs.New(errs.Unavailable, "store.unavailable", "the server is shutting down; try again in a moment")

// do queues a write and waits until it is committed. It always waits for a queued write, because
// fn writes to variables of its caller.
func (q *queue) do(ctx context.Context, fn func(*tx) error) error {
	return q.wait(ctx, q.waiting, &request{fn: fn, answered: make(chan struct{})})
}

// doChange is do for a change.
func (q *queue) doChange(ctx context.Context, c *change) error {
	return q.wait(ctx, q.waiting, &request{change: c, answered: make(chan struct{})})
}

// doWide is do for a wide write.
func (q *queue) doWide(ctx context.Context, fn func(*tx) error) error {
	return q.wait(ctx, q.wide, &request{fn: fn, answered: make(chan struct{})})
}

func (q *queue) wait(ctx context.Context, in chan<- *request, r *request) error {
	if q.tracer != nil {
		if m, ok := trace.MarkOf(ctx); ok {
			r.mark = &m
		}
	}
	if err := q.put(ctx, in, r); err != nil {
		return err
	}
	<-r.answered
	return r.err
}

func (q *queue) put(ctx context.Context, in chan<- *request, r *request) error {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return errClosed
	}
	select {
	case in <- r:
		q.pace.arrived(len(in))
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve starts a goroutine that takes up to most waiting requests, has them committed and then
// completes them.
func (q *queue) serve(most int, commit func([]*request)) {
	run := func(batch []*request) (took time.Duration) {
		span := q.startSpan(batch)
		start := time.Now()
		commit(batch)
		took = time.Since(start)
		q.met.batch(len(batch), took, span.TraceID())
		endSpan(span, batch)
		for _, r := range batch {
			if !r.apart {
				close(r.answered)
			}
		}
		return took
	}
	q.serving.Go(func() {
		batch := make([]*request, 0, most)
		waiting, wide := q.waiting, q.wide
		for waiting != nil || wide != nil {
			followed := q.pace.lead()
			select {
			case first, ok := <-waiting:
				if !ok {
					waiting = nil
					followed()
					continue
				}
				if len(batch) > 1 {
					// Under load, let callers whose write was just committed queue their next
					// one: a larger batch shares the commit among more writes.
					runtime.Gosched()
				}
				end := q.pace.begin()
				batch = gather(append(batch[:0], first), waiting, most)
				followed()
				end(len(batch), run(batch))
			case r, ok := <-wide:
				followed()
				if !ok {
					wide = nil
					continue
				}
				run([]*request{r})
				if batch = gather(batch[:0], waiting, most); len(batch) > 0 { // before the next wide one
					run(batch)
				}
			}
		}
	})
}

// gather adds waiting requests to the batch without blocking.
func gather(batch []*request, waiting <-chan *request, most int) []*request {
	for len(batch) < most {
		select {
		case r, ok := <-waiting:
			if !ok {
				return batch
			}
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// handOver lets commit finish a write separately from its batch.
func (q *queue) handOver(r *request, finish func() error) {
	r.apart = true
	q.serving.Go(func() {
		r.err = finish()
		close(r.answered)
	})
}

// close refuses new writes and waits until the queued ones are done.
func (q *queue) close() {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.waiting)
		close(q.wide)
	}
	q.mu.Unlock()
	q.serving.Wait()
}

// startSpan starts the span of a batch, with links to the spans of its writes. A batch without any
// has none.
func (q *queue) startSpan(batch []*request) trace.Span {
	if q.tracer == nil {
		return trace.Span{}
	}
	var work []trace.Mark
	for _, r := range batch {
		if r.mark != nil {
			work = append(work, *r.mark)
		}
	}
	return q.tracer.StartFor(work, "store.batch", trace.Int("parley.writes", len(batch)))
}

// endSpan ends the span of a batch. Refused writes are no failures of the store.
func endSpan(span trace.Span, batch []*request) {
	if !span.On() {
		return
	}
	failed := 0
	for _, r := range batch {
		if !r.apart && r.err != nil && errs.KindOf(r.err) == errs.Internal {
			failed++
		}
	}
	if failed > 0 {
		span.Set(trace.Int("parley.writes_failed", failed))
		span.Fail("writes failed")
	}
	span.End()
}
