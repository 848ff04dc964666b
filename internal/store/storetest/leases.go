package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

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
		w.Errorf("task = %+v, want canceled, not queued", got)
	}
	_, err = w.tasks.Cancel(ctx, c, "queued", task.All)
	if w.want(err, errs.Conflict); errs.As(err).Code != task.CodeNotCancelable {
		w.Errorf("code = %s, want %s", errs.As(err).Code, task.CodeNotCancelable)
	}
	w.send(c, "running", "x")
	a := w.claim(p) // skips the canceled one
	if a.Task.ID != "running" {
		w.Fatalf("claimed %s, want running", a.Task.ID)
	}
	_, err = w.tasks.Cancel(ctx, c, "running", task.All)
	w.must(err)
	told, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Completed})
	w.must(err)
	if !told.Canceled || told.State != task.Canceled {
		w.Errorf("report = %+v, want canceled", told)
	}
	if got, err := w.tasks.Get(ctx, c, "running", task.All); err != nil || got.State != task.Canceled {
		w.Errorf("state after a late report = %s, %v, want canceled", got.State, err)
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
		w.Errorf("assignment after a return = %+v, want attempt 1 with a new lease", b)
	}
	for _, token := range []string{
		a.Lease.Token, "", "lease-", "lease-x-y", b.Lease.Token + "x", "lease-" + b.Task.UID + "-0",
	} {
		_, err := w.tasks.Report(ctx, p, token, task.Report{State: task.Completed})
		if w.want(err, errs.Conflict); errs.As(err).Code != task.CodeStaleLease {
			w.Errorf("%q: code = %s, want %s", token, errs.As(err).Code, task.CodeStaleLease)
		}
		w.want(w.tasks.Return(ctx, p, token), errs.Conflict)
	}
	_, err := w.tasks.Report(ctx, w.post("cy"), b.Lease.Token, task.Report{State: task.Completed})
	w.want(err, errs.Conflict) // another agent's worker
	before, err := w.tasks.Get(ctx, c, "t1", task.All)
	w.must(err)
	if before.State != task.Working || before.Lease.Token != b.Lease.Token {
		w.Errorf("task after stale reports = %+v, want it working under lease %s", before, b.Lease.Token)
	}
	_, err = w.tasks.Report(ctx, p, b.Lease.Token, task.Report{State: task.Completed})
	w.must(err)
	_, err = w.tasks.Report(ctx, p, b.Lease.Token, task.Report{State: task.Failed})
	w.want(err, errs.Conflict)
	w.checkLeases(c, "t1")
}

// testFinish: a result that was decided on a known row is written only if the row is still the
// same and its lease is live, also if many results are written concurrently.
func testFinish(w *world) {
	ctx, tasks := w.Context(), w.store.Tasks()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	finish := func(known task.Task) error {
		change, err := task.DecideReport(known, known.Lease.Token, task.Report{State: task.Completed},
			task.DefaultLimits, w.now(), time.Time{})
		w.must(err)
		return tasks.Finish(ctx, known, change)
	}
	row := func(uid string) task.Task {
		w.Helper()
		t, err := tasks.Row(ctx, "acme", uid)
		w.must(err)
		return t
	}
	var good, bad []task.Task
	for i := range 12 {
		w.send(c, fmt.Sprintf("t%d", i), "x")
		known := row(w.claim(p).Task.UID)
		switch i % 4 {
		case 0:
			good = append(good, known)
			continue
		case 1: // the sender sent another message
			w.send(c, known.ID, "and y")
		case 2: // another lease
			w.must(w.tasks.Return(ctx, p, known.Lease.Token))
			w.claim(p)
		case 3: // another lease token, as after a mistake
			known.Lease.Token += "x"
		}
		bad = append(bad, known)
	}
	before := map[string]task.Task{}
	for _, t := range bad {
		before[t.UID] = row(t.UID)
	}
	var wg sync.WaitGroup
	results := make([]error, len(good)+len(bad))
	for i, t := range slices.Concat(good, bad) {
		wg.Go(func() { results[i] = finish(t) })
	}
	wg.Wait()
	for i, t := range slices.Concat(good, bad) {
		after := row(t.UID)
		if i < len(good) {
			if results[i] != nil || after.State != task.Completed || after.Lease.Token != "" {
				w.Errorf("%s: got %v, %s with the lease %q, want it completed without one",
					t.ID, results[i], after.State, after.Lease.Token)
			}
			continue
		}
		if !errors.Is(results[i], dispatch.ErrChanged) {
			w.Errorf("%s: got %v, want %v", t.ID, results[i], dispatch.ErrChanged)
		}
		if diff := cmp.Diff(before[t.UID], after); diff != "" {
			w.Errorf("%s: diff of the row, want none (-want +got):\n%s", t.ID, diff)
		}
	}
	for _, t := range good {
		if err := finish(t); !errors.Is(err, dispatch.ErrChanged) {
			w.Errorf("%s again: got %v, want %v", t.ID, err, dispatch.ErrChanged)
		}
		w.checkLeases(c, t.ID)
	}
	// An expired lease does not count.
	w.send(c, "late", "x")
	late, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{Worker: "w1", Max: 1, Lease: task.MinLease, Capacity: 1})
	w.must(err)
	known := row(late.Assignments[0].Task.UID)
	w.advance(task.MinLease + time.Second) // SQLite's leases; PostgreSQL measures its own time
	w.until("the lease is over", func() bool {
		over := false
		_, err := tasks.Update(ctx, "acme", known.UID, 0, func(cur task.Current) (task.Change, error) {
			over = !cur.Clock.Before(cur.Task.Lease.ExpiresAt)
			return task.Change{}, errs.ErrNotFound // write nothing
		})
		w.want(err, errs.NotFound)
		return over
	})
	if err := finish(known); !errors.Is(err, dispatch.ErrChanged) {
		w.Errorf("late: got %v, want %v", err, dispatch.ErrChanged)
	}
}

// checkLeases verifies by the log that a task never had two live leases.
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
				w.Errorf("event %d grants a lease while %s is live, want no live lease", e.Seq, live)
			}
			live = e.Lease
		case e.Ended != "":
			if live != e.Lease {
				w.Errorf("event %d ends lease %s, want %s", e.Seq, e.Lease, live)
			}
			live = ""
		}
	}
}

func testLostWorker(w *world) {
	ctx := w.Context()
	w.background(w.tasks.Run)
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	w.send(c, "t1", "x")
	for attempt := 1; attempt <= task.MaxAttempts; attempt++ {
		got, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{Worker: "w", Max: 1, Lease: task.MinLease, Capacity: 1})
		w.must(err)
		if len(got.Assignments) != 1 || got.Assignments[0].Number != attempt {
			w.Fatalf("claim = %+v, want attempt %d", got, attempt)
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
		w.Errorf("task after three lost workers = %+v, want failed with a message", t)
	}
	w.checkLeases(c, "t1")
}

// testClockSetBack: a lease that ends later than any new lease could is the result of a clock
// that was set back.
func testClockSetBack(w *world) {
	ctx := w.Context()
	w.background(w.tasks.Run)
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
	w.must(err) // the longest possible lease is still live
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
			got, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{
				Worker: fmt.Sprint("w", i), Max: 3, Lease: time.Minute, Capacity: 3,
			})
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
			w.Errorf("claims of %s = %d, want 1", id, times)
		}
	}
}

func testWaitingWorker(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	for i := range 20 {
		got := make(chan dispatch.Claim, 1)
		go func() {
			claim, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{
				Worker: "w", Max: 1, Wait: 20 * time.Second, Lease: time.Minute, Capacity: 1,
			})
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
			w.Fatalf("round %d: claim = %+v, want task %s", i, claim, sent.UID)
		}
		if i%2 == 0 && sent.State != task.Working {
			w.Errorf("state of a task sent to a waiting worker = %s, want %s", sent.State, task.Working)
		}
		_, err := w.tasks.Report(ctx, p, claim.Assignments[0].Lease.Token, task.Report{State: task.Completed})
		w.must(err)
	}
}
