package event

import (
	"context"
	"time"
)

// follower is one reader of a stream.
type follower struct {
	*Service
	topic   *topic
	org     string
	query   Query
	yield   func(Item, error) bool
	checked bool // the store has confirmed the position of the reader
}

// deliver yields events after the position of the reader. If there are none, it returns a channel
// that is closed when there are. more is false if the stream ends.
//
// It is not inlined, so that a waiting reader does not keep its stack frame.
//
//go:noinline
func (f *follower) deliver(ctx context.Context) (changed <-chan struct{}, more bool) {
	events, changed, hints, ok := f.topic.after(f.query.After)
	if !ok || !f.checked {
		return nil, f.readLog(ctx, hints)
	}
	for i := range events {
		f.query.After = events[i].Seq
		if f.query.Match(&events[i]) && !f.yield(Item{Event: &events[i], Last: f.query.After}, nil) {
			return nil, false
		}
	}
	if len(events) > 0 {
		return nil, true
	}
	return changed, f.yield(Item{Last: f.query.After}, nil)
}

// readLog yields a page of the log.
func (f *follower) readLog(ctx context.Context, hints int) (more bool) {
	page, err := f.store.Page(ctx, f.org, f.query)
	if err != nil {
		f.yield(Item{}, err)
		return false
	}
	f.checked = true
	if page.Missed && !f.yield(Item{Reset: true, Last: page.Kept - 1}, nil) {
		return false
	}
	for i := range page.Events {
		if !f.yield(Item{Event: &page.Events[i], Last: page.Events[i].Seq}, nil) {
			return false
		}
	}
	f.query.After = page.Last
	if page.Last >= page.Head {
		f.topic.start(page.Head, hints)
	}
	return ctx.Err() == nil
}

// wait waits for new events or the next tick. It returns false when the stream ends.
//
//go:noinline
func (f *follower) wait(ctx context.Context, changed <-chan struct{}, tick <-chan time.Time) bool {
	select {
	case <-changed:
		return true
	case <-tick:
		return f.yield(Item{Last: f.query.After}, nil)
	case <-f.stopping:
		return false
	case <-ctx.Done():
		return false
	}
}
