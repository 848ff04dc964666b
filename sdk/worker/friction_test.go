package worker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-dev/parley/sdk/worker"
)

func TestFriction(t *testing.T) {
	t.Parallel()
	key := register("grumbler", "svc:tasks:write")
	f := worker.Friction{
		Fingerprint: "registry:timeout", Title: "The registry times out", Category: "reliability", Problem: "Pulls fail.",
		Evidence: "504",
	}
	counts := make(chan worker.FrictionCount, 2)
	run(t, "grumbler", key, func(ctx context.Context, task *worker.Task) error {
		for range 2 { // one task, one occurrence
			c, err := task.Friction(ctx, f)
			if err != nil {
				return err
			}
			counts <- c
		}
		return nil
	})
	if got := send("grumbler", "job", "go"); got.Status.State != "completed" {
		t.Fatalf("task = %s, want completed", got)
	}
	first, second := <-counts, <-counts
	if !first.Counted || second.Counted || first.Count != second.Count || first.Threshold != 3 {
		t.Errorf("counts = %+v, %+v; want only the first counted, with threshold 3", first, second)
	}
	w, err := worker.New(worker.Config{URL: server.URL, Agent: "grumbler", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	var last worker.FrictionCount
	for range 2 {
		var err error
		if last, err = w.Friction(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if last.Count < 3 || last.ProposalID == "" {
		t.Errorf("third report = %+v, want 3 or more and a proposal", last)
	}
	var refused *worker.Error
	f.Category = "weather"
	if _, err := w.Friction(t.Context(), f); !errors.As(err, &refused) || refused.Status != 422 {
		t.Errorf("bad category: error = %v, want 422", err)
	}
}

// A report whose response got lost is repeated, and counts once.
func TestFrictionOfLostResponsesCountsOnce(t *testing.T) {
	t.Parallel()
	var reports atomic.Int32
	proxy := server.Proxy(t, func(res *http.Response) error {
		if strings.HasSuffix(res.Request.URL.Path, "/friction") && reports.Add(1) == 1 {
			return errors.New("it got lost")
		}
		return nil
	})
	w, err := worker.New(worker.Config{URL: proxy, Agent: "unlucky", Key: register("unlucky", "svc:tasks:write")})
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.Friction(t.Context(), worker.Friction{
		Fingerprint: "lost:" + strings.ToLower(rand.Text()), Title: "Responses get lost", Category: "reliability",
		Problem: "They do.",
	})
	if err != nil || c.Count != 1 || !c.Counted || reports.Load() != 2 {
		t.Errorf("%+v, %v after %d reports; want one that counts after 2", c, err, reports.Load())
	}
}
