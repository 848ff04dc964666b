package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

// testDecisions: approvals and rejections are found by their time, newest first, and only those.
func testDecisions(w *world) {
	ctx, admin := w.Context(), w.access("acme", "user:root")
	resolve := func(a identity.Access, to ...proposal.Status) {
		p := w.submit(a, nil)
		w.advance(time.Hour)
		for _, status := range to {
			_, err := w.proposals.Resolve(ctx, a, p.ID, proposal.Resolution{Status: status, Note: `said "To":"approved"`})
			w.must(err)
		}
	}
	resolve(admin, proposal.Rejected)
	w.advance(48 * time.Hour)
	since := w.now()
	resolve(admin, proposal.Approved, proposal.Resolved)
	resolve(admin, proposal.Rejected, proposal.Open, proposal.Rejected)
	resolve(w.access("other", "user:eve"), proposal.Approved)
	w.submit(admin, nil)

	list, more, err := w.store.Proposals().Decisions(ctx, "acme", since, 100)
	w.must(err)
	var got []bool
	for i, d := range list {
		got = append(got, d.Approved)
		if wait := d.At.Sub(d.SubmittedAt); wait < time.Hour || wait > 2*time.Hour {
			w.Errorf("decision %d came after %v, want about an hour", i, wait)
		}
	}
	if want := []bool{false, false, true}; !slices.Equal(got, want) || more {
		w.Errorf("approved = %v, more = %v, want %v and no more", got, more, want)
	}
	if list, more, err = w.store.Proposals().Decisions(ctx, "acme", since, 2); err != nil || len(list) > 2 || !more {
		w.Errorf("%d decisions, more = %v, %v, want at most 2 and more", len(list), more, err)
	}
}

// testAsking: tasks that ask wait for their sender, and for the sender's org.
func testAsking(w *world) {
	ctx := w.Context()
	for i, who := range []string{"user:ann", "user:ann", "user:bob", "user:eve"} {
		org := "acme"
		if who == "user:eve" {
			org = "other"
		}
		w.send(w.call(org, who, "scout"), fmt.Sprint("t", i), "x")
		state := task.InputRequired
		if i == 1 {
			state = task.AuthRequired
		}
		w.report(w.post("scout"), w.claim(w.post("scout")), task.Report{State: state})
	}
	w.send(w.call("acme", "user:ann", "scout"), "working", "x")
	ask := func(p identity.Principal, most int) (ids []string) {
		list, err := w.store.Tasks().Asking(ctx, p, most)
		w.must(err)
		for _, t := range list {
			ids = append(ids, t.ID)
		}
		slices.Sort(ids)
		return ids
	}
	for _, c := range []struct {
		who  identity.Principal
		most int
		want []string
	}{
		{identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}, 10, []string{"t0", "t1"}},
		{identity.Principal{Org: "acme", Kind: identity.Agent, ID: "ann"}, 10, nil},
		{identity.Principal{Org: "acme"}, 10, []string{"t0", "t1", "t2"}},
		{identity.Principal{Org: "other"}, 10, []string{"t3"}},
	} {
		if got := ask(c.who, c.most); !slices.Equal(got, c.want) {
			w.Errorf("tasks that ask %v = %v, want %v", c.who, got, c.want)
		}
	}
	if got := ask(identity.Principal{Org: "acme"}, 2); len(got) != 2 {
		w.Errorf("%d tasks, want the limit of 2", len(got))
	}
}

// testAskingOfAdmins: an admin's own questions come first, however many others wait.
func testAskingOfAdmins(w *world) {
	ctx := w.Context()
	for i := range dispatch.MaxAsking + 5 {
		who := "user:ann"
		if i == 1 || i == 3 {
			who = "user:zoe" // after the others in the order of senders
		}
		w.send(w.call("acme", who, "scout"), fmt.Sprint("t", i), "x")
		w.report(w.post("scout"), w.claim(w.post("scout")), task.Report{State: task.InputRequired})
		w.advance(time.Second)
	}
	for _, c := range []struct {
		access identity.Access
		limit  int
		want   []string
	}{
		{w.access("acme", "user:zoe", identity.Admin, identity.TasksRead), 3, []string{"t3", "t1", "other"}},
		{w.access("acme", "user:zoe", identity.Admin, identity.TasksRead), 1, []string{"t3"}},
		{w.access("acme", "user:zoe", identity.TasksRead), 3, []string{"t3", "t1"}},
	} {
		list, err := w.tasks.Asking(ctx, w.as(c.access, identity.ReadEvents), c.limit)
		w.must(err)
		var got []string
		for i := range list {
			id := list[i].ID
			if list[i].Sender.ID != "zoe" {
				id = "other"
			}
			got = append(got, id)
		}
		if !slices.Equal(got, c.want) {
			w.Errorf("questions = %v, want %v", got, c.want)
		}
	}
}

// testQueued: agents with waiting tasks are listed with their number, up to the limits.
func testQueued(w *world) {
	ctx := w.Context()
	if list, err := w.store.Tasks().Queued(ctx, "acme", 10); err != nil || len(list) > 0 {
		w.Fatalf("queued = %v, %v, want none", list, err)
	}
	for agent, n := range map[string]int{"busy": dispatch.MaxUnattended + 5, "calm": 1, "done": 1} {
		for i := range n {
			w.send(w.call("other", "user:eve", agent), fmt.Sprint("t", i), "x")
		}
	}
	w.claim(w.post("done"))
	want := []dispatch.QueuedAgent{{ID: "busy", Waiting: dispatch.MaxUnattended}, {ID: "calm", Waiting: 1}}
	if list, err := w.store.Tasks().Queued(ctx, "acme", 10); err != nil || !slices.Equal(list, want) {
		w.Errorf("queued = %v, %v, want %v", list, err, want)
	}
	if list, err := w.store.Tasks().Queued(ctx, "acme", 1); err != nil || !slices.Equal(list, want[:1]) {
		w.Errorf("queued = %v, %v, want only the first", list, err)
	}
	if list, err := w.store.Tasks().Queued(ctx, "other", 10); err != nil || len(list) > 0 {
		w.Errorf("queued in the org of the sender = %v, %v, want none", list, err)
	}
}
