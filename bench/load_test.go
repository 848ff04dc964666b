package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAPacedJobReachesItsRate has a server that is slow at first: callers must catch up.
func TestAPacedJobReachesItsRate(t *testing.T) {
	t.Parallel()
	const callers = 4
	slow := make(chan struct{}, callers)
	for range callers {
		slow <- struct{}{}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-slow:
			time.Sleep(100 * time.Millisecond)
		default:
		}
		w.Header().Set("Content-Length", "0")
	}))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	j := job{
		Addr: addr, Callers: callers, Rate: 200, Duration: 600 * time.Millisecond,
		Requests: [][]byte{request("GET", addr, "/", "", "")},
	}
	r := j.run()
	if r.Failure != "" {
		t.Fatal(r.Failure)
	}
	// The machine may be busy with other tests: without catching up it would be 0.83.
	if want := float64(j.Rate); r.rate() < 0.9*want || r.rate() > 1.05*want {
		t.Errorf("%.0f requests per second, want %.0f", r.rate(), want)
	}
	if r.Max < 100_000 || r.P50 > r.P99 || r.P99 > r.Max {
		t.Errorf("p50 %.0f µs, p99 %.0f µs, max %.0f µs, want a slow request as the maximum", r.P50, r.P99, r.Max)
	}
}
