package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// sendPushed sends a task to the echo agent, with a push configuration.
func sendPushed(t *testing.T, s *Server, caller *identity.Caller, id, url string) error {
	t.Helper()
	call, err := s.tasks.Reach(t.Context(), caller, "echo")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.tasks.Send(t.Context(), call, dispatch.SendRequest{
		ID: id, Message: task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: "hello"}}},
		Push: &task.PushConfig{ID: "hook", URL: url, Form: task.PushV1},
	}, 0)
	return err
}

func TestEventsArePushedAndAStopWaitsForTheOneOnItsWay(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan string, 10), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("webhook-signature") == "" || !strings.HasPrefix(r.Header.Get("User-Agent"), "Parley/") {
			t.Errorf("headers %v", r.Header)
		}
		arrived <- string(body)
		<-release
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(receiver.Close)
	cfg := testConfig(t)
	cfg.OutboundAllow = []string{"127.0.0.1"}
	s := startServer(t, cfg)
	caller, err := s.auth.Authenticate(t.Context(), s.First().Secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := sendPushed(t, s, caller, "t-1", receiver.URL); err != nil {
		t.Fatal(err)
	}
	if first := <-arrived; !strings.Contains(first, "TASK_STATE_SUBMITTED") {
		t.Errorf("pushed %s", first)
	}
	_, keys := get(t, s.URL()+"/.well-known/jwks.json", "")
	if !strings.Contains(keys, `"crv":"Ed25519"`) {
		t.Errorf("keys %s", keys)
	}
	res, err := http.Get(s.URL() + "/.well-known/jwks.json")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if cc := res.Header.Get("Cache-Control"); res.StatusCode != http.StatusOK || cc != "public, max-age=3600" {
		t.Errorf("keys: %d, Cache-Control %q; want 200, public for an hour", res.StatusCode, cc)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown() }()
	<-s.tasks.Stopping()
	select {
	case err := <-stopped:
		t.Fatalf("stopped with a push on its way: %v", err)
	case <-time.After(300 * time.Millisecond): // it would have stopped by now
	}
	close(release)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	// The next server goes on where this one ended, with the same key.
	s = startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	for _, want := range []string{"TASK_STATE_WORKING", "artifactUpdate", "TASK_STATE_COMPLETED"} {
		if got := <-arrived; !strings.Contains(got, want) {
			t.Errorf("pushed %s; want %s", got, want)
		}
	}
	if _, again := get(t, s.URL()+"/.well-known/jwks.json", ""); again != keys {
		t.Errorf("after a restart the key is another one")
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		_, metrics := get(t, s.URL()+"/metrics", "")
		if strings.Contains(metrics, `parley_push_attempts_total{outcome="delivered"} 3`) &&
			strings.Contains(metrics, `parley_push_attempts_total{outcome="dead"} 0`) &&
			strings.Contains(metrics, "parley_push_configs_due 0") && strings.Contains(metrics, "parley_push_configs_dead 0") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("metrics:\n%s", metrics)
		}
	}
	if err := sendPushed(t, s, caller, "t-2", "https://10.0.0.1/"); err == nil || !strings.Contains(err.Error(), outboundFlag) {
		t.Errorf("a private address: %v", err)
	}
}

func TestPushesCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Push = false
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	if status, keys := get(t, s.URL()+"/.well-known/jwks.json", ""); status != http.StatusOK ||
		strings.Contains(keys, "Ed25519") {
		t.Errorf("a key for pushes is published: %d %s", status, keys)
	}
	if s.tasks.Pushes() {
		t.Error("pushes are on")
	}
}
