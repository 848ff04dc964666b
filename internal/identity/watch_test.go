package identity_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// drowsy is a shelf that can be out of reach, and that others change meanwhile.
type drowsy struct {
	*shelf
	mu  sync.Mutex
	err error
}

func (d *drowsy) change(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func (d *drowsy) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shelf.TouchKeys(ctx, used)
}

func (d *drowsy) Epoch(ctx context.Context) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return 0, d.err
	}
	return d.shelf.Epoch(ctx)
}

// A right that was taken away elsewhere ends with the next poll, not before and not later;
// when keys were used is written with every flush.
func TestWatchKeepsTheMemoryHonest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const poll, flush = time.Second, 30 * time.Second
		s, secret := newShelf()
		d := &drowsy{shelf: s}
		a := identity.NewAuthenticator(d, time.Now)
		ctx, stop := context.WithCancel(t.Context())
		var failures []error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a.Watch(ctx, poll, flush, func(err error) { failures = append(failures, err) })
		}()
		after := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		works := func(what string, want bool) {
			t.Helper()
			if _, err := a.Authenticate(ctx, secret); (err == nil) != want {
				t.Errorf("%s: the key works: got %v (%v), want %v", what, err == nil, err, want)
			}
		}
		works("at first", true)
		after(poll)
		d.change(func() { s.disabled, s.epoch = true, s.epoch+1 })
		after(poll - 1)
		works("a moment before the poll", true)
		after(1)
		works("after the poll", false)
		d.change(func() { s.disabled, s.epoch = false, s.epoch+1 })
		works("enabled again", true) // a refusal is not remembered

		lookups := s.lookups.Load()
		after(poll)
		works("looked up once more after the change", true)
		after(10 * poll)
		works("without a change", true)
		if got := s.lookups.Load() - lookups; got != 1 {
			t.Errorf("looked up %d times in eleven polls, want once", got)
		}

		d.change(func() { s.touched = nil })
		after(flush)
		d.change(func() {
			if got := s.touched["key-1"]; got.IsZero() {
				t.Errorf("after a flush the key was last used at %v, want a time", got)
			}
		})

		// What cannot be confirmed is not granted from memory.
		works("before the store is out of reach", true)
		lookups = s.lookups.Load()
		unreachable := errors.New("out of reach")
		d.change(func() { d.err = unreachable })
		after(poll)
		if len(failures) == 0 || !errors.Is(failures[0], unreachable) {
			t.Errorf("got the failures %v, want %v", failures, unreachable)
		}
		works("the keys can still be read", true)
		if got := s.lookups.Load() - lookups; got != 1 {
			t.Errorf("looked up %d times, want once: the memory is empty", got)
		}

		stop()
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("the watch goes on after its context ended, want it to end")
		}
	})
}
