package a2a

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/task"
)

// stuck is an agent that never ends its work.
type stuck struct{}

func (stuck) Run(ctx context.Context, _ task.Assignment, _ func(context.Context, task.Report) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestABatchOfBlockingSendsWaitsOnce sends five messages in one batch, each of which
// alone would wait for a minute.
func TestABatchOfBlockingSendsWaitsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.orgs.Agent(agent.Agent{ID: "stuck", Org: "acme", Name: "Stuck"})
		w.tasks.Host(task.Target{ID: "stuck", Org: "acme"}, stuck{})
		ada := w.caller("user:ada")
		for _, c := range []struct{ method, params, header string }{
			{"SendMessage", `{"message":{"messageId":"one-%d","role":"ROLE_USER","parts":[{"text":"hello"}]}}`, ""},
			{"message/send", `{"message":{"messageId":"two-%d","role":"user","parts":[{"kind":"text","text":"hello"}]},"configuration":{"blocking":true}}`, ""},
			{"tasks/send", `{"id":"three-%d","message":{"role":"user","parts":[{"type":"text","text":"hello"}]}}`, "wait=60"},
		} {
			items := make([]string, 5)
			for i := range items {
				items[i] = envelope(c.method, fmt.Sprintf(c.params, i))
			}
			start := time.Now()
			a := w.do(ada, "POST", "/a2a/stuck", "["+strings.Join(items, ",")+"]", "Prefer", c.header)
			waited := time.Since(start)
			if a.Status != http.StatusOK || strings.Count(a.Body, `"result"`) != len(items) {
				t.Errorf("%s: %d %s", c.method, a.Status, a.Body)
			}
			if waited < blockFor || waited > blockFor+5*time.Second {
				t.Errorf("%s: a batch of %d waited %v; want %v", c.method, len(items), waited, blockFor)
			}
		}
	})
}

// TestARequestWhoseClientHasGoneIsNoFault reads from the store with a context that has
// ended, which SQLite reports as an error of its own.
func TestARequestWhoseClientHasGoneIsNoFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	w.rpc(ada, "bot", "tasks/send", hello("t1"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, body := range []string{
		envelope("tasks/get", `{"id":"t1"}`), envelope("GetTask", `{"id":"t1"}`), envelope("ListTasks", `{}`), envelope("tasks/send", hello("t1")),
	} {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/a2a/bot", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+ada)
		rec := httptest.NewRecorder()
		w.handler.ServeHTTP(rec, r)
		if rec.Code == http.StatusInternalServerError || !strings.Contains(rec.Body.String(), "request.canceled") {
			t.Errorf("%s: %d %s", body, rec.Code, rec.Body)
		}
	}
	if s := w.logs.String(); strings.Contains(s, "ERROR") {
		t.Error(s)
	}
}
