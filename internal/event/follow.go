package event

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// follower is one reader of a stream.
type follower struct {
	*Service
	topic   *topic
	org     string
	request Request
	query   Query // after what was delivered
	yield   func(Item, error) bool
	checked bool // the store has confirmed the position of the reader
	resets  int  // of the topic, when that was
	paused  bool // the reader got an Item without an event
}

// follower returns a reader that has joined the org's topic, or nil after an error, which it yields. The
// request is a pointer, because its copy would be in the frame of the caller, which stays on the stack.
//
//go:noinline
func (s *Service) follower(
	ctx context.Context, a identity.Access, r *Request, yield func(Item, error) bool,
) *follower {
	q, err := query(a, *r)
	if err == nil {
		q.After, err = s.start(ctx, a.Org(), *r)
	}
	if err != nil {
		yield(Item{}, err)
		return nil
	}
	q.Limit = MaxLimit
	return &follower{Service: s, topic: s.hub.join(a.Org()), request: *r, query: q, org: a.Org(), yield: yield}
}

// run yields events until the stream ends. Its frame is small, because it stays on the stack of each
// waiting reader: the runtime halves a stack only if less than a quarter of it is in use.
func (f *follower) run(ctx context.Context, idle time.Duration) {
	defer f.topic.leave()
	tick := time.NewTicker(idle)
	defer tick.Stop()
	for {
		changed, more := f.deliver(ctx)
		if !more || changed != nil && !f.wait(ctx, changed, tick.C) {
			return
		}
	}
}

// deliver yields events after the position of the reader. If there are none, it returns a channel
// that is closed when there may be. more is false if the stream ends.
//
// It is not inlined, so that a waiting reader does not keep its stack frame.
//
//go:noinline
func (f *follower) deliver(ctx context.Context) (changed <-chan struct{}, more bool) {
	if f.ended(ctx) {
		return nil, false
	}
	tail := f.topic.after(f.query.After)
	if !tail.known || tail.ahead && (!f.checked || f.resets != tail.resets) {
		f.resets = tail.resets
		return nil, f.readLog(ctx, tail.hints)
	}
	for i := range tail.events {
		f.query.After = tail.events[i].Seq
		if f.query.Match(&tail.events[i]) && !f.yield(Item{Event: &tail.events[i], Last: f.query.After}, nil) {
			return nil, false
		}
	}
	if len(tail.events) > 0 {
		return nil, f.pause()
	}
	return tail.changed, f.paused || f.pause()
}

// pause tells the reader that nothing follows at once.
func (f *follower) pause() bool {
	f.paused = true
	return f.yield(Item{Last: f.query.After}, nil)
}

// readLog yields a page of the log, without the topic.
func (f *follower) readLog(ctx context.Context, hints int) (more bool) {
	page, err := f.store.Page(ctx, f.org, f.query)
	if err != nil {
		if !f.ended(ctx) {
			f.yield(Item{}, err)
		}
		return false
	}
	page.Missed = page.Missed || f.query.After == 0 && f.request.missesFirst(&page)
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
	if page.Last >= page.Head && f.topic.start(page.Head, hints) {
		f.Changed(f.org)
	}
	return f.pause()
}

// ended reports whether the stream is over.
func (f *follower) ended(ctx context.Context) bool {
	select {
	case <-f.stopping:
		return true
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// wait waits for new events or the next tick. It returns false when the stream ends.
//
//go:noinline
func (f *follower) wait(ctx context.Context, changed <-chan struct{}, tick <-chan time.Time) bool {
	select {
	case <-changed:
		return true
	case <-tick:
		return f.pause()
	case <-f.stopping:
		return false
	case <-ctx.Done():
		return false
	}
}
