package relay

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"github.com/parley-dev/parley/internal/budget"
)

// A stream is read no faster than its events are stored, and their memory is held until then.
func TestSourceWaits(t *testing.T) {
	t.Parallel()
	const events, size = 10, maxQueued/2 + 1
	pool := budget.NewPool(budget.Limits{Memory: 1 << 30, Response: 1 << 30})
	var read atomic.Int64
	c := &client{}
	s := c.start(t.Context(), func(ctx context.Context, _ a2aclient.ServiceParams) iter.Seq2[a2a.Event, error] {
		return func(yield func(a2a.Event, error) bool) {
			for range events {
				r := reservation{pool: pool, ctx: ctx}
				if err := r.hold(2 * unreserved); err != nil {
					t.Error(err)
				}
				r.pass(size)
				read.Add(1)
				if !yield(&a2a.TaskStatusUpdateEvent{}, nil) {
					return
				}
			}
		}
	})
	defer s.stop()
	for n := int64(1); n <= events; n++ {
		i := <-s.items
		// The next event is read, and waits for room. It is not in the channel before this one is done.
		for deadline := time.Now().Add(10 * time.Second); read.Load() < min(n+1, events); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d events were read, want %d", read.Load(), min(n+1, events))
			}
		}
		if got := len(s.items); got != 0 {
			t.Fatalf("%d events wait beside one that is not stored, want 0", got)
		}
		if pool.Used() == 0 {
			t.Error("no memory is held for an event that is not stored")
		}
		i.done()
	}
	if _, more := <-s.items; more {
		t.Error("the source has another event, want its end")
	}
	if held := pool.Used(); held != 0 {
		t.Errorf("%d bytes are held after the last event, want 0", held)
	}
}

// What nobody reads any more is released.
func TestStoppedSourceReleases(t *testing.T) {
	t.Parallel()
	pool := budget.NewPool(budget.Limits{Memory: 1 << 30, Response: 1 << 30})
	c := &client{}
	s := c.start(t.Context(), func(ctx context.Context, _ a2aclient.ServiceParams) iter.Seq2[a2a.Event, error] {
		return func(yield func(a2a.Event, error) bool) {
			r := reservation{pool: pool, ctx: ctx}
			for ctx.Err() == nil {
				if err := r.hold(2 * unreserved); err != nil {
					return
				}
				r.pass(10)
				if !yield(&a2a.TaskStatusUpdateEvent{}, nil) {
					return
				}
			}
		}
	})
	(<-s.items).done()
	s.stop()
	for deadline := time.Now().Add(10 * time.Second); pool.Used() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are held after the source was stopped, want 0", pool.Used())
		}
	}
}
