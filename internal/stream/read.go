package stream

import (
	"context"
	"iter"
	"time"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/task"
)

// Events yields a task's events after a cursor, and then new events as they happen, until the
// task ends, the consumer stops, ctx ends or the server stops.
//
// If idle is not 0, it yields a zero event when no more events are available, and again every
// idle. The consumer can then flush its buffer and do other work without another goroutine.
func (t *Topic) Events(ctx context.Context, cursor int64, idle time.Duration) iter.Seq2[task.Event, error] {
	return func(yield func(task.Event, error) bool) {
		var tick <-chan time.Time
		if idle > 0 {
			ticker := time.NewTicker(idle)
			defer ticker.Stop()
			tick = ticker.C
		}
		for {
			changed, more := t.deliver(ctx, &cursor, idle > 0, yield)
			if !more || changed != nil && !t.wait(ctx, changed, tick, yield) {
				return
			}
		}
	}
}

// deliver yields the events after the cursor. If there are none, it returns a channel that is
// closed when there are. more is false if nothing follows.
//
// It is not inlined, so that a waiting reader does not hold its stack frame. Thousands of readers
// wait, and the runtime halves a stack only if less than a quarter of it is in use.
//
//go:noinline
func (t *Topic) deliver(
	ctx context.Context, cursor *int64, idle bool, yield func(task.Event, error) bool,
) (changed <-chan struct{}, more bool) {
	events, changed, ok := t.after(*cursor)
	done := func() {}
	if !ok {
		var err error
		events, done, err = t.hub.page(ctx, t.ref, *cursor)
		switch {
		case budget.IsBusy(err) && idle && ctx.Err() == nil:
			return nil, yield(task.Event{}, nil) // other readers hold the memory: try again
		case err != nil:
			yield(task.Event{}, err)
			return nil, false
		}
	}
	n := len(events)
	*cursor, more = yieldAll(events, *cursor, yield)
	done()
	switch {
	case !more || n > 0:
		return nil, more
	case idle:
		return changed, yield(task.Event{}, nil)
	}
	return changed, true
}

// wait waits for new events or the next tick. It returns false when nothing follows.
//
//go:noinline
func (t *Topic) wait(
	ctx context.Context, changed <-chan struct{}, tick <-chan time.Time, yield func(task.Event, error) bool,
) bool {
	select {
	case <-changed:
	case <-tick:
	case <-t.hub.stopping:
		return false
	case <-ctx.Done():
		fail(yield, ctx.Err())
		return false
	}
	return true
}

//go:noinline
func fail(yield func(task.Event, error) bool, err error) { yield(task.Event{}, err) }

// Stream is like Events, and leaves the topic at the end.
func (t *Topic) Stream(ctx context.Context, cursor int64, idle time.Duration) iter.Seq2[task.Event, error] {
	return func(yield func(task.Event, error) bool) {
		defer t.Leave()
		t.Events(ctx, cursor, idle)(yield)
	}
}

// yieldAll yields events and returns the cursor after the last one. more is false if the task
// has ended or the consumer stopped.
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

// pageKey identifies a page of a log.
type pageKey struct {
	ref   task.Ref
	after int64
}

// page reads events of a log after a cursor. Readers at the same position share the page. The
// memory for it and its encoding is taken from the budget first. The caller must call done when
// it no longer needs the events.
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
