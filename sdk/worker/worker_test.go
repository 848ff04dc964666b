package worker

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestHowAHandlerEndsATask(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		handle Handler
		want   string
	}{
		{
			"complete", func(ctx context.Context, t *Task) error { return t.Complete(ctx, Text("You said: "+t.Text())) },
			"completed =You said: hi",
		},
		{"nil completes", func(context.Context, *Task) error { return nil }, "completed"},
		{"an error fails", func(context.Context, *Task) error { return errors.New("no luck\x00") }, "failed no luck"},
		{
			"a panic fails", func(context.Context, *Task) error { panic("secret") },
			"failed the agent failed in an unexpected way",
		},
		{
			"reply", func(ctx context.Context, t *Task) error { return t.Reply(ctx, Text("hello yourself")) },
			"completed by reply hello yourself",
		},
		{"fail", func(ctx context.Context, t *Task) error { return t.Fail(ctx, "broken") }, "failed broken"},
		{"reject", func(ctx context.Context, t *Task) error { return t.Reject(ctx, "not mine") }, "rejected not mine"},
		{"ask", func(ctx context.Context, t *Task) error { return t.AskForInput(ctx, "which?") }, "input-required which?"},
		{
			"ask for auth", func(ctx context.Context, t *Task) error { return t.AskForAuth(ctx, "sign in") },
			"auth-required sign in",
		},
		{"the first end counts", func(ctx context.Context, t *Task) error {
			_ = t.Complete(ctx)
			if err := t.Fail(ctx, "x"); !errors.Is(err, ErrFinished) {
				panic(err)
			}
			return errors.New("too late")
		}, "completed"},
		{"progress and artifacts", func(ctx context.Context, t *Task) error {
			_ = t.Progress(ctx, "on it")
			_ = t.Artifact(ctx, Artifact{ID: "whole", Parts: []Part{Text("w")}})
			_ = t.AppendArtifact(ctx, Artifact{ID: "log", Parts: []Part{Text("1")}})
			return t.AppendArtifact(ctx, Artifact{ID: "log", Parts: []Part{Text("2")}, LastChunk: true})
		}, "working on it; whole=w; log=1; log+2; completed"},
		{
			"what cannot be encoded fails", func(ctx context.Context,
				t *Task,
			) error {
				return t.Complete(ctx, Data(make(chan int)))
			},
			"failed encode the request: json: error calling MarshalJSON for type client.Part: encode a data part: json: unsupported type: chan int",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(t, "hi")
				stop := start(t, f, tt.handle)
				f.until(t, "the task is over", func() bool { return f.over["lease-a"] != "" })
				if err := stop(); err != nil {
					t.Errorf("Run = %v, want nil", err)
				}
				if got := f.said(); got != tt.want {
					t.Errorf("reported %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// A result that the server refuses, whatever the handler says, fails its task.
func TestWhatCannotBeSentFailsTheTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, "hi")
		f.before = func(n int, w http.ResponseWriter) bool {
			return n == 1 && refuse(w, http.StatusRequestEntityTooLarge, "request.too_large")
		}
		stop := start(t, f, func(context.Context, *Task) error { return errors.New("very long") })
		f.until(t, "the task is over", func() bool { return f.over["lease-a"] != "" })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if got := f.said(); !strings.HasPrefix(got, "failed the result could not be sent: ") {
			t.Errorf("reported %q, want a failure that says why", got)
		}
	})
}

// After a lost request or response the outcome still arrives, and nothing is shown twice.
func TestReportsAreRepeated(t *testing.T) {
	t.Parallel()
	story := func(ctx context.Context, t *Task) error {
		if err := t.AppendArtifact(ctx, Artifact{ID: "log", Parts: []Part{Text("1")}}); err != nil {
			return err
		}
		if err := t.AppendArtifact(ctx, Artifact{ID: "log", Parts: []Part{Text("2")}}); err != nil {
			return err
		}
		return t.Complete(ctx)
	}
	at := func(n int, fail func(http.ResponseWriter) bool) func(int, http.ResponseWriter) bool {
		return func(k int, w http.ResponseWriter) bool { return k == n && fail(w) }
	}
	busy := func(w http.ResponseWriter) bool {
		w.Header().Set("Retry-After", "1")
		return refuse(w, http.StatusTooManyRequests, "request.rate_limited")
	}
	fault := func(w http.ResponseWriter) bool { return refuse(w, http.StatusBadGateway, "") }
	tests := []struct {
		name          string
		before, after func(int, http.ResponseWriter) bool
		want          string
	}{
		{"nothing goes wrong", nil, nil, "log=1; log+2; completed"},
		{"a request is lost", at(2, hangUp), nil, "log=1; log=1\n2; completed"},
		{"a response is lost", nil, at(2, hangUp), "log=1; log+2; log=1\n2; completed"},
		{"the last response is lost", nil, at(3, hangUp), "log=1; log+2; completed"},
		{"the last response is a fault", nil, at(3, fault), "log=1; log+2; completed"},
		{"too many requests", at(2, busy), nil, "log=1; log+2; completed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(t, "hi")
				f.before, f.after = tt.before, tt.after
				outcome := make(chan error, 1)
				stop := start(t, f, func(ctx context.Context, t *Task) error {
					err := story(ctx, t)
					outcome <- err
					return err
				})
				if err := <-outcome; err != nil {
					t.Errorf("error in the handler = %v, want nil", err)
				}
				if err := stop(); err != nil {
					t.Errorf("Run = %v, want nil", err)
				}
				if got := f.said(); got != tt.want {
					t.Errorf("reported %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// A heartbeat reports a cancel within two seconds, long before half of the lease is over.
func TestCancelEndsTheContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, "hi")
		began, cause := make(chan struct{}), make(chan error, 1)
		start(t, f, func(ctx context.Context, t *Task) error {
			close(began)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return nil
		})
		<-began
		f.mu.Lock()
		f.over["lease-a"] = "canceled"
		f.mu.Unlock()
		at := time.Now()
		if err := <-cause; !errors.Is(err, ErrCanceled) {
			t.Errorf("cause = %v, want %v", err, ErrCanceled)
		}
		if took := time.Since(at); took > 2*time.Second {
			t.Errorf("cancel took %s, want at most 2s", took)
		}
		if got := f.said(); got != "" {
			t.Errorf("reports of a canceled task = %q, want none", got)
		}
	})
}

func TestStaleLeaseEndsTheContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, "hi")
		cause := make(chan error, 1)
		start(t, f, func(ctx context.Context, t *Task) error {
			f.mu.Lock()
			f.over["lease-a"] = "expired"
			f.mu.Unlock()
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return t.Complete(context.WithoutCancel(ctx))
		})
		if err := <-cause; !errors.Is(err, ErrLeaseLost) {
			t.Errorf("cause = %v, want %v", err, ErrLeaseLost)
		}
	})
}

func TestUnreachableServerCostsTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, "hi")
		cause := make(chan error, 1)
		start(t, f, func(ctx context.Context, t *Task) error {
			f.mu.Lock()
			f.down = true
			f.mu.Unlock()
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return nil
		}, func(c *Config) { c.Lease = 2 * time.Second })
		if err := <-cause; !errors.Is(err, ErrLeaseLost) {
			t.Errorf("cause = %v, want %v", err, ErrLeaseLost)
		}
	})
}

// A heartbeat reads; it extends the lease only when half of it is over.
func TestLeaseIsProlongedSparingly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, "hi")
		release := make(chan struct{})
		start(t, f, func(context.Context, *Task) error {
			<-release
			return nil
		}, func(c *Config) { c.Lease = 8 * time.Second })
		f.until(t, "two extensions, with heartbeats before each that extend nothing", func() bool {
			n, asked := 0, false
			for _, b := range f.beats {
				if b.ExtendSeconds == 8 && asked {
					n++
				}
				asked = b.ExtendSeconds == 0
			}
			return n >= 2
		})
		close(release)

		h := &hold{Worker: &Worker{lease: time.Minute}}
		for left, want := range map[time.Duration]int{
			time.Minute: 0, 31 * time.Second: 0, 30 * time.Second: 60, 0: 60,
			-time.Second: 60,
		} {
			h.expires = time.Now().Add(left)
			if got := h.extension(); got != want {
				t.Errorf("extension with %s of a minute left = %d s, want %d", left, got, want)
			}
		}
	})
}

func TestTurnsArrive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, "hi")
		f.turns = []Message{{Role: "user", Parts: []Part{Text("one")}}, {Role: "user", Parts: []Part{Text("two")}}}
		start(t, f, func(ctx context.Context, t *Task) error {
			one, two := <-t.Turns(), <-t.Turns()
			return t.Complete(ctx, Text(one.Text()+" "+two.Text()))
		})
		f.until(t, "the end", func() bool { return f.over["lease-a"] != "" })
		if got := f.said(); got != "completed =one two" {
			t.Errorf("reports = %q, want completed =one two", got)
		}
	})
}

func TestDirectMessagesAreConfirmedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t)
		for _, id := range []string{"msg-1", "msg-2"} {
			f.messages = append(f.messages, DirectMessage{
				ID: id, From: Sender{Org: "main", Kind: "user", ID: "ada"},
				Message: Message{Parts: []Part{Text(id)}},
			})
		}
		// The claim that confirms them is lost once, so they are delivered twice.
		f.claimFails = func(n int, w http.ResponseWriter) bool { return n == 2 && hangUp(w) }
		got := make(chan string, 10)
		stop := start(t, f, nil, func(c *Config) {
			c.OnMessage = func(_ context.Context,
				m DirectMessage,
			) {
				got <- m.Text()
			}
		})
		f.until(t, "both are confirmed", func() bool { return len(f.messages) == 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		close(got)
		var all []string
		for s := range got {
			all = append(all, s)
		}
		if strings.Join(all, " ") != "msg-1 msg-2" {
			t.Errorf("messages = %q, want msg-1 msg-2", all)
		}
	})
}

func TestStopHandsUnfinishedTasksBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, "slow", "quick")
		began := make(chan struct{}, 2)
		stopping := make(chan struct{})
		stop := start(t, f, func(ctx context.Context, t *Task) error {
			began <- struct{}{}
			if t.Text() == "quick" { // finishes within the grace period
				<-stopping
				return nil
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), ErrStopping) {
				panic(context.Cause(ctx))
			}
			return nil // which must not complete half of the work
		}, func(c *Config) { c.Capacity, c.Grace = 2, 4*time.Second })
		<-began
		<-began
		close(stopping)
		if err := stop(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.over["lease-a"] != "returned" || f.over["lease-b"] != "completed" || len(f.returned) != 1 {
			t.Errorf("leases = %v, want lease-a returned and lease-b completed", f.over)
		}
	})
}

func TestAStuckHandlerDoesNotKeepRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, "hi")
		began, release := make(chan struct{}), make(chan struct{})
		defer close(release)
		stop := start(t, f, func(context.Context, *Task) error {
			close(began)
			<-release
			return nil
		}, func(c *Config) { c.Grace = -1 })
		<-began
		if err := stop(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.over["lease-a"] != "returned" {
			t.Errorf("leases = %v, want lease-a returned", f.over)
		}
	})
}

func TestCapacityBoundsClaims(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, "1", "2", "3", "4", "5")
		release := make(chan struct{})
		running := make(chan struct{}, 5)
		start(t, f, func(context.Context, *Task) error {
			running <- struct{}{}
			<-release
			return nil
		}, func(c *Config) { c.Capacity = 2 })
		<-running
		<-running
		// Full, it still shows that it is there, and takes direct messages.
		f.until(t, "a claim for messages alone", func() bool { return f.claims[len(f.claims)-1].Max == 0 })
		f.mu.Lock()
		if len(f.tasks) != 3 {
			t.Errorf("%d tasks wait, want 3", len(f.tasks))
		}
		f.mu.Unlock()
		close(release)
		f.until(t, "all are done", func() bool { return len(f.over) == 5 })
	})
}

func TestRefusalsForGoodEndRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, status := range []int{401, 403, 404, 422} {
			f := newFake(t)
			f.claimFails = func(_ int, w http.ResponseWriter) bool { return refuse(w, status, "auth.x") }
			w, err := New(Config{URL: "http://parley.test", Agent: "scout", Key: "k", HTTPClient: f.http})
			if err != nil {
				t.Fatal(err)
			}
			err = w.Run(t.Context(), nil)
			var e *Error
			if !errors.As(err, &e) || e.Status != status || e.Code != "auth.x" {
				t.Errorf("%d: Run = %v, want %d auth.x", status, err, status)
			}
		}
	})
}

func TestClaimsAreRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, "hi")
		f.claimFails = func(n int, w http.ResponseWriter) bool {
			switch n {
			case 1:
				return hangUp(w)
			case 2:
				return refuse(w, http.StatusServiceUnavailable, "store.unavailable")
			}
			return false
		}
		start(t, f, func(context.Context, *Task) error { return nil })
		f.until(t, "the task is done", func() bool { return f.over["lease-a"] == "completed" })
	})
}

func TestMistakesAreToldAtOnce(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{
		{URL: "127.0.0.1:8080", Agent: "scout", Key: "k"},
		{URL: "http://x", Key: "k"},
		{URL: "http://x", Agent: "scout"},
		{URL: "http://x", Agent: "scout", Key: "k", Capacity: -1},
		{URL: "http://x", Agent: "scout", Key: "k", Lease: time.Millisecond},
		{URL: "http://x", Agent: "scout", Key: "k", Lease: 2 * time.Hour},
	} {
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), "worker: ") {
			t.Errorf("New(%+v) = %v, want an error", cfg, err)
		}
	}
}
