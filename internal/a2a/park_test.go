package a2a

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/task"
)

func oneStream(o *httpx.Options, _ *Options) { o.Parked = httpx.ParkLimits{PerPrincipal: 1} }

// TestOneStreamTooManyIsRefusedInEveryBinding opens the only stream that its principal may have,
// and then asks for another one in each binding.
func TestOneStreamTooManyIsRefusedInEveryBinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneStream)
	base := w.h2c()
	c := a2apb.NewA2AServiceClient(dial(t, base))
	ada := w.caller("user:ada")
	ctx := as(t.Context(), ada)
	w.rpc(ada, "bot", "tasks/send", hello("t1"))
	openGRPC(t, ctx, c)

	for name, a := range map[string]*answer{
		"JSON-RPC":            w.rpc(ada, "bot", "tasks/sendSubscribe", hello("t2")),
		"JSON-RPC, to resume": w.rpc(ada, "bot", "tasks/resubscribe", `{"id":"t1"}`),
		"1.0, events only": w.rpc(ada, "bot", "SubscribeToTask", `{"id":"t1"}`,
			"Accept", "text/event-stream", "User-Agent", "Go-http-client/2.0"),
		"HTTP+JSON": w.do(ada, "POST", "/a2a/bot/message:stream", v1Hello("")),
	} {
		if a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" ||
			strings.Contains(a.Header.Get("Content-Type"), "event-stream") {
			t.Errorf("%s: status = %d, want 429 with Retry-After: %v %s", name, a.Status, a.Header, a.Body)
		}
	}
	a := w.rpc(ada, "bot", "tasks/resubscribe", `{"id":"t1"}`)
	if !strings.Contains(a.Body, `"code":"stream.too_many"`) {
		t.Errorf("got %s, want stream.too_many", a.Body)
	}
	for name, open := range map[string]func() error{
		"send": func() error {
			st, err := c.SendStreamingMessage(ctx, protoSend("bot", "more"))
			if err == nil {
				_, err = st.Recv()
			}
			return err
		},
		"subscribe": func() error {
			st, err := c.SubscribeToTask(ctx, &a2apb.SubscribeToTaskRequest{Tenant: "bot", Id: "t1"})
			if err == nil {
				_, err = st.Recv()
			}
			return err
		},
	} {
		if err := open(); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("gRPC, %s: err = %v, want ResourceExhausted", name, err)
		}
	}
	// The refused send has stored nothing.
	if a := w.rpc(ada, "bot", "tasks/get", `{"id":"t2"}`); !strings.Contains(a.Body, "-32001") {
		t.Errorf("got %s, want -32001", a.Body)
	}
	if a := w.rpc(w.caller("user:bob"), "echo", "tasks/sendSubscribe", hello("t3")); a.Status != 200 {
		t.Errorf("another principal: status = %d, want 200: %s", a.Status, a.Body)
	}
}

// TestASendThatWaitsHoldsNoSlot sends with Prefer: wait to an agent without workers while only two
// of its requests may be served at the same time.
func TestASendThatWaitsHoldsNoSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *httpx.Options, _ *Options) {
		o.MaxRequests, o.Parked = 4, httpx.ParkLimits{PerPrincipal: 3}
	})
	ada, base := w.caller("user:ada"), w.h2c()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, id := range []string{"a", "b", "c"} {
		go func() {
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+base+"/a2a/bot",
				strings.NewReader(envelope("tasks/send", hello(id))))
			r.Header.Set("Authorization", "Bearer "+ada)
			r.Header.Set("Prefer", "wait=60")
			if res, err := http.DefaultClient.Do(r); err == nil {
				_, _ = bufio.NewReader(res.Body).ReadString(0)
				res.Body.Close()
			}
		}()
		// The task is stored before the send waits, so it is visible.
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			a := w.rpc(ada, "bot", "tasks/get", `{"id":"`+id+`"}`)
			if strings.Contains(a.Body, `"result"`) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("task %s: got %s, want it stored", id, a.Body)
			}
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		a := w.rpc(ada, "bot", "tasks/send", hello("d"), "Prefer", "wait=60")
		if a.Status == http.StatusTooManyRequests && strings.Contains(a.Body, "wait.too_many") &&
			a.Header.Get("Retry-After") != "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d %s, want 429 wait.too_many", a.Status, a.Body)
		}
	}
}

func TestABatchPaysTheRateLimitForEachItem(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := newWorld(t, func(o *httpx.Options, _ *Options) {
		o.RateLimit, o.Now = 10, func() time.Time { return now }
	})
	ada := w.caller("user:ada")
	batch := func(n int) *answer {
		items := strings.TrimSuffix(strings.Repeat(envelope("tasks/get", `{"id":"none"}`)+",", n), ",")
		return w.do(ada, "POST", "/a2a/bot", "["+items+"]")
	}
	if a := batch(49); a.Status != 200 || strings.Count(a.Body, "-32001") != 49 {
		t.Fatalf("got %d %s, want 200 with 49 errors", a.Status, a.Body)
	}
	a := batch(3)
	if a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" ||
		strings.Contains(a.Body, "-32001") || !strings.Contains(a.Body, `"code":"request.rate_limited"`) ||
		!strings.Contains(a.Body, "batch") {
		t.Errorf("got %d %s, want 429 request.rate_limited", a.Status, a.Body)
	}
}

// stuckBody is a body whose first byte is read when it is released.
type stuckBody struct{ reading, release chan struct{} }

func (b *stuckBody) Read([]byte) (int, error) {
	close(b.reading)
	<-b.release
	return 0, io.EOF
}

// TestABatchGoesOnWithinTheAdmission lets the first item of a batch wait, which gives its slot
// back, while another request takes the slot. The other items must not run at the same time.
func TestABatchGoesOnWithinTheAdmission(t *testing.T) {
	t.Parallel()
	for name, free := range map[string]bool{"slot is taken": false, "slot is free": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(o *httpx.Options, _ *Options) { o.MaxRequests = 1 })
			ada, bot := w.caller("user:ada"), w.post("bot")
			batch := make(chan *answer, 1)
			go func() {
				body := "[" + envelope("tasks/send", hello("a")) + "," + envelope("tasks/send", hello("b")) + "]"
				batch <- w.do(ada, "POST", "/a2a/bot", body, "Prefer", "wait=60")
			}()
			lease := w.claim(bot)
			other := stuckBody{make(chan struct{}), make(chan struct{})}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for { // until the batch has given its slot back
					r := httptest.NewRequest(http.MethodPost, "/a2a/bot", &other)
					r.Header.Set("Authorization", "Bearer "+ada)
					rec := httptest.NewRecorder()
					w.handler.ServeHTTP(rec, r)
					if rec.Code != http.StatusTooManyRequests && rec.Code != http.StatusServiceUnavailable {
						return
					}
				}
			}()
			<-other.reading
			if free {
				close(other.release)
				<-ended
				defer func() {
					w.report(bot, w.claim(bot), task.Report{State: task.Completed})
					a := <-batch
					if strings.Contains(a.Body, `"error"`) || strings.Count(a.Body, `"result"`) != 2 {
						t.Errorf("got %d %s, want two results", a.Status, a.Body)
					}
				}()
			}
			w.report(bot, lease, task.Report{State: task.Completed})
			if !free {
				a := <-batch
				if !strings.Contains(a.Body, "request.too_many_concurrent") || strings.Count(a.Body, `"result"`) != 1 {
					t.Errorf("got %d %s, want one result and request.too_many_concurrent", a.Status, a.Body)
				}
				close(other.release)
				<-ended
			}
		})
	}
}
