package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/sdk/worker"
)

func TestAWorkerFollowsEvents(t *testing.T) {
	t.Parallel()
	st, err := store.Open(context.Background(), store.Options{Dir: server.Store.Data})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	e := event.New("main", event.ProposalVoted, time.Now(), "proposal:worker", "user:ada", event.Members, []byte(`{}`))
	if err := st.Events().Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(worker.Config{URL: server.URL, Agent: "reader", Key: register("reader", "svc:tasks:read")})
	if err != nil {
		t.Fatal(err)
	}
	for got, err := range w.Events(t.Context(), worker.EventsOptions{Subject: e.Subject}) {
		if err != nil {
			t.Fatal(err)
		}
		if got.ID == e.ID {
			return
		}
	}
	t.Error("the iterator ended without the event")
}
