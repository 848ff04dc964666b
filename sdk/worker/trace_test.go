package worker

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

// seenTraces records the trace of each request by path.
type seenTraces struct {
	next http.RoundTripper

	mu   sync.Mutex
	seen map[string][]string
}

// RoundTrip implements http.RoundTripper.
func (s *seenTraces) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.seen[r.URL.Path] = append(s.seen[r.URL.Path], r.Header.Get("traceparent")+" "+r.Header.Get("tracestate"))
	s.mu.Unlock()
	return s.next.RoundTrip(r)
}

// A handler gets the trace of its task, and its reports carry it back; claims and heartbeats do not.
func TestReportsCarryTheTraceOfTheTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, "one", "two")
		const parent, own = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01"
		want := client.Trace{Parent: parent, State: "a=1"}
		f.tasks[0].Trace = want
		seen := &seenTraces{next: f.http.Transport, seen: map[string][]string{}}
		stop := start(t, f, func(ctx context.Context, task *Task) error {
			if task.ID != "a" {
				return nil
			}
			if task.Trace != want || client.TraceOf(ctx) != want {
				return errors.New("the handler did not get the trace")
			}
			time.Sleep(5 * time.Second) // some heartbeats
			if err := task.Progress(client.WithTrace(ctx, client.Trace{Parent: own}), "on it"); err != nil {
				return err
			}
			return task.Complete(ctx)
		}, func(c *Config) { c.HTTPClient = &http.Client{Transport: seen} })
		time.Sleep(10 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if said := f.said(); !strings.Contains(said, "working on it; completed") {
			t.Errorf("the worker said %q", said)
		}
		const path = "/api/v1/agents/scout/"
		first := seen.seen[path+"leases/lease-a"]
		n := len(first)
		if n < 4 || slices.ContainsFunc(first[:n-2], func(s string) bool { return s != " " }) ||
			first[n-2] != own+" " || first[n-1] != parent+" a=1" {
			t.Errorf("the reports had the traces %q", first)
		}
		for _, other := range []string{"claim", "leases/lease-b"} {
			if got := seen.seen[path+other]; slices.ContainsFunc(got, func(s string) bool { return s != " " }) {
				t.Errorf("%s had the traces %q", other, got)
			}
		}
	})
}
