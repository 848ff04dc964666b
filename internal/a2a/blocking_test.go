package a2a

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/task"
)

// TestABatchOfBlockingSendsWaitsOnce sends a batch to a worker that ignores the first task and
// completes the others at once. The first item uses up the time that the batch may wait, so the
// others return their tasks at once.
func TestABatchOfBlockingSendsWaitsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *httpx.Options, o *Options) { o.BlockFor = time.Second })
	ada, p := w.caller("user:ada"), w.post("bot")
	w.rpc(ada, "bot", "tasks/send", hello("t0"))
	w.claim(p) // now the worker is known; otherwise the send would not wait
	const items = 3
	var work sync.WaitGroup
	work.Go(func() {
		for i := range items {
			c, err := w.tasks.Claim(t.Context(), p, dispatch.ClaimRequest{
				Worker: "w", Max: 1, Wait: 20 * time.Second, Lease: time.Minute, Capacity: 100,
			})
			if err != nil || len(c.Assignments) != 1 {
				t.Errorf("claimed %d tasks, %v, want 1", len(c.Assignments), err)
				return
			}
			if i == 0 {
				continue
			}
			lease := c.Assignments[0].Lease.Token
			if _, err := w.tasks.Report(t.Context(), p, lease, task.Report{State: task.Completed}); err != nil {
				t.Error(err)
			}
		}
	})
	var batch []string
	for i := range items {
		batch = append(batch, envelope("SendMessage",
			fmt.Sprintf(`{"message":{"messageId":"m%d","role":"ROLE_USER","parts":[{"text":"a"}]}}`, i)))
	}
	var got []struct {
		Result struct {
			Task struct{ Status struct{ State string } }
		}
	}
	a := w.do(ada, "POST", "/a2a/bot", "["+strings.Join(batch, ",")+"]")
	if err := json.Unmarshal([]byte(a.Body), &got); err != nil || len(got) != items {
		t.Fatalf("got %v in %s, want %d responses", err, a.Body, items)
	}
	work.Wait()
	if state := got[0].Result.Task.Status.State; state != "TASK_STATE_WORKING" {
		t.Errorf("state of the first item = %s, want TASK_STATE_WORKING after the wait", state)
	}
	for i, r := range got[1:] {
		if state := r.Result.Task.Status.State; state == "TASK_STATE_COMPLETED" {
			t.Errorf("state of item %d = %s, want the state without a wait", i+1, state)
		}
	}
}

// TestARequestWhoseClientHasGoneIsNoFault reads from the store with a context that has ended, which
// SQLite reports with its own error.
func TestARequestWhoseClientHasGoneIsNoFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	w.rpc(ada, "bot", "tasks/send", hello("t1"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, body := range []string{
		envelope("tasks/get", `{"id":"t1"}`), envelope("GetTask", `{"id":"t1"}`),
		envelope("ListTasks", `{}`), envelope("tasks/send", hello("t1")),
	} {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/a2a/bot", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+ada)
		rec := httptest.NewRecorder()
		w.handler.ServeHTTP(rec, r)
		if rec.Code == http.StatusInternalServerError || !strings.Contains(rec.Body.String(), "request.canceled") {
			t.Errorf("%s: got %d %s, want request.canceled", body, rec.Code, rec.Body)
		}
	}
	if s := w.logs.String(); strings.Contains(s, "ERROR") {
		t.Errorf("log = %s, want no errors", s)
	}
}
