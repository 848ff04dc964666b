package worker

import (
	"context"
	"sync"
)

// queue delivers values in order and never blocks the sender.
type queue[T any] struct {
	mu     sync.Mutex
	items  []T
	closed bool
	wake   chan struct{}
}

func newQueue[T any]() *queue[T] { return &queue[T]{wake: make(chan struct{}, 1)} }

func (q *queue[T]) put(items ...T) {
	q.mu.Lock()
	q.items = append(q.items, items...)
	q.mu.Unlock()
	q.signal()
}

// close lets the receiver take what is left.
func (q *queue[T]) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

func (q *queue[T]) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue[T]) take(ctx context.Context) (T, bool) { return q.takeUntil(ctx.Done()) }

// takeUntil waits for a value. It reports false if the queue is closed and empty, or if done is
// closed first. A queue has one receiver.
func (q *queue[T]) takeUntil(done <-chan struct{}) (item T, ok bool) {
	for {
		q.mu.Lock()
		if len(q.items) > 0 {
			item, q.items = q.items[0], q.items[1:]
			q.mu.Unlock()
			return item, true
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return item, false
		}
		select {
		case <-q.wake:
		case <-done:
			return item, false
		}
	}
}
