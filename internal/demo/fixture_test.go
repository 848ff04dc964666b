package demo

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/webhook"
)

// town is a store with the company in it.
type town struct {
	testing.TB
	Services // with the clock of the tests
	store    *store.Store
	start    time.Time
}

// newTown seeds a store in a new folder.
func newTown(tb testing.TB) *town {
	tb.Helper()
	st, err := store.Open(tb.Context(), store.Options{Dir: orgtest.EmptyDir(tb)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = st.Close() })
	now := orgtest.Now()
	clock := NewClock(now.Add(-Age))
	newID := idsOf(clock)
	if _, err := identity.NewOperator(st.IdentityStores(), clock.Now, newID).Found(tb.Context(), Founding); err != nil {
		tb.Fatal(err)
	}
	err = Seed(tb.Context(), SeedOptions{
		Services: servicesOf(st, clock.Now, newID), Clock: clock, Now: now, Receiver: "http://127.0.0.1:9",
		Touch: func(ctx context.Context, used map[string]time.Time) error {
			if !unfinished(tb, st) {
				tb.Error("before its end the demo is finished")
			}
			return st.Identity().TouchKeys(ctx, used)
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return &town{TB: tb, Services: servicesOf(st, orgtest.Now, orgtest.NewID), store: st, start: now}
}

// unfinished returns what the next start of a demo would find.
func unfinished(tb testing.TB, st *store.Store) bool {
	tb.Helper()
	orgs, err := st.Identity().Orgs(tb.Context())
	if err != nil || len(orgs) != 1 {
		tb.Fatalf("%d orgs, %v, want 1", len(orgs), err)
	}
	keys, err := st.Identity().Keys(tb.Context(), orgs[0].ID, identity.KeyFilter{})
	if err != nil {
		tb.Fatal(err)
	}
	return Unfinished(orgs[0], keys)
}

// idsOf returns ids that sort by the time of the clock.
func idsOf(c *Clock) func(string) string {
	var mu sync.Mutex
	entropy := ulid.Monotonic(ulid.DefaultEntropy(), 0)
	return func(prefix string) string {
		mu.Lock()
		defer mu.Unlock()
		return prefix + lower(ulid.MustNew(ulid.Timestamp(c.Now()), entropy))
	}
}

func servicesOf(st *store.Store, now func() time.Time, newID func(string) string) Services {
	directory := agent.NewDirectory(st.Agents(), now)
	allowed := func(string) error { return nil }
	tasks := dispatch.New(dispatch.Options{
		Stores: st.DispatchStores(), Directory: dispatch.AgentDirectory(directory), Now: now, NewID: newID, Node: "node-1",
		Deliveries: delivery.New(delivery.Options{Store: st.Deliveries()}), CheckPushURL: allowed,
	})
	return Services{
		OrgAdmin: identity.NewOrgAdmin(identity.OrgAdminOptions{
			Stores: st.IdentityStores(), Agents: directory, Now: now, NewID: newID,
		}),
		Agents:    agent.NewRegistry(st.Agents(), directory, agent.Quotas{}, now),
		Proposals: proposal.New(st.Proposals(), now, newID),
		Followups: followup.New(st.Followups(), st.Identity(), now, newID, sending{tasks.Tasks}),
		Frictions: friction.New(st.Friction(), now, newID, proposal.Check),
		Tasks:     tasks.Tasks, Workers: tasks.Workers,
		Webhooks: webhook.NewService(webhook.Options{
			Store: st.Webhooks(), Log: st.Events(), CheckURL: allowed, Now: now, NewID: newID,
		}),
	}
}

// sending sends follow-ups to agents as the server does.
type sending struct{ tasks *dispatch.Tasks }

func (s sending) Send(ctx context.Context, a identity.Access, id string, f followup.Followup) (string, error) {
	call, err := s.tasks.Reach(ctx, a.Caller(), id)
	if err != nil {
		return "", err
	}
	t, err := s.tasks.Send(ctx, call, dispatch.SendRequest{FollowupID: f.ID, Message: says(f.Title)}, 0)
	return t.UID, err
}

func (s sending) Recall(ctx context.Context, a identity.Access, uid string) error {
	return s.tasks.Recall(ctx, a, uid)
}

// must authorizes the admin of the company.
func (w *town) must(action identity.Action) identity.Access {
	w.Helper()
	a, err := w.as("user:"+Founding.Admin, action)
	if err != nil {
		w.Fatal(err)
	}
	return a
}

// proposals returns all proposals with their text.
func (w *town) proposals() (list []proposal.Proposal) {
	w.Helper()
	all := proposal.Query{Status: proposal.All, Limit: proposal.MaxLimit}
	page, err := w.Proposals.List(w.Context(), w.must(identity.ListProposals), all)
	if err != nil {
		w.Fatal(err)
	}
	for i := range page.Items {
		p, err := w.Proposals.Get(w.Context(), w.must(identity.ReadProposal), page.Items[i].ID)
		if err != nil {
			w.Fatal(err)
		}
		list = append(list, p.Proposal)
	}
	return list
}

// events returns the whole log.
func (w *town) events() (list []event.Event) {
	w.Helper()
	for after := int64(0); ; {
		page, err := w.store.Events().Page(w.Context(), Founding.Org, event.Query{
			Filter: event.Filter{Viewer: event.Viewer{Admin: true}}, After: after, Limit: event.MaxLimit,
		})
		if err != nil {
			w.Fatal(err)
		}
		list = append(list, page.Events...)
		if after = page.Last; after >= page.Head {
			return list
		}
	}
}
