package task

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// slowLog is a store whose first read of a log, or of a task, lasts until its caller has
// gone or release is closed.
type slowLog struct {
	Store
	reading chan struct{} // closed when the first read has begun
	release chan struct{}

	mu    sync.Mutex
	reads int
}

func newSlowLog() *slowLog {
	return &slowLog{reading: make(chan struct{}), release: make(chan struct{})}
}

func (s *slowLog) read(ctx context.Context) error {
	s.mu.Lock()
	s.reads++
	first := s.reads == 1
	s.mu.Unlock()
	if !first {
		return nil
	}
	close(s.reading)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.release:
		return nil
	}
}

func (s *slowLog) TaskEvents(ctx context.Context, _, _ string, after int64, _ int) ([]Event, error) {
	return []Event{{Seq: after + 1}}, s.read(ctx)
}

func (s *slowLog) TaskByUID(ctx context.Context, org, uid string, _ Content) (Task, error) {
	return Task{Org: org, UID: uid, Seq: 7}, s.read(ctx)
}

// users is how many readers use or wait for the one value that is shared.
func (s *shared[K, V]) users() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.m {
		return v.users
	}
	return 0
}

// TestAReaderThatLeavesDoesNotFailThoseThatShareWithIt has three readers share a page of
// a log, or the encoding of a task. One of them leaves while it is being read: the one
// that reads it for all, or one that waits.
func TestAReaderThatLeavesDoesNotFailThoseThatShareWithIt(t *testing.T) {
	t.Parallel()
	type target struct {
		read  func(ctx context.Context) (done func(), err error)
		users func() int
	}
	for name, open := range map[string]func(*slowLog) target{
		"page": func(log *slowLog) target {
			h := newHub(log, nil)
			return target{func(ctx context.Context) (func(), error) {
				events, done, err := h.page(ctx, Ref{"acme", "1"}, 4)
				if err == nil && (len(events) != 1 || events[0].Seq != 5) {
					t.Errorf("the page is %v", events)
				}
				return done, err
			}, h.pages.users}
		},
		"encoding": func(log *slowLog) target {
			s := &Tasks{Options: Options{Store: log}}
			return target{func(ctx context.Context) (func(), error) {
				e, done, err := s.EncodeTask(ctx, &Task{Org: "acme", UID: "1"}, "form", func(*Task) []byte { return []byte("text") })
				if err == nil && (string(e.Text) != "text" || e.Seq != 7) {
					t.Errorf("the encoding is %+v", e)
				}
				return done, err
			}, s.encodings.users}
		},
	} {
		for leaver := range 2 {
			t.Run(name+[]string{", the first leaves", ", another leaves"}[leaver], func(t *testing.T) {
				t.Parallel()
				log := newSlowLog()
				shared := open(log)
				leaving, leave := context.WithCancel(t.Context())
				errs := make([]error, 3)
				dones := make([]func(), 3)
				var left, stayed sync.WaitGroup
				for i := range errs {
					ctx, wg := t.Context(), &stayed
					if i == leaver {
						ctx, wg = leaving, &left
					}
					wg.Go(func() { dones[i], errs[i] = shared.read(ctx) })
					<-log.reading
					for shared.users() < i+1 {
						time.Sleep(time.Millisecond)
					}
				}
				leave()
				left.Wait()
				if !errors.Is(errs[leaver], context.Canceled) {
					t.Errorf("the reader that left got %v", errs[leaver])
				}
				close(log.release)
				stayed.Wait()
				for i, err := range errs {
					if i == leaver {
						continue
					}
					if err != nil {
						t.Errorf("reader %d: %v", i, err)
						continue
					}
					dones[i]()
				}
				if n := shared.users(); n != 0 {
					t.Errorf("%d readers are left", n)
				}
			})
		}
	}
}
