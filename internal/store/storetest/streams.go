package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

func testEcho(w *world) {
	ctx := w.Context()
	c := w.call("other", "user:ann", "echo")
	early := w.send(c, "early", "before it runs")
	if early.State != task.Submitted {
		w.Errorf("state of a task for an agent that is not running = %s, want %s", early.State, task.Submitted)
	}
	w.tasks.Host(dispatch.Target{ID: "echo", Org: "acme", Public: true}, dispatch.Echo{}, dispatch.Hosting{})
	w.background(w.tasks.Run)
	race(w, 50, func(i int) error {
		t, err := w.tasks.Send(ctx, c, dispatch.SendRequest{
			ID: fmt.Sprint("t", i), Message: says(fmt.Sprint("hello ", i)),
		}, 20*time.Second)
		if err == nil && (t.State != task.Completed || t.Artifacts[0].Parts[0].Text != fmt.Sprint("hello ", i)) {
			err = fmt.Errorf("answered %+v", t)
		}
		return err
	})
	w.until("the early task is done", func() bool {
		t, err := w.tasks.Get(ctx, c, "early", task.All)
		w.must(err)
		return t.State == task.Completed
	})
	w.checkLeases(c, "early")
}

// testTakeOver: a server that was killed while its agents worked leaves leases. The next server
// takes the tasks over without waiting for them, and no attempt is lost.
func testTakeOver(w *world) {
	ctx := w.Context()
	c := w.call("acme", "user:ann", "echo")
	w.send(c, "t1", "hello")
	killed, err := w.store.Tasks().Claim(ctx, "acme", "echo", dispatch.Batch{Most: 1}, func(
		cur task.Current,
	) (task.Change, error) {
		ch := task.Change{Task: cur.Task}
		ch.Task.Queued = false
		ch.Task.Seq++
		ch.Task.State = task.Working
		ch.Task.Lease = task.Lease{
			Token: "lease-" + cur.Task.UID + "-1", Worker: "server:gone", ExpiresAt: cur.Clock.Add(time.Hour),
		}
		ch.Events = []task.Event{{
			Seq: ch.Task.Seq, At: w.now(), Kind: task.StatusEvent, State: task.Working, Lease: ch.Task.Lease.Token,
			Attempt: 1,
		}}
		return ch, nil
	})
	w.must(err)
	if len(killed) != 1 {
		w.Fatalf("claimed %d, want 1", len(killed))
	}
	w.tasks.Host(dispatch.Target{ID: "echo", Org: "acme", Public: true}, dispatch.Echo{}, dispatch.Hosting{})
	w.background(w.tasks.Run)
	w.until("the next server has done it", func() bool {
		t, err := w.tasks.Get(ctx, c, "t1", task.All)
		w.must(err)
		return t.State == task.Completed && t.Attempts == 0
	})
	w.checkLeases(c, "t1")
}

func testResume(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	t := w.send(c, "t1", "x")
	a := w.claim(p)
	collect := func(s *dispatch.Service, after int64) chan []int64 {
		out := make(chan []int64, 1)
		_, events, err := s.Follow(ctx, c, "t1", after, 0)
		w.must(err)
		go func() {
			var seqs []int64
			for e, err := range events {
				if err != nil {
					w.Error(err)
					break
				}
				seqs = append(seqs, e.Seq)
			}
			out <- seqs
		}()
		return out
	}
	other := w.newTasks() // a second node, which gets no hints here
	streams := map[int64]chan []int64{}
	const chunks = 150 // more than a node keeps in memory
	for i := range chunks {
		if i%10 == 0 {
			after := t.Seq + int64(i)
			streams[after] = collect(w.tasks, after)
		}
		_, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{
			Artifacts: []task.ArtifactUpdate{artifact("a", fmt.Sprint(i), i > 0)},
		})
		w.must(err)
	}
	_, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Completed})
	w.must(err)
	streams[0], streams[1] = collect(w.tasks, 0), collect(other, 1)
	for after, got := range streams {
		var want []int64
		for seq := after + 1; seq <= int64(chunks)+4; seq++ {
			want = append(want, seq)
		}
		if diff := cmp.Diff(want, <-got); diff != "" {
			w.Errorf("stream after %d: diff of the events (-want +got):\n%s", after, diff)
		}
	}
}

func testDirectMessages(w *world) {
	ctx := w.Context()
	c, p := w.call("other", "user:ann", "bob"), w.post("bob")
	m, err := w.tasks.Message(ctx, c, says("psst"))
	w.must(err)
	claim := func(ack ...string) []dispatch.DirectMessage {
		w.Helper()
		got, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{
			Worker: "w", Max: 0, Lease: time.Minute, Capacity: 1, Ack: ack,
		})
		w.must(err)
		return got.Messages
	}
	for range 2 { // redelivered until acknowledged
		got := claim()
		if len(got) != 1 || got[0].ID != m.ID || got[0].From.Org != "other" || got[0].Message.Parts[0].Text != "psst" {
			w.Errorf("delivered %+v, want %s from other", got, m.ID)
		}
	}
	if got := claim(m.ID); len(got) != 0 {
		w.Errorf("delivered after the acknowledgement = %+v, want none", got)
	}
	if _, err := w.tasks.Message(ctx, c, says("old")); err != nil {
		w.Error(err)
	}
	w.advance(dispatch.KeepMessages + time.Hour)
	if n, err := w.tasks.Sweep(ctx, 0); err != nil || n != 1 {
		w.Errorf("swept %d messages, %v, want 1", n, err)
	}
}

func testPresence(w *world) {
	ctx := w.Context()
	w.team("acme", "bob")
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	expect := func(want dispatch.Presence) {
		w.Helper()
		w.advance(time.Second) // past the lifetime of caches
		if got, err := w.tasks.Presence(ctx, task.AgentKey{Org: "acme", ID: "bob"}); err != nil || got != want {
			w.Errorf("presence %s, %v, want %s", got, err, want)
		}
	}
	expect(dispatch.Offline)
	w.send(c, "t1", "x")
	expect(dispatch.Offline)
	a := w.claim(p)
	expect(dispatch.Busy)
	_, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Completed})
	w.must(err)
	expect(dispatch.Available)
	w.advance(time.Minute)
	expect(dispatch.Offline)
}

func testSweepTasks(w *world) {
	ctx := w.Context()
	_, err := w.operator.CreateOrg(ctx, "acme", "")
	w.must(err)
	c := w.call("acme", "user:ann", "bob")
	w.send(c, "over", "x")
	w.send(c, "live", "x")
	_, err = w.tasks.Cancel(ctx, c, "over", task.All)
	w.must(err)
	if n, err := w.tasks.Sweep(ctx, time.Hour); err != nil || n != 0 {
		w.Errorf("swept %d fresh tasks, %v, want 0", n, err)
	}
	w.advance(2 * time.Hour)
	if n, err := w.tasks.Sweep(ctx, time.Hour); err != nil || n != 1 {
		w.Errorf("swept %d tasks, %v, want 1", n, err)
	}
	_, err = w.tasks.Get(ctx, c, "over", task.All)
	w.want(err, errs.NotFound)
	_, err = w.tasks.Get(ctx, c, "live", task.All)
	w.must(err)
}

func testMirror(w *world) {
	ctx := w.Context()
	admin, p := w.access("acme", "user:root"), w.post("bob")
	prop := w.submit(admin, nil)
	out, err := w.proposals.Resolve(ctx, admin, prop.ID, proposal.Resolution{Status: proposal.Approved})
	w.must(err)
	id := out.Proposal.FollowupID
	expect := func(status followup.Status, state task.State) {
		w.Helper()
		f, err := w.followups.Get(ctx, admin, id)
		w.must(err)
		if f.Status != status || f.TaskState != string(state) || f.Assignee != "agent:bob" {
			w.Errorf("the follow-up is %s, its task %s, of %q, want %s, %s", f.Status, f.TaskState, f.Assignee, status, state)
		}
	}
	c := w.call("acme", "user:root", "bob")
	old, err := w.tasks.Send(ctx, c, dispatch.SendRequest{Message: says("do it"), FollowupID: id}, 0)
	w.must(err)
	expect(followup.Open, task.Submitted)
	a := w.claim(p)
	expect(followup.InProgress, task.Working)
	_, err = w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Failed})
	w.must(err)
	expect(followup.Open, task.Failed)
	_, err = w.tasks.Send(ctx, c, dispatch.SendRequest{Message: says("do it again"), FollowupID: id}, 0)
	w.must(err)
	a = w.claim(p)
	if a.Task.UID == old.UID {
		w.Fatalf("claimed the failed task %s, want another", old.UID)
	}
	_, err = w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Completed})
	w.must(err)
	expect(followup.Done, task.Completed)
	counted, total, err := w.followups.List(ctx, admin, &followup.Query{Status: followup.Done})
	w.must(err)
	if total != 1 || !slices.ContainsFunc(counted, func(f followup.Followup) bool { return f.ID == id }) {
		w.Errorf("done follow-ups = %d, %+v, want %s", total, counted, id)
	}
}
