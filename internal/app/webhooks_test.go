package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/webhook"
)

// within returns the next value of a channel, or the zero value if it is closed.
func within[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing happened within a minute")
		panic("unreachable")
	}
}

// Webhooks work without pushes, soon after the event, and a stop waits for the request in flight.
func TestEventsAreDeliveredToWebhooks(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan string, 10), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("webhook-signature") == "" || !strings.HasPrefix(r.Header.Get("User-Agent"), "Parley/") {
			t.Errorf("headers %v", r.Header)
		}
		arrived <- r.Header.Get("webhook-id")
		select {
		case <-release:
		case <-time.After(time.Minute):
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(receiver.Close)
	cfg := testConfig(t)
	cfg.OutboundAllow, cfg.Push, cfg.MaxWebhooks = []string{"127.0.0.1"}, false, 2
	s := startServer(t, cfg)
	caller, err := s.auth.Authenticate(t.Context(), s.First().Secret)
	if err != nil {
		t.Fatal(err)
	}
	a, err := identity.Authorize(caller, caller.Org, identity.ManageWebhooks)
	if err != nil {
		t.Fatal(err)
	}
	hook, _, err := s.webhooks.Create(t.Context(), a, webhook.Creation{
		URL: receiver.URL, Types: []event.Type{event.WebhookChanged},
	})
	if err != nil {
		t.Fatal(err)
	}
	quiet, _, err := s.webhooks.Create(t.Context(), a, webhook.Creation{
		URL: "https://hooks.example/", State: webhook.Paused,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.webhooks.Create(t.Context(), a, webhook.Creation{URL: receiver.URL})
	if err == nil || !strings.Contains(err.Error(), "--max-webhooks") {
		t.Errorf("a third webhook: %v, want a refusal", err)
	}
	for i := range 2 {
		text := fmt.Sprint(i)
		if _, err := s.webhooks.Update(t.Context(), a, quiet.ID, webhook.Edit{Description: &text}); err != nil {
			t.Fatal(err)
		}
	}
	first := within(t, arrived)
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown() }()
	within(t, s.tasks.Stopping())
	select {
	case err := <-stopped:
		t.Fatalf("stopped with a request on its way: %v", err)
	case <-time.After(300 * time.Millisecond): // it would have stopped by now
	}
	close(release)
	if err := within(t, stopped); err != nil {
		t.Fatal(err)
	}
	s = startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	if second := within(t, arrived); second == first || !strings.HasPrefix(second, "evt-") {
		t.Errorf("the next server sent %s after %s, want the next event", second, first)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		w, err := s.webhooks.Get(t.Context(), a, hook.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, metrics := get(t, s.URL()+"/metrics", "")
		if w.Cursor == w.Head && strings.Contains(metrics, `parley_webhook_attempts_total{outcome="delivered"} 1`) &&
			strings.Contains(metrics, "parley_webhooks_due 0") && strings.Contains(metrics, "parley_webhooks_failed 0") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("webhook %+v, metrics:\n%s", w, metrics)
		}
	}
}
