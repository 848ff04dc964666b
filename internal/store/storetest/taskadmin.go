package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// testAttempts: the timeline of a task has every attempt with its worker, and the writes of the
// worker, but not the messages of the sender.
func testAttempts(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	sent := w.send(c, "t1", `says "Attempt":1 itself`)
	claim := func(worker string) dispatch.Assignment {
		w.Helper()
		got, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{Worker: worker, Max: 1, Lease: time.Minute, Capacity: 1})
		w.must(err)
		return got.Assignments[0]
	}
	w.must(w.tasks.Return(ctx, p, claim("first").Lease.Token))
	a := claim("second")
	w.report(p, a, task.Report{State: task.Working, Message: ptr(agentSays("half"))})
	for range 2 {
		w.report(p, a, task.Report{Extend: time.Minute})
	}
	w.send(c, "t1", "hurry")
	w.report(p, a, task.Report{Artifacts: []task.ArtifactUpdate{artifact("out", "done", false)}})
	w.report(p, a, task.Report{State: task.Failed, Message: ptr(agentSays("broken"))})

	admin := w.as(w.access("acme", "user:ann"), identity.ReadTasks)
	got, cut, err := w.tasks.OrgAttempts(ctx, admin, sent.UID)
	w.must(err)
	want := []task.Attempt{
		{Number: 1, Worker: "first", Ended: task.LeaseReturned, State: task.Working},
		{Number: 1, Worker: "second", Ended: task.LeaseDone, State: task.Failed, Text: "broken", Heartbeats: 2, Reports: 2},
	}
	ignore := cmpopts.IgnoreFields(task.Attempt{}, "QueuedAt", "StartedAt", "EndedAt", "LastReport")
	if diff := cmp.Diff(want, got, ignore, cmpopts.IgnoreUnexported(task.Attempt{})); diff != "" || cut {
		w.Errorf("cut = %v, want false; attempts (-want +got):\n%s", cut, diff)
	}
	for i := range got {
		if got[i].EndedAt.Before(got[i].StartedAt) || got[i].StartedAt.Before(got[i].QueuedAt) || got[i].QueuedAt.IsZero() {
			w.Errorf("attempt %d waits from %s and lasts from %s to %s", i, got[i].QueuedAt, got[i].StartedAt, got[i].EndedAt)
		}
	}
	_, _, err = w.tasks.OrgAttempts(ctx, w.as(w.access("other", "user:ann"), identity.ReadTasks), sent.UID)
	w.want(err, errs.NotFound)
}

// testFailures: failed tasks of an agent are grouped by message.
func testFailures(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	for _, said := range []string{"no disk", "", "no disk", "timeout", "no disk", "no disk"} {
		w.send(c, w.newID("t"), "hello")
		r := task.Report{State: task.Failed}
		if said == "timeout" {
			r.State = task.Rejected
		}
		if said != "" {
			r.Message = ptr(agentSays(said))
		}
		w.report(p, w.claim(p), r)
	}
	w.send(c, "fine", "hello")
	w.report(p, w.claim(p), task.Report{State: task.Completed, Message: ptr(agentSays("no disk"))})
	type group struct {
		Text         string
		Count, Named int
	}
	groups := func(org, agent string) (out []group) {
		w.Helper()
		list, err := w.tasks.Failures(ctx, w.as(w.access(org, "user:ann"), identity.ReadTasks), agent)
		w.must(err)
		for _, f := range list {
			out = append(out, group{f.Text, f.Count, len(f.Tasks)})
		}
		return out
	}
	want := []group{{"no disk", 4, 3}, {"timeout", 1, 1}, {"", 1, 1}}
	if diff := cmp.Diff(want, groups("acme", "bob")); diff != "" {
		w.Errorf("failures (-want +got):\n%s", diff)
	}
	if got := append(groups("other", "bob"), groups("acme", "open")...); got != nil {
		w.Errorf("failures of others = %v, want none", got)
	}
}

// testCrews: the workers and the queue of each agent are counted.
func testCrews(w *world) {
	ctx := w.Context()
	w.team("acme", "bob", "scout")
	w.team("other", "scout")
	now := w.now()
	for _, worker := range []dispatch.Worker{
		{Org: "acme", Agent: "bob", Name: "one", Capacity: 1, SeenAt: now},
		{Org: "acme", Agent: "bob", Name: "two", Capacity: 1, SeenAt: now.Add(-time.Second)},
		{Org: "acme", Agent: "bob", Name: "gone", Capacity: 1, SeenAt: now.Add(-time.Hour)},
		{Org: "acme", Agent: "scout", Name: "gone", Capacity: 1, SeenAt: now.Add(-time.Hour)},
		{Org: "other", Agent: "scout", Name: "one", Capacity: 1, SeenAt: now},
	} {
		w.must(w.store.Workers().See(ctx, worker, 0))
	}
	c := w.call("acme", "user:ann", "bob")
	for _, id := range []string{"t1", "t2", "t3"} {
		w.send(c, id, "hello")
	}
	since := now.Add(-dispatch.GoneAfter)
	micro := func(t time.Time) time.Time { return t.Truncate(time.Microsecond) }
	for most, queued := range map[int]int{2: 2, 10: 3} {
		got, err := w.store.Workers().Crews(ctx, "acme", append(numbered(250), "bob", "scout"), since, most)
		w.must(err)
		want := map[string]dispatch.Crew{
			"bob":   {Workers: 2, LastSeen: micro(now), Queued: queued},
			"scout": {LastSeen: micro(now.Add(-time.Hour))},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("crews (-want +got):\n%s", diff)
		}
	}
	narrow := w.as(w.access("acme", "user:ann", identity.Admin, "agent:scout"), identity.ManageAgents)
	got, err := w.tasks.Crews(ctx, narrow, []string{"bob"})
	w.must(err)
	if len(got) != 0 {
		w.Errorf("crews = %v, want none beyond the credential", got)
	}
}
