package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

// runner is an agent that runs in the server.
type runner func(ctx context.Context, a dispatch.Assignment, w *dispatch.Work) error

func (f runner) Run(ctx context.Context, a dispatch.Assignment, w *dispatch.Work) error {
	return f(ctx, a, w)
}

func (w *world) stateOf(c dispatch.Call, id string) task.Task {
	w.Helper()
	t, err := w.tasks.Get(w.Context(), c, id, task.All)
	w.must(err)
	return t
}

// testHosts: an agent is hosted, limited and removed while the server runs.
func testHosts(w *world) {
	ctx := w.Context()
	w.team("acme", "bob")
	c := w.call("acme", "user:ann", "bob")
	bob := task.AgentKey{Org: "acme", ID: "bob"}
	w.background(w.tasks.Run)
	presence := func(want dispatch.Presence) {
		w.Helper()
		w.until(fmt.Sprintf("the agent is %s", want), func() bool {
			w.advance(time.Second) // loads are cached
			got, err := w.tasks.Presence(ctx, bob)
			return err == nil && got == want
		})
	}
	w.send(c, "before", "x")
	presence(dispatch.Offline)
	target := dispatch.Target{ID: "bob", Org: "acme"}
	w.tasks.Host(target, dispatch.Echo{}, dispatch.Hosting{})
	w.until("the waiting task is done", func() bool { return w.stateOf(c, "before").State == task.Completed })
	presence(dispatch.Available)

	w.tasks.Limit(bob, 0)
	presence(dispatch.Offline)
	w.send(c, "limited", "x")
	if got := w.stateOf(c, "limited"); got.State != task.Submitted || !got.Queued {
		w.Errorf("task of an agent without slots = %+v, want it to wait", got)
	}
	w.tasks.Limit(bob, 1)
	w.until("the task that waited is done", func() bool { return w.stateOf(c, "limited").State == task.Completed })
	presence(dispatch.Available)

	stops := func(ctx context.Context, _ dispatch.Assignment, _ *dispatch.Work) error {
		<-ctx.Done()
		return ctx.Err()
	}
	w.tasks.Host(target, runner(stops), dispatch.Hosting{})
	w.send(c, "unhosted", "x")
	w.until("the task is being worked on", func() bool { return w.stateOf(c, "unhosted").Lease.Live() })
	w.tasks.Unhost(bob)
	w.until("the task is back in the queue", func() bool { return w.stateOf(c, "unhosted").Queued })
	if got := w.stateOf(c, "unhosted"); got.Attempts != 0 {
		w.Errorf("the end of a host cost %d attempts, want none", got.Attempts)
	}
	presence(dispatch.Offline)
}

// testHostsEnd: a runner hands a task back, loses it or is lost itself.
func testHostsEnd(w *world) {
	w.realTime()
	c := w.call("acme", "user:ann", "bob")
	w.background(w.tasks.Run)
	ended := make(chan task.Ref, 10)
	w.tasks.Host(dispatch.Target{ID: "bob", Org: "acme"}, runner(
		func(ctx context.Context, a dispatch.Assignment, wk *dispatch.Work) error {
			switch {
			case a.Task.ID == "back" && a.Task.Seq <= 4: // its second claim comes after an event of the return
				return fmt.Errorf("the remote is busy: %w", dispatch.ErrHandBack)
			case a.Task.ID == "lost":
				return fmt.Errorf("the remote forgot: %w", dispatch.ErrLost)
			case a.Task.ID == "later" && a.Task.Seq <= 4:
				return dispatch.HandBackAfter(time.Hour, "the remote is busy")
			case a.Task.ID == "fault":
				return dispatch.LostAfter(time.Hour, "The remote broke")
			}
			_, err := wk.Report(ctx, task.Report{State: task.Completed})
			return err
		}), dispatch.Hosting{Ended: func(r task.Ref) { ended <- r }})
	back, lost := w.send(c, "back", "x"), w.send(c, "lost", "x")
	got := map[string]bool{(<-ended).UID: true, (<-ended).UID: true}
	if !got[back.UID] || !got[lost.UID] {
		w.Errorf("ended = %v, want both tasks", got)
	}
	if got := w.stateOf(c, "back"); got.State != task.Completed || got.Attempts != 0 {
		w.Errorf("handed back: %s after %d lost attempts, want completed after none", got.State, got.Attempts)
	}
	if got := w.stateOf(c, "lost"); got.State != task.Failed || got.Attempts != task.MaxAttempts {
		w.Errorf("lost: %s after %d lost attempts, want failed after %d", got.State, got.Attempts, task.MaxAttempts)
	}
	// Tasks that wait let others go first.
	for id, attempts := range map[string]int{"later": 0, "fault": 1} {
		w.send(c, id, "x")
		w.until(id+" waits", func() bool { t := w.stateOf(c, id); return !t.Queued && !t.Lease.Live() && !t.WakeAt.IsZero() })
		if got := w.stateOf(c, id); got.State != task.Working || got.Attempts != attempts {
			w.Errorf("%s: %s after %d lost attempts, want working after %d", id, got.State, got.Attempts, attempts)
		}
	}
	w.send(c, "after", "x")
	w.until("a later task is done", func() bool { return w.stateOf(c, "after").State == task.Completed })
}

// testHostLost: a node that is lost with the agent that runs in it costs no attempt.
func testHostLost(w *world) {
	c := w.call("acme", "user:ann", "bob")
	sent := w.send(c, "t1", "x")
	_, err := w.store.Tasks().Update(w.Context(), "acme", sent.UID, 0, func(cur task.Current) (task.Change, error) {
		lease := task.Lease{Token: "lease-" + sent.UID + "-1", Worker: task.HostPrefix + "gone", ExpiresAt: cur.Clock}
		return task.DecideClaim(cur.Task, lease, w.now())
	})
	w.must(err)
	w.background(w.tasks.Run)
	w.until("the lease expires", func() bool { return !w.stateOf(c, "t1").Lease.Live() })
	if got := w.stateOf(c, "t1"); got.Attempts != 0 || !got.Queued {
		w.Errorf("after a lost node: %d lost attempts, queued = %t, want none, and queued", got.Attempts, got.Queued)
	}
}

// testHostNews: a runner learns of messages that the sender sends while it works, also if a heartbeat
// gets them.
func testHostNews(w *world) {
	c := w.call("acme", "user:ann", "bob")
	w.background(w.tasks.Run)
	working := make(chan struct{}, 1)
	w.tasks.Host(dispatch.Target{ID: "bob", Org: "acme"}, runner(
		func(ctx context.Context, a dispatch.Assignment, wk *dispatch.Work) error {
			got := len(a.Task.History)
			working <- struct{}{}
			for got < 3 {
				select {
				case <-wk.News():
				case <-ctx.Done():
					return ctx.Err()
				}
				p, err := wk.Report(ctx, task.Report{})
				if err != nil {
					return err
				}
				got += len(p.Turns)
			}
			stored, err := wk.Load(ctx)
			if err != nil {
				return err
			}
			_, err = wk.Report(ctx, task.Report{State: task.Completed, Message: task.Says(stored.History[2].Text())})
			return err
		}), dispatch.Hosting{Lease: time.Second}) // a heartbeat comes every third of it
	w.send(c, "t1", "one")
	<-working
	w.send(c, "t1", "two")
	w.send(c, "t1", "three")
	w.until("the task is done", func() bool { return w.stateOf(c, "t1").State == task.Completed })
	if got := w.stateOf(c, "t1"); got.Message.Text() != "three" {
		w.Errorf("result = %q, want the last message", got.Message.Text())
	}
}
