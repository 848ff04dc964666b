package dispatch

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// watched notes what is recorded of workers.
type watched struct {
	WorkerStore
	start time.Time
	notes []string
}

func (w *watched) note(what string) { w.notes = append(w.notes, what+" "+time.Since(w.start).String()) }

func (w *watched) See(context.Context, Worker, int) error {
	w.note("first")
	return nil
}

func (w *watched) SeeAgain(context.Context, Worker) error {
	w.note("again")
	return nil
}

func (w *watched) UpdatePresences(context.Context, time.Time) (int, error) {
	w.note("presences")
	return 0, nil
}

// noTasks is an empty queue.
type noTasks struct{ Queue }

func (noTasks) Claim(context.Context, string, string, Batch, Decision) ([]task.Change, error) {
	return nil, nil
}
func (noTasks) Expire(context.Context, int, Decision) ([]task.Change, error) { return nil, nil }
func (noTasks) Wake(context.Context, int, Decision) ([]task.Change, error)   { return nil, nil }
func (noTasks) LeasesOf(context.Context, string, int, Decision) ([]task.Change, error) {
	return nil, nil
}

// noMail is an empty mailbox.
type noMail struct{ Mailbox }

func (noMail) List(context.Context, string, string, Batch) ([]DirectMessage, error) { return nil, nil }

func idleService() (*Service, *watched) {
	w := &watched{start: time.Now()}
	stores := noStores
	stores.Queue, stores.Workers, stores.Mailbox = noTasks{}, w, noMail{}
	return New(Options{Stores: stores, Now: time.Now}), w
}

func TestAWaitingWorkerIsNotGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, store := idleService()
		c := &identity.Caller{
			Principal: identity.Principal{Org: "acme", Kind: identity.Agent, ID: "scout"}, Scopes: identity.AllScopes,
		}
		a, err := identity.Authorize(c, "acme", identity.ServeAgent)
		if err != nil {
			t.Fatal(err)
		}
		p := Post{access: a, target: Target{Org: "acme", ID: "scout"}}
		claim := func() {
			r := ClaimRequest{Worker: "w", Max: 1, Wait: 55 * time.Second, Lease: time.Minute, Capacity: 1}
			if _, err := s.Claim(t.Context(), p, r); err != nil {
				t.Fatal(err)
			}
		}
		claim()
		claim()
		time.Sleep(GoneAfter)
		claim()
		want := []string{
			"first 0s", "again 20s", "again 40s",
			"again 55s", "again 1m15s", "again 1m35s",
			"first 2m20s", "again 2m40s", "again 3m0s",
		}
		if !slices.Equal(store.notes, want) {
			t.Errorf("seen %q, want %q", store.notes, want)
		}
	})
}

// After a start, the workers have time to come back before their agents are reported as offline.
func TestPresencesWaitAfterAStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, store := idleService()
		ctx, cancel := context.WithTimeout(t.Context(), 42*time.Second)
		defer cancel()
		s.Run(ctx)
		if want := []string{"presences 30s", "presences 35s", "presences 40s"}; !slices.Equal(store.notes, want) {
			t.Errorf("updated %q, want %q", store.notes, want)
		}
	})
}
