package store

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// queue hands writes from many callers to few goroutines that commit them in
// batches. It is bounded: when it is full, callers wait as long as their context
// lets them.
type queue struct {
	waiting chan *request
	met     *metrics

	mu      sync.RWMutex // guards closed against senders
	closed  bool
	serving sync.WaitGroup
}

// request is one write and the place for its answer.
type request struct {
	fn       func(*tx) error
	err      error
	answered chan struct{}
	apart    bool // handed over: it is answered by itself
}

func newQueue(met *metrics) *queue {
	return &queue{waiting: make(chan *request, 1024), met: met}
}

var errClosed = errs.New(errs.Unavailable, "store.unavailable", "the server is shutting down; try again in a moment")

// do hands in a write and waits until it is committed. Once queued it is always
// waited for, because fn writes to variables of its caller.
func (q *queue) do(ctx context.Context, fn func(*tx) error) error {
	r := &request{fn: fn, answered: make(chan struct{})}
	if err := q.put(ctx, r); err != nil {
		return err
	}
	<-r.answered
	return r.err
}

func (q *queue) put(ctx context.Context, r *request) error {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return errClosed
	}
	select {
	case q.waiting <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve starts a goroutine that takes up to most of what waits, has it committed
// and then answers all of it.
func (q *queue) serve(most int, commit func([]*request)) {
	q.serving.Go(func() {
		batch := make([]*request, 0, most)
		for first := range q.waiting {
			if len(batch) > 1 {
				// Under load, let those that were just answered bring their next write:
				// a larger batch shares the commit among more.
				runtime.Gosched()
			}
			batch = append(batch[:0], first)
			for more := true; more && len(batch) < most; {
				select {
				case r, ok := <-q.waiting:
					if more = ok; ok {
						batch = append(batch, r)
					}
				default:
					more = false
				}
			}
			start := time.Now()
			commit(batch)
			q.met.batch(len(batch), time.Since(start))
			for _, r := range batch {
				if !r.apart {
					close(r.answered)
				}
			}
		}
	})
}

// handOver lets commit finish a write apart from its batch.
func (q *queue) handOver(r *request, finish func() error) {
	r.apart = true
	q.serving.Go(func() {
		r.err = finish()
		close(r.answered)
	})
}

// close refuses new writes and waits until the queued ones are answered.
func (q *queue) close() {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.waiting)
	}
	q.mu.Unlock()
	q.serving.Wait()
}
