package stream

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/parley-dev/parley/internal/task"
)

// slowLog is a log whose first read lasts until its context ends or release is closed.
type slowLog struct {
	Log
	release chan struct{}

	mu    sync.Mutex
	reads int
}

func newSlowLog() *slowLog {
	return &slowLog{release: make(chan struct{})}
}

func (s *slowLog) read(ctx context.Context) error {
	s.mu.Lock()
	s.reads++
	first := s.reads == 1
	s.mu.Unlock()
	if !first {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.release:
		return nil
	}
}

func (s *slowLog) Events(ctx context.Context, _, _ string, after int64, _ int) ([]task.Event, error) {
	return []task.Event{{Seq: after + 1}}, s.read(ctx)
}

func (s *slowLog) task(ctx context.Context) (task.Task, error) {
	return task.Task{Org: "acme", UID: "1", Seq: 7}, s.read(ctx)
}

// users returns how many readers use or wait for the shared value.
func (s *shared[K, V]) users() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.m {
		return v.users
	}
	return 0
}

// TestAReaderThatLeavesDoesNotFailThoseThatShareWithIt has three readers share a page of a log, or
// the encoding of a task. One of them leaves during the read: the one that reads for all, or one
// that waits.
func TestAReaderThatLeavesDoesNotFailThoseThatShareWithIt(t *testing.T) {
	t.Parallel()
	type target struct {
		read  func(ctx context.Context) (done func(), err error)
		users func() int
	}
	for name, open := range map[string]func(*slowLog) target{
		"page": func(log *slowLog) target {
			h := NewHub(log, nil)
			return target{func(ctx context.Context) (func(), error) {
				events, done, err := h.page(ctx, task.Ref{Org: "acme", UID: "1"}, 4)
				if err == nil && (len(events) != 1 || events[0].Seq != 5) {
					t.Errorf("the page is %v", events)
				}
				return done, err
			}, h.pages.users}
		},
		"encoding": func(log *slowLog) target {
			h := NewHub(log, nil)
			return target{func(ctx context.Context) (func(), error) {
				encode := func(*task.Task) []byte { return []byte("text") }
				e, done, err := h.EncodeTask(ctx, &task.Task{Org: "acme", UID: "1"}, "form", log.task, encode)
				if err == nil && (string(e.Text) != "text" || e.Seq != 7) {
					t.Errorf("the encoding is %+v", e)
				}
				return done, err
			}, h.encodings.users}
		},
	} {
		for leaver := range 2 {
			t.Run(name+[]string{", the first leaves", ", another leaves"}[leaver], func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
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
						synctest.Wait() // it reads, or waits for the one that does
						if n := shared.users(); n != i+1 {
							t.Fatalf("%d readers share it; want %d", n, i+1)
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
			})
		}
	}
}
