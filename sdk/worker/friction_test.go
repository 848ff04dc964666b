package worker_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/sdk/worker"
)

func frictionKey(t *testing.T, id string) string {
	t.Helper()
	register(id)
	op, err := app.OpenOperator(t.Context(), server.store, false)
	if err != nil {
		t.Fatal(err)
	}
	defer op.Close()
	_, key, err := op.Identity.CreateKey(t.Context(), identity.KeyRequest{
		Principal: identity.Principal{Org: "main", Kind: identity.Agent, ID: id}, Scopes: []string{"svc:a2a:serve", "svc:tasks:write"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestFriction(t *testing.T) {
	t.Parallel()
	key := frictionKey(t, "grumbler")
	f := worker.Friction{
		Fingerprint: "registry:timeout", Title: "The registry times out", Category: "reliability", Problem: "Pulls fail.", Evidence: "504",
	}
	counts := make(chan worker.FrictionCount, 2)
	run(t, "grumbler", key, func(ctx context.Context, task *worker.Task) error {
		for range 2 { // one task, one occurrence
			c, err := task.Friction(ctx, "main", f)
			if err != nil {
				return err
			}
			counts <- c
		}
		return nil
	})
	if got := send("grumbler", "job", "go"); got.Status.State != "completed" {
		t.Fatal(got)
	}
	first, second := <-counts, <-counts
	if !first.Counted || second.Counted || first.Count != second.Count || first.Threshold != 3 {
		t.Errorf("%+v, %+v", first, second)
	}
	w := worker.New(server.url, "grumbler", key)
	var last worker.FrictionCount
	for range 2 {
		var err error
		if last, err = w.Friction(t.Context(), "main", f); err != nil {
			t.Fatal(err)
		}
	}
	if last.Count < 3 || last.ProposalID == "" {
		t.Errorf("the third report: %+v", last)
	}
	var refused *worker.Error
	f.Category = "weather"
	if _, err := w.Friction(t.Context(), "main", f); !errors.As(err, &refused) || refused.Status != 422 {
		t.Errorf("a bad category: %v", err)
	}
	if _, err := w.Friction(t.Context(), "", f); err == nil {
		t.Error("no org is needed")
	}
}

// A report that may have arrived is repeated only if it then counts once.
func TestFrictionIsRepeatedWhereThatIsSafe(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if tries.Add(1) == 1 {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = rw.Write([]byte(`{"count":1,"threshold":3,"counted":true,"filed":false,"proposal_id":null}`))
	}))
	defer srv.Close()
	w := worker.New(srv.URL, "grumbler", "key")
	if _, err := w.Friction(t.Context(), "main", worker.Friction{}); err == nil || tries.Load() != 1 {
		t.Errorf("without an occurrence: %v after %d tries", err, tries.Load())
	}
	tries.Store(0)
	c, err := w.Friction(t.Context(), "main", worker.Friction{Occurrence: "run-1"})
	if err != nil || c.Count != 1 || tries.Load() != 2 {
		t.Errorf("with one: %+v, %v after %d tries", c, err, tries.Load())
	}
}
