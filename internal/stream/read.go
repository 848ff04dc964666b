package stream

import (
	"context"
	"iter"
	"time"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/task"
)

// Events yields a task's events after a cursor, first what is there, then what
// comes, until the task ends, the consumer stops, ctx ends or the server stops.
//
// With idle set it yields a zero event whenever there is nothing more for now, and
// again every idle while that is so. The consumer can then flush what it has
// buffered, and look after other things, without a goroutine of its own.
func (t *Topic) Events(ctx context.Context, cursor int64, idle time.Duration) iter.Seq2[task.Event, error] {
	return func(yield func(task.Event, error) bool) {
		var tick <-chan time.Time
		if idle > 0 {
			ticker := time.NewTicker(idle)
			defer ticker.Stop()
			tick = ticker.C
		}
		for {
			events, changed, ok := t.after(cursor)
			done := func() {}
			if !ok {
				var err error
				events, done, err = t.hub.page(ctx, t.ref, cursor)
				switch {
				case budget.IsBusy(err) && tick != nil && ctx.Err() == nil:
					// Too many readers hold too much. This one waits for its turn.
					if !yield(task.Event{}, nil) {
						return
					}
					continue
				case err != nil:
					yield(task.Event{}, err)
					return
				}
			}
			n := len(events)
			cursor, ok = yieldAll(events, cursor, yield)
			done()
			if !ok {
				return
			}
			if n > 0 {
				continue
			}
			if tick != nil && !yield(task.Event{}, nil) {
				return
			}
			select {
			case <-changed:
			case <-tick:
			case <-t.hub.stopping:
				return
			case <-ctx.Done():
				yield(task.Event{}, ctx.Err())
				return
			}
		}
	}
}

// Stream is Events for the one reader that has joined the topic: it leaves with the last.
func (t *Topic) Stream(ctx context.Context, cursor int64, idle time.Duration) iter.Seq2[task.Event, error] {
	return func(yield func(task.Event, error) bool) {
		defer t.Leave()
		t.Events(ctx, cursor, idle)(yield)
	}
}

// yieldAll yields events and returns the cursor behind the last. more is false when
// the task has ended, or the consumer wants no more.
func yieldAll(events []task.Event, cursor int64, yield func(task.Event, error) bool) (_ int64, more bool) {
	for i := range events {
		if !yield(events[i], nil) {
			return cursor, false
		}
		cursor = events[i].Seq
		if events[i].Kind == task.StatusEvent && events[i].State.Terminal() {
			return cursor, false
		}
	}
	return cursor, true
}

// pageKey names a page of a log.
type pageKey struct {
	ref   task.Ref
	after int64
}

// page reads events of a log after a cursor. Readers at the same place share what was
// read, and the memory for it and its encoding is taken from the budget before. done must be called
// when the events are no longer needed.
func (h *Hub) page(ctx context.Context, ref task.Ref, after int64) (events []task.Event, done func(), err error) {
	return h.pages.use(ctx, pageKey{ref, after}, func(ctx context.Context) ([]task.Event, func(), error) {
		if budget.From(ctx) == nil {
			events, err := h.log.Events(ctx, ref.Org, ref.UID, after, maxRecent)
			return events, nil, err
		}
		size, err := h.log.EventsSize(ctx, ref.Org, ref.UID, after, maxRecent)
		if err != nil {
			return nil, nil, err
		}
		worked, release, err := budget.From(ctx).Borrow(ctx, 2*size)
		if err != nil {
			return nil, nil, err
		}
		defer worked()
		events, err := h.log.Events(ctx, ref.Org, ref.UID, after, maxRecent)
		if err != nil {
			release()
			return nil, nil, err
		}
		return events, release, nil
	})
}
