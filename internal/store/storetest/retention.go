package storetest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/task"
)

// day is a time within which all entries about one kind of records are one.
const day = 24 * time.Hour

// sweep deletes what has expired, until nothing is left, and returns how much of each kind it was.
func (w *world) sweep(keep store.Retention) store.Deleted {
	w.Helper()
	total := store.Deleted{}
	for range 100 {
		deleted, err := w.store.Sweep(w.Context(), w.now(), keep)
		w.must(err)
		if len(deleted) == 0 {
			return total
		}
		for kind, n := range deleted {
			total[kind] += n
		}
	}
	w.Fatal("the sweep does not end")
	return nil
}

// deletions returns what the audit log of an org says about deletions by age, oldest first.
func (w *world) deletions(org string) []string {
	w.Helper()
	list, err := w.store.Audit().List(w.Context(), org,
		identity.AuditFilter{Action: identity.RetentionDelete, Limit: identity.MaxLimit})
	w.must(err)
	out := []string{}
	for i := len(list) - 1; i >= 0; i-- {
		e := &list[i]
		n, _, _ := strings.Cut(e.Detail, " from before ")
		out = append(out, n+" "+e.Target)
		if e.Actor != identity.ServerActor || e.Outcome != identity.Done {
			w.Errorf("entry = %+v, want one of the server that it was done", e)
		}
	}
	return out
}

// wantDeletions compares the newest entries.
func (w *world) wantDeletions(org string, want ...string) {
	w.Helper()
	got := w.deletions(org)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("the audit log of %s says deleted = %q, want %q", org, got, want)
	}
}

// The audit log says once a day how many entries were deleted, also if it took many steps, and the
// other org keeps its own.
func testAuditRetention(w *world) {
	ctx := w.Context()
	for _, org := range []string{"acme", "globex"} {
		_, err := w.operator.CreateOrg(ctx, org, "")
		w.must(err)
	}
	const old = 1200 // more than one step deletes
	for i := range old {
		w.must(w.store.Audit().Append(ctx, identity.NewEntry(ctx, w.now(), "acme", "x.old", fmt.Sprint(i), "")))
	}
	w.advance(100 * day)
	w.must(w.store.Audit().Append(ctx, identity.NewEntry(ctx, w.now(), "acme", "x.new", "", "")))
	if got := w.sweep(store.Retention{}); len(got) != 0 {
		w.Errorf("without a limit, deleted %v", got)
	}
	w.wantDeletions("acme")
	if got := w.sweep(store.Retention{Audit: 90 * day}); got["audit entries"] != old+2 {
		w.Errorf("deleted %v, want %d entries of acme with the creation of both orgs", got, old+2)
	}
	w.wantDeletions("acme", fmt.Sprint(old+1, " audit entries"))
	w.wantDeletions("globex", "1 audit entries")
	left, err := w.store.Audit().List(ctx, "acme", identity.AuditFilter{Limit: identity.MaxLimit})
	w.must(err)
	if len(left) != 2 {
		w.Errorf("%d entries are left, want the new one and the one about the deletion", len(left))
	}
	w.advance(89 * day)
	w.sweep(store.Retention{Audit: 90 * day})
	w.advance(2 * day)
	w.sweep(store.Retention{Audit: 90 * day})
	w.wantDeletions("acme", "2 audit entries") // the entries of the first sweep are old now, too
}

func testFrictionRetention(w *world) {
	ctx := w.Context()
	_, err := w.operator.CreateOrg(ctx, "acme", "")
	w.must(err)
	ann := w.access("acme", "user:ann", memberScopes...)
	of := func(name string) func(*friction.Report) {
		return func(r *friction.Report) { r.Fingerprint = name }
	}
	for range 3 {
		w.meet(ann, of("undecided"))
		w.meet(ann, of("rejected"))
	}
	w.meet(ann, of("once"))
	f, _, err := w.frictions.Get(ctx, ann, "rejected")
	w.must(err)
	_, err = w.proposals.Resolve(ctx, w.access("acme", "user:root"), f.ProposalID,
		proposal.Resolution{Status: proposal.Rejected, Note: "no"})
	w.must(err)
	w.advance(100 * day)
	w.meet(ann, of("recent"))
	if got := w.sweep(store.Retention{Friction: 90 * day}); got["friction"] != 2 {
		w.Errorf("deleted %v, want two frictions", got)
	}
	w.wantDeletions("acme", "2 friction")
	for name, kept := range map[string]bool{"undecided": true, "rejected": false, "once": false, "recent": true} {
		_, reports, err := w.frictions.Get(ctx, ann, name)
		if kept {
			w.must(err)
			if len(reports) == 0 {
				w.Errorf("%s has lost its reports", name)
			}
			continue
		}
		w.want(err, errs.NotFound)
	}
	// The next report starts from one.
	if out := w.meet(ann, of("once")); out.Friction.Count != 1 || out.Filed {
		w.Errorf("a report after the deletion = %+v, want the first", out)
	}
}

// Sessions and grants are kept for a time after their end, but work no longer.
func testSessionRetention(w *world) {
	ctx := w.Context()
	w.must(w.store.Sessions().Create(ctx, "t1", nil, w.now().Add(time.Hour)))
	w.advance(2 * time.Hour)
	if got := w.sweep(store.Retention{Sessions: day}); got["sessions"] != 0 {
		w.Errorf("deleted %v, want no session on the day of its end", got)
	}
	if _, found, err := w.store.Sessions().Get(ctx, "t1", w.now()); err != nil || found {
		w.Errorf("an ended session: found %v, %v, want none", found, err)
	}
	w.advance(day)
	if got := w.sweep(store.Retention{Sessions: day}); got["sessions"] != 1 {
		w.Errorf("deleted %v, want one session", got)
	}
}

// What is swept elsewhere is in the audit log too.
func testDeletionsAreSaid(w *world) {
	ctx := w.Context()
	_, err := w.operator.CreateOrg(ctx, "acme", "")
	w.must(err)
	ann := w.access("acme", "user:ann", memberScopes...)
	k, err := idempotency.New("submit", "k", []byte("b"))
	w.must(err)
	_, err = w.proposals.Submit(ctx, ann, proposal.Submission{
		Title: "Once", Category: proposal.Process, Problem: "p", SuggestedFix: "f", Once: k,
	})
	w.must(err)
	c := w.call("acme", "user:ann", "bob")
	for _, id := range []string{"one", "two"} {
		w.send(c, id, "x")
		_, err = w.tasks.Cancel(ctx, c, id, task.All)
		w.must(err)
	}
	w.advance(40 * day)
	w.sweep(store.Retention{})
	for range 3 {
		_, err = w.tasks.Sweep(ctx, 30*day)
		w.must(err)
	}
	// On PostgreSQL, events get their numbers a moment after the commit, and are not deleted before.
	got := ""
	for deadline := time.Now().Add(time.Minute); !strings.Contains(got, " events") && time.Now().Before(deadline); {
		_, err := w.store.Events().Expire(ctx, w.now().Add(-30*day))
		w.must(err)
		got = strings.Join(w.deletions("acme"), ", ")
		time.Sleep(5 * time.Millisecond)
	}
	for _, want := range []string{"1 idempotency keys", "2 tasks", " events"} {
		if !strings.Contains(got, want) {
			w.Errorf("the audit log says deleted = %s, want also %s", got, want)
		}
	}
}

// Several nodes sweep the same store. Each row is deleted and counted once.
func testRacingSweeps(w *world) {
	ctx := w.Context()
	_, err := w.operator.CreateOrg(ctx, "acme", "")
	w.must(err)
	ann := w.access("acme", "user:ann", memberScopes...)
	const keys, old = 60, 900
	for i := range keys {
		k, err := idempotency.New("submit", fmt.Sprint("k", i), []byte("b"))
		w.must(err)
		_, err = w.proposals.Submit(ctx, ann, proposal.Submission{
			Title: "Once", Category: proposal.Process, Problem: "p", SuggestedFix: "f", Once: k,
		})
		w.must(err)
	}
	for i := range old {
		w.must(w.store.Audit().Append(ctx, identity.NewEntry(ctx, w.now(), "acme", "x.old", fmt.Sprint(i), "")))
	}
	w.advance(40 * day)
	sweeps := make([]store.Deleted, 6)
	var wg sync.WaitGroup
	for i := range sweeps {
		wg.Go(func() {
			for range 5 {
				deleted, err := w.store.Sweep(ctx, w.now(), store.Retention{Audit: 30 * day})
				if err != nil {
					w.Error(err)
				}
				if sweeps[i] == nil {
					sweeps[i] = store.Deleted{}
				}
				for kind, n := range deleted {
					sweeps[i][kind] += n
				}
			}
		})
	}
	wg.Wait()
	w.sweep(store.Retention{Audit: 30 * day})
	total := store.Deleted{}
	for _, s := range sweeps {
		for kind, n := range s {
			total[kind] += n
		}
	}
	if total["idempotency keys"] != keys || total["audit entries"] != old+1 {
		w.Errorf("racing sweeps deleted %v, want %d keys and %d entries", total, keys, old+1)
	}
	w.wantDeletions("acme", fmt.Sprint(old+1, " audit entries"), fmt.Sprint(keys, " idempotency keys"))
}
