package worker

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// exchanging makes the fake a server with exchanges.
func exchanging(f *fake, fails ...func(n int, r *client.ExchangeRequest, w http.ResponseWriter) bool) {
	f.exchange = func(n int, r *client.ExchangeRequest, w http.ResponseWriter) bool {
		for _, fail := range fails {
			if fail(n, r, w) {
				return true
			}
		}
		return false
	}
}

func capacity(n int) func(*Config) { return func(c *Config) { c.Capacity = n } }

func many(n int) []string { return slices.Repeat([]string{"x"}, n) }

func TestResultsTravelTogetherWithClaims(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, many(24)...)
		exchanging(f)
		var mu sync.Mutex
		running, most := 0, 0
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			most = max(most, running)
		}
		stop := start(t, f, func(context.Context, *Task) error {
			count(1)
			defer count(-1)
			time.Sleep(time.Second)
			return nil
		}, capacity(8))
		f.until(t, "24 reports", func() bool { return len(f.reports) == 24 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if want := []int{8, 8, 8}; !slices.Equal(f.together, want) {
			t.Errorf("exchanges had %v reports, want %v", f.together, want)
		}
		if most != 8 || f.tries != 0 {
			t.Errorf("%d handlers ran at a time and %d reports were sent alone, want 8 and 0", most, f.tries)
		}
	})
}

// A handler that goes on after its result keeps its slot: the next task waits for it.
func TestAHandlerThatGoesOnKeepsItsSlot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, many(2)...)
		exchanging(f)
		var mu sync.Mutex
		running := 0
		stop := start(t, f, func(ctx context.Context, task *Task) error {
			mu.Lock()
			running++
			if running > 1 {
				t.Error("two handlers run at a time, want one")
			}
			mu.Unlock()
			err := task.Complete(ctx)
			if task.ID == "a" {
				time.Sleep(time.Minute)
			}
			mu.Lock()
			running--
			mu.Unlock()
			return err
		})
		f.until(t, "2 reports", func() bool { return len(f.reports) == 2 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.beats) == 0 {
			t.Error("the waiting task had no heartbeats, want some")
		}
	})
}

func TestAnOlderServerGetsResultsOneByOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, many(6)...)
		stop := start(t, f, func(context.Context, *Task) error { return nil }, capacity(3))
		f.until(t, "6 reports", func() bool { return len(f.reports) == 6 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAFailedExchangeIsRepeated(t *testing.T) {
	for name, fail := range map[string]func(http.ResponseWriter) bool{
		"no response": hangUp,
		"busy":        func(w http.ResponseWriter) bool { return refuse(w, 503, "server.busy") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(t, many(4)...)
				exchanging(f, func(n int, _ *client.ExchangeRequest, w http.ResponseWriter) bool {
					return n < 3 && fail(w)
				})
				stop := start(t, f, func(context.Context, *Task) error { return nil }, capacity(4))
				f.until(t, "4 reports", func() bool { return len(f.reports) == 4 })
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				if f.tries != 0 {
					t.Errorf("%d reports were sent alone, want 0", f.tries)
				}
			})
		})
	}
}

// A request that the server refuses as a whole is split, so that the other results arrive.
func TestARefusedExchangeIsSplit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, "good", "bad", "good")
		exchanging(f, func(_ int, r *client.ExchangeRequest, w http.ResponseWriter) bool {
			return len(r.Reports) > 0 && refuse(w, http.StatusRequestEntityTooLarge, "request.too_large")
		})
		f.before = func(_ int, _ http.ResponseWriter) bool { return false }
		stop := start(t, f, func(ctx context.Context, task *Task) error {
			return task.Complete(ctx, Text(task.Text()))
		}, capacity(3))
		f.until(t, "3 reports", func() bool { return len(f.reports) == 3 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if said := f.said(); strings.Count(said, "completed =good") != 2 || strings.Count(said, "completed =bad") != 1 {
			t.Errorf("the worker said %q, want three results", said)
		}
	})
}

// One result that the server refuses does not affect the others of its exchange.
func TestABadResultDoesNotFailOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, "stale", "good", "good")
		exchanging(f)
		f.over["lease-a"] = "expired"
		var mu sync.Mutex
		failed := map[string]error{}
		stop := start(t, f, func(ctx context.Context, task *Task) error {
			err := task.Complete(ctx)
			mu.Lock()
			defer mu.Unlock()
			failed[task.ID] = err
			return err
		}, capacity(3))
		f.until(t, "2 reports", func() bool { return len(f.reports) == 2 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if failed["a"] != ErrLeaseLost || failed["b"] != nil || failed["c"] != nil {
			t.Errorf("got %v, want ErrLeaseLost for a alone", failed)
		}
	})
}

// While an exchange hangs, the results of other handlers are sent with another one.
func TestAHungExchangeDelaysNoOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, many(5)...)
		hung := make(chan struct{})
		exchanging(f, func(n int, _ *client.ExchangeRequest, _ http.ResponseWriter) bool {
			if n == 1 {
				<-hung
				return true
			}
			return false
		})
		began := time.Now()
		stop := start(t, f, func(_ context.Context, task *Task) error {
			if task.ID != "a" {
				time.Sleep(time.Second)
			}
			return nil
		}, capacity(2))
		f.until(t, "4 reports", func() bool { return len(f.reports) == 4 })
		if took := time.Since(began); took > reportTimeout {
			t.Errorf("the other results took %s, want less than the timeout of the hung request", took)
		}
		close(hung)
		f.until(t, "all reports", func() bool { return len(f.reports) == 5 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// Tasks that arrive while the worker stops go back to the queue.
func TestStopReturnsTasksOfAnExchange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, many(2)...)
		arrived, answer := make(chan struct{}), make(chan struct{})
		exchanging(f, func(int, *client.ExchangeRequest, http.ResponseWriter) bool {
			close(arrived)
			<-answer
			return false
		})
		stop := start(t, f, func(context.Context, *Task) error { return nil })
		<-arrived
		stopped := make(chan error, 1)
		go func() { stopped <- stop() }()
		time.Sleep(time.Second)
		close(answer)
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.reports) != 1 || !slices.Equal(f.returned, []string{"lease-b"}) {
			t.Errorf("%d reports, returned %q; want 1 report, and lease-b returned", len(f.reports), f.returned)
		}
	})
}
