package a2a

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestABatchOfBlockingSendsWaitsOnce checks that the items of a batch, which share a
// call, share the time that it may wait.
func TestABatchOfBlockingSendsWaitsOnce(t *testing.T) {
	t.Parallel()
	c := &call{}
	if first := c.blocks(); first > blockFor || first < blockFor-10*time.Second {
		t.Fatalf("the first item waits %v; want %v", first, blockFor)
	}
	c.blockUntil = c.blockUntil.Add(time.Second - blockFor) // all but a second of it has passed
	if second := c.blocks(); second > time.Second {
		t.Errorf("the second item waits %v; want what the first has left", second)
	}
	c.blockUntil = c.blockUntil.Add(-time.Second)
	if third := c.blocks(); third != 0 {
		t.Errorf("the third item waits %v; want 0", third)
	}
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
