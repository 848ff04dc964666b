package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

func testCancel(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	w.send(c, "queued", "x")
	got, err := w.tasks.Cancel(ctx, c, "queued", task.All)
	w.must(err)
	if got.State != task.Canceled || got.Queued {
		w.Errorf("canceled as %+v", got)
	}
	_, err = w.tasks.Cancel(ctx, c, "queued", task.All)
	if w.want(err, errs.Conflict); errs.As(err).Code != task.CodeNotCancelable {
		w.Errorf("code %s", errs.As(err).Code)
	}
	w.send(c, "running", "x")
	a := w.claim(p) // the canceled one is not given out
	if a.Task.ID != "running" {
		w.Fatalf("claimed %s", a.Task.ID)
	}
	_, err = w.tasks.Cancel(ctx, c, "running", task.All)
	w.must(err)
	told, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Completed})
	w.must(err)
	if !told.Canceled || told.State != task.Canceled {
		w.Errorf("the worker was told %+v", told)
	}
	if got, err := w.tasks.Get(ctx, c, "running", task.All); err != nil || got.State != task.Canceled {
		w.Errorf("a late report made it %s, %v", got.State, err)
	}
}

func testFencing(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	w.send(c, "t1", "x")
	a := w.claim(p)
	w.must(w.tasks.Return(ctx, p, a.Lease.Token))
	b := w.claim(p)
	if b.Number != 1 || b.Lease.Token == a.Lease.Token {
		w.Errorf("after a return: %+v", b)
	}
	for _, token := range []string{a.Lease.Token, "", "lease-", "lease-x-y", b.Lease.Token + "x", "lease-" + b.Task.UID + "-0"} {
		_, err := w.tasks.Report(ctx, p, token, task.Report{State: task.Completed})
		if w.want(err, errs.Conflict); errs.As(err).Code != task.CodeStaleLease {
			w.Errorf("%q: code %s", token, errs.As(err).Code)
		}
		w.want(w.tasks.Return(ctx, p, token), errs.Conflict)
	}
	_, err := w.tasks.Report(ctx, w.post("cy"), b.Lease.Token, task.Report{State: task.Completed})
	w.want(err, errs.Conflict) // another agent's worker
	before, err := w.tasks.Get(ctx, c, "t1", task.All)
	w.must(err)
	if before.State != task.Working || before.Lease.Token != b.Lease.Token {
		w.Errorf("stale reports left %+v", before)
	}
	_, err = w.tasks.Report(ctx, p, b.Lease.Token, task.Report{State: task.Completed})
	w.must(err)
	_, err = w.tasks.Report(ctx, p, b.Lease.Token, task.Report{State: task.Failed})
	w.want(err, errs.Conflict)
	w.checkLeases(c, "t1")
}

// checkLeases reads from the log that no two leases of a task were live at once.
func (w *world) checkLeases(c dispatch.Call, id string) {
	w.Helper()
	t, err := w.tasks.Get(w.Context(), c, id, task.All)
	w.must(err)
	events, err := w.store.Tasks().Events(w.Context(), t.Org, t.UID, 0, 1000)
	w.must(err)
	live := ""
	for _, e := range events {
		switch {
		case e.Lease != "" && e.Ended == "":
			if live != "" {
				w.Errorf("event %d gives a lease while %s is live", e.Seq, live)
			}
			live = e.Lease
		case e.Ended != "":
			if live != e.Lease {
				w.Errorf("event %d ends %s while %s is live", e.Seq, e.Lease, live)
			}
			live = ""
		}
	}
}

func testLostWorker(w *world) {
	ctx := w.Context()
	w.background(w.tasks)
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	w.send(c, "t1", "x")
	for attempt := 1; attempt <= task.MaxAttempts; attempt++ {
		got, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{Worker: "w", Max: 1, Lease: task.MinLease, Capacity: 1})
		w.must(err)
		if len(got.Assignments) != 1 || got.Assignments[0].Number != attempt {
			w.Fatalf("attempt %d: claimed %+v", attempt, got)
		}
		token := got.Assignments[0].Lease.Token
		w.advance(task.MinLease + time.Second) // SQLite's leases; PostgreSQL measures its own time
		w.until("the lease is over", func() bool {
			t, err := w.tasks.Get(ctx, c, "t1", task.All)
			w.must(err)
			return t.Queued || t.State.Terminal()
		})
		_, err = w.tasks.Report(ctx, p, token, task.Report{State: task.Completed})
		w.want(err, errs.Conflict)
	}
	t, err := w.tasks.Get(ctx, c, "t1", task.All)
	w.must(err)
	if t.State != task.Failed || t.Message == nil || t.Attempts != task.MaxAttempts {
		w.Errorf("after three lost workers: %+v", t)
	}
	w.checkLeases(c, "t1")
}

// A lease that ends further ahead than any can is what is left when the clock was
// set back.
func testClockSetBack(w *world) {
	ctx := w.Context()
	w.background(w.tasks)
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	w.send(c, "longest", "x")
	got, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{Worker: "w", Max: 1, Lease: task.MaxLease, Capacity: 2})
	w.must(err)
	w.send(c, "frozen", "x")
	a := w.claim(p)
	_, err = w.store.Tasks().Update(ctx, a.Task.Org, a.Task.UID, 0, func(cur task.Current) (task.Change, error) {
		cur.Task.Lease.ExpiresAt = cur.Clock.Add(task.MaxAhead + time.Hour)
		return task.Change{Task: cur.Task}, nil
	})
	w.must(err)
	w.until("the lease is over", func() bool {
		t, err := w.tasks.Get(ctx, c, "frozen", task.All)
		w.must(err)
		return t.Queued
	})
	_, err = w.tasks.Report(ctx, p, got.Assignments[0].Lease.Token, task.Report{State: task.Completed})
	w.must(err) // the longest lease there can be is not over
}

func testRacingClaims(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	const n = 40
	for i := range n {
		w.send(c, fmt.Sprint("t", i), "x")
	}
	var mu sync.Mutex
	claimed := map[string]int{}
	race(w, 8, func(i int) error {
		for {
			got, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{Worker: fmt.Sprint("w", i), Max: 3, Lease: time.Minute, Capacity: 3})
			if err != nil {
				return err
			}
			mu.Lock()
			for _, a := range got.Assignments {
				claimed[a.Task.ID]++
			}
			over := len(claimed) >= n
			mu.Unlock()
			if over {
				return nil
			}
		}
	})
	for id, times := range claimed {
		if times != 1 {
			w.Errorf("%s was claimed %d times", id, times)
		}
	}
}

func testWaitingWorker(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	for i := range 20 {
		got := make(chan dispatch.Claim, 1)
		go func() {
			claim, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{Worker: "w", Max: 1, Wait: 20 * time.Second, Lease: time.Minute, Capacity: 1})
			if err != nil {
				w.Error(err)
			}
			got <- claim
		}()
		if i%2 == 0 {
			w.until("the worker waits", func() bool { return w.tasks.Waiting(task.AgentKey{Org: "acme", ID: "bob"}) == 1 })
		}
		sent := w.send(c, fmt.Sprint("t", i), "x")
		claim := <-got
		if len(claim.Assignments) != 1 || claim.Assignments[0].Task.UID != sent.UID {
			w.Fatalf("round %d: the worker got %+v", i, claim)
		}
		if i%2 == 0 && sent.State != task.Working {
			w.Errorf("a worker was waiting, and the answer says %s", sent.State)
		}
		_, err := w.tasks.Report(ctx, p, claim.Assignments[0].Lease.Token, task.Report{State: task.Completed})
		w.must(err)
	}
}
