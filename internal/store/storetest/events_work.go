package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

// workLog reads the log of an org step by step.
type workLog struct {
	*world
	org   string
	after int64
	ids   map[string]bool
}

// workLog creates the org and returns its log from now on.
func (w *world) workLog(org string) *workLog {
	w.Helper()
	_, err := w.operator.CreateOrg(w.Context(), org, "")
	w.must(err)
	l := &workLog{world: w, org: org, ids: map[string]bool{}}
	l.after = l.page().Last
	return l
}

func (l *workLog) page() event.Page {
	l.Helper()
	page, err := l.store.Events().Page(l.Context(), l.org, event.Query{
		Filter: event.Filter{Viewer: event.Viewer{Admin: true}}, After: l.after, Limit: 100,
	})
	l.must(err)
	return page
}

// expect compares the events since the last call: "type subject actor", and the scope unless all
// members see it.
func (l *workLog) expect(want ...string) {
	l.Helper()
	page := l.page()
	var got []string
	for i := range page.Events {
		e := &page.Events[i]
		got = append(got, strings.TrimRight(fmt.Sprintf("%s %s %s %s", e.Type, e.Subject, e.Actor, e.Scope), " "))
		if l.ids[e.ID] || e.Org != l.org || e.Version != 1 || e.At.IsZero() {
			l.Errorf("event = %+v, want org %s, version 1, a time, and an id of its own", e, l.org)
		}
		l.ids[e.ID] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		l.Errorf("events (-want +got):\n%s", diff)
	}
	l.after = page.Last
}

func (w *world) onceKey(operation, value string) *idempotency.Key {
	w.Helper()
	k, err := idempotency.New(operation, value, []byte(value))
	w.must(err)
	return k
}

func testProposalEvents(w *world) {
	ctx := w.Context()
	log, other := w.workLog("acme"), w.workLog("globex")
	admin, bob := w.access("acme", "user:root"), w.access("acme", "agent:bob", memberScopes...)
	submission := proposal.Submission{
		Title: "Retry", Category: proposal.Process, Problem: "p", SuggestedFix: "f", Status: proposal.Draft,
		Once: w.onceKey("submit", "k1"),
	}
	made, err := w.proposals.Submit(ctx, bob, submission)
	w.must(err)
	id, about := made.Proposal.ID, "proposal:"+made.Proposal.ID
	log.expect("proposal.drafted " + about + " agent:bob draft agent:bob")
	_, err = w.proposals.Submit(ctx, bob, submission)
	w.must(err)
	log.expect() // a repeated request

	_, err = w.proposals.Edit(ctx, bob, id, proposal.Edit{Title: ptr("Retry")})
	w.must(err)
	log.expect() // nothing changed
	_, err = w.proposals.Edit(ctx, admin, id, proposal.Edit{Title: ptr("Retry uploads"), Priority: ptr(proposal.High)})
	w.must(err)
	log.expect("proposal.edited " + about + " user:root draft agent:bob")
	_, err = w.proposals.Vote(ctx, bob, id, proposal.Ballot{Choice: proposal.For})
	w.want(err, errs.Conflict)
	log.expect() // refused

	resolve := func(s proposal.Status, note string) proposal.Proposal {
		w.Helper()
		out, err := w.proposals.Resolve(ctx, admin, id, proposal.Resolution{
			Status: s, Note: note, Once: w.onceKey("patch", string(s)+note),
		})
		w.must(err)
		return out.Proposal
	}
	resolve(proposal.Open, "")
	log.expect("proposal.opened " + about + " user:root")
	_, err = w.proposals.Edit(ctx, bob, id, proposal.Edit{Problem: ptr("Uploads fail.")})
	w.must(err)
	log.expect("proposal.edited " + about + " agent:bob")
	for _, choice := range []proposal.Choice{proposal.For, proposal.Against} { // the second replaces the first
		_, err = w.proposals.Vote(ctx, bob, id, proposal.Ballot{Choice: choice})
		w.must(err)
		log.expect("proposal.voted " + about + " agent:bob")
	}
	_, err = w.proposals.WithdrawVote(ctx, bob, id)
	w.must(err)
	log.expect("proposal.vote_withdrawn " + about + " agent:bob")
	_, err = w.proposals.WithdrawVote(ctx, bob, id)
	w.want(err, errs.NotFound)
	_, err = w.proposals.Resolve(ctx, admin, id, proposal.Resolution{Status: proposal.Resolved})
	w.want(err, errs.Conflict)
	log.expect()

	resolve(proposal.Rejected, "no")
	log.expect("proposal.rejected " + about + " user:root")
	resolve(proposal.Open, "again")
	log.expect("proposal.reopened " + about + " user:root")
	followupID := resolve(proposal.Approved, "").FollowupID
	log.expect("proposal.approved "+about+" user:root", "followup.created followup:"+followupID+" user:root")
	resolve(proposal.Approved, "")
	log.expect() // a repeated request
	_, err = w.followups.Change(ctx, bob, followupID, followup.Edit{Status: ptr(followup.Done)})
	w.must(err)
	log.expect("followup.done followup:" + followupID + " agent:bob")
	resolve(proposal.Resolved, "")
	log.expect("proposal.resolved " + about + " user:root")

	open := w.submit(bob, nil)
	log.expect("proposal.submitted proposal:" + open.ID + " agent:bob")
	other.expect()
}

func testFollowupEvents(w *world) {
	ctx := w.Context()
	log := w.workLog("acme")
	admin := w.access("acme", "user:root")
	_, err := w.operator.CreateMember(ctx, identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}, "", false)
	w.must(err)
	log.after = log.page().Last
	creation := followup.Creation{Title: "Write it", Once: w.onceKey("create", "k")}
	made, err := w.followups.Create(ctx, admin, creation)
	w.must(err)
	id, about := made.Followup.ID, "followup:"+made.Followup.ID
	log.expect("followup.created " + about + " user:root")
	_, err = w.followups.Create(ctx, admin, creation)
	w.must(err)
	log.expect() // a repeated request
	for _, c := range []struct {
		edit followup.Edit
		want []string
	}{
		{followup.Edit{Title: ptr("Write it"), Status: ptr(followup.Open)}, nil},
		{followup.Edit{Description: ptr("All of it.")}, []string{"edited"}},
		{followup.Edit{Assignee: ptr("user:ann")}, []string{"assigned"}},
		{followup.Edit{Status: ptr(followup.InProgress)}, []string{"started"}},
		{followup.Edit{Status: ptr(followup.Open)}, []string{"reopened"}},
		{followup.Edit{Status: ptr(followup.Canceled), Assignee: ptr("")}, []string{"assigned", "canceled"}},
		{followup.Edit{Status: ptr(followup.Open), Title: ptr("Again")}, []string{"edited", "reopened"}},
		{followup.Edit{Status: ptr(followup.Done), Once: w.onceKey("patch", "done")}, []string{"done"}},
		{followup.Edit{Status: ptr(followup.Done), Once: w.onceKey("patch", "done")}, nil}, // a repeated request
	} {
		_, err := w.followups.Change(ctx, admin, id, c.edit)
		w.must(err)
		var want []string
		for _, typ := range c.want {
			want = append(want, "followup."+typ+" "+about+" user:root")
		}
		log.expect(want...)
	}
	_, err = w.followups.Change(ctx, admin, id, followup.Edit{Status: ptr(followup.Canceled)})
	w.want(err, errs.Conflict)
	log.expect()
}

func testFrictionEvents(w *world) {
	log := w.workLog("acme")
	bob := w.access("acme", "agent:bob", memberScopes...)
	const reported, filed = "friction.reported friction:registry:timeout agent:bob",
		"friction.filed friction:registry:timeout agent:bob"
	again := func(r *friction.Report) { r.Occurrence = "run-1" }
	w.meet(bob, again)
	log.expect(reported)
	w.meet(bob, again)
	log.expect() // the same occurrence
	w.meet(bob, nil)
	log.expect(reported)
	out := w.meet(bob, nil)
	log.expect(reported, filed, "proposal.submitted proposal:"+out.Friction.ProposalID+" agent:bob")
	w.meet(bob, nil)
	log.expect(reported)
}

func testTaskEvents(w *world) {
	ctx := w.Context()
	log := w.workLog("acme")
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	const seen = " only user:ann"
	report := func(lease string, s task.State) {
		w.Helper()
		_, err := w.tasks.Report(ctx, p, lease, task.Report{State: s})
		w.must(err)
	}

	sent := w.send(c, "t1", "hello")
	about := "task:" + sent.UID
	log.expect("task.created " + about + " user:ann" + seen)
	w.send(c, "t1", "hello")
	log.expect() // a retry
	a := w.claim(p)
	report(a.Lease.Token, task.Working)
	log.expect()
	report(a.Lease.Token, task.InputRequired)
	log.expect("task.input_required " + about + " agent:bob" + seen)
	w.send(c, "t1", "the second")
	a = w.claim(p)
	report(a.Lease.Token, task.AuthRequired)
	log.expect("task.input_required " + about + " agent:bob" + seen)
	w.send(c, "t1", "granted")
	a = w.claim(p)
	report(a.Lease.Token, task.Completed)
	log.expect("task.completed " + about + " agent:bob" + seen)
	_, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Completed})
	w.want(err, errs.Conflict)
	log.expect()

	for _, s := range []task.State{task.Failed, task.Rejected} {
		uid := w.send(c, "ends "+string(s), "x").UID
		report(w.claim(p).Lease.Token, s)
		log.expect("task.created task:"+uid+" user:ann"+seen, "task."+string(s)+" task:"+uid+" agent:bob"+seen)
	}

	uid := w.send(c, "canceled", "x").UID
	for range 2 { // the second time it is refused
		_, err = w.tasks.Cancel(ctx, c, "canceled", task.All)
	}
	w.want(err, errs.Conflict)
	log.expect("task.created task:"+uid+" user:ann"+seen, "task.canceled task:"+uid+" user:ann"+seen)

	uid = w.send(c, "recalled", "x").UID
	w.must(w.tasks.Recall(ctx, w.as(w.access("acme", "user:root"), identity.ChangeFollowup), uid))
	log.expect("task.created task:"+uid+" user:ann"+seen, "task.canceled task:"+uid+" user:root"+seen)

	foreign := w.call("globex", "service:crm", "bob")
	uid = w.send(foreign, "t1", "x").UID
	_, err = w.tasks.Cancel(ctx, foreign, "t1", task.All)
	w.must(err)
	log.expect(
		"task.created task:"+uid+" globex/service:crm admins", "task.canceled task:"+uid+" globex/service:crm admins",
	)

	uid = w.send(c, "lost", "x").UID
	w.claim(p)
	_, err = w.store.Tasks().Update(ctx, "acme", uid, 0, func(cur task.Current) (task.Change, error) {
		cur.Task.Attempts, cur.Task.Lease.ExpiresAt = task.MaxAttempts-1, cur.Clock.Add(-time.Second)
		return task.Change{Task: cur.Task}, nil
	})
	w.must(err)
	_, err = w.store.Tasks().Expire(ctx, 10, func(cur task.Current) (task.Change, error) {
		return task.DecideExpire(cur.Task, w.now(), cur.Clock)
	})
	w.must(err)
	log.expect("task.created task:"+uid+" user:ann"+seen, "task.failed task:"+uid+" system"+seen)

	w.tasks.Host(dispatch.Target{ID: "echo", Org: "acme", Public: true}, dispatch.Echo{}, dispatch.Hosting{})
	w.background(w.tasks.Run)
	to, hello := w.call("acme", "user:ann", "echo"), dispatch.SendRequest{Message: says("x")}
	echoed, err := w.tasks.Send(ctx, to, hello, time.Minute)
	w.must(err)
	log.expect("task.created task:"+echoed.UID+" user:ann"+seen, "task.completed task:"+echoed.UID+" agent:echo"+seen)
}

func testMirrorEvents(w *world) {
	ctx := w.Context()
	log := w.workLog("acme")
	admin, p, c := w.access("acme", "user:root"), w.post("bob"), w.call("acme", "user:root", "bob")
	made, err := w.followups.Create(ctx, admin, followup.Creation{Title: "Write it"})
	w.must(err)
	about, seen := "followup:"+made.Followup.ID, " only user:root"
	log.expect("followup.created " + about + " user:root")
	send := func() string {
		w.Helper()
		t, err := w.tasks.Send(ctx, c, dispatch.SendRequest{Message: says("do it"), FollowupID: made.Followup.ID}, 0)
		w.must(err)
		return "task:" + t.UID
	}
	report := func(lease string, s task.State) {
		w.Helper()
		_, err := w.tasks.Report(ctx, p, lease, task.Report{State: s})
		w.must(err)
	}
	uid := send()
	log.expect("task.created "+uid+" user:root"+seen, "followup.assigned "+about+" user:root")
	lease := w.claim(p).Lease.Token
	log.expect("followup.started " + about + " agent:bob")
	report(lease, task.Failed)
	log.expect("task.failed "+uid+" agent:bob"+seen, "followup.reopened "+about+" agent:bob")
	uid = send()
	log.expect("task.created " + uid + " user:root" + seen)
	lease = w.claim(p).Lease.Token
	log.expect("followup.started " + about + " agent:bob")
	report(lease, task.Completed)
	log.expect("task.completed "+uid+" agent:bob"+seen, "followup.done "+about+" agent:bob")
}
