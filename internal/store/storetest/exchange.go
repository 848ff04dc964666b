package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

func exchangeClaim(worker string, most int) *dispatch.ClaimRequest {
	return &dispatch.ClaimRequest{Worker: worker, Max: most, Lease: time.Minute, Capacity: 10}
}

func completed(a dispatch.Assignment) dispatch.LeaseReport {
	return dispatch.LeaseReport{Lease: a.Lease.Token, Report: task.Report{
		State:     task.Completed,
		Artifacts: []task.ArtifactUpdate{{Artifact: task.Artifact{Parts: []task.Part{{Kind: task.TextPart, Text: "x"}}}}},
	}}
}

// testExchange: the reports of an exchange do not affect each other, and the same ones can be sent
// again.
func testExchange(w *world) {
	ctx := w.Context()
	w.pushing(&receiver{}, delivery.Retry{})
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	w.sendPushed(c, "pushed", task.PushConfig{ID: "p", URL: "https://receiver.example/"})
	for i := range 5 {
		w.send(c, fmt.Sprintf("t%d", i), "x")
	}
	got, err := w.tasks.Exchange(ctx, p, nil, exchangeClaim("w1", 5))
	w.must(err)
	held := got.Claim.Assignments
	if len(held) != 5 || len(held[4].Task.History) != 1 {
		w.Fatalf("claimed %+v, want 5 tasks with their history", held)
	}
	_, err = w.tasks.Cancel(ctx, c, "t1", task.All)
	w.must(err)
	w.must(w.tasks.Return(ctx, p, held[3].Lease.Token))
	reports := []dispatch.LeaseReport{
		completed(held[0]), completed(held[1]), completed(held[2]), completed(held[3]),
		{Lease: held[4].Lease.Token, Report: task.Report{State: "nonsense"}},
		{Lease: "lease-x-y"},
	}
	for round := range 2 {
		got, err = w.tasks.Exchange(ctx, p, reports, exchangeClaim("w1", 5))
		w.must(err)
		for i, want := range []errs.Kind{3: errs.Conflict, 4: errs.Invalid, 5: errs.Conflict} {
			if err := got.Results[i].Err; want == 0 && err != nil || want != 0 && errs.KindOf(err) != want {
				w.Errorf("round %d, report %d: %v, want kind %v", round, i, err, want)
			}
		}
		states := [3]task.State{}
		for i := range states {
			states[i] = got.Results[i].Progress.State
		}
		if want := [3]task.State{task.Completed, task.Completed, task.Canceled}; states != want {
			w.Errorf("round %d: states = %v, want %v", round, states, want)
		}
		if claimed := len(got.Claim.Assignments); claimed != 2*(1-round) || got.Err != nil {
			w.Errorf("round %d: claimed %d with error %v, want %d", round, claimed, got.Err, 2*(1-round))
		}
	}
	for _, id := range []string{"pushed", "t0", "t1", "t2", "t3"} {
		w.checkLeases(c, id)
	}
	other, err := w.tasks.Exchange(ctx, w.post("cy"), []dispatch.LeaseReport{completed(held[0])}, nil)
	w.must(err)
	w.want(other.Results[0].Err, errs.Conflict) // another agent's worker learns nothing
}

// testExchangeFault: if the database refuses a write of an exchange, the others are carried out.
func testExchangeFault(w *world) {
	ctx, tasks := w.Context(), w.store.Tasks()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	updates := make([]dispatch.Update, 3)
	for i := range updates {
		w.send(c, fmt.Sprintf("t%d", i), "x")
		a := w.claim(p)
		updates[i] = dispatch.Update{UID: a.Task.UID, Decide: func(cur task.Current) (task.Change, error) {
			change, err := task.DecideReport(cur.Task, a.Lease.Token, task.Report{State: task.Completed},
				task.DefaultLimits, w.now(), cur.Clock)
			if i == 1 {
				change.Events[0].Seq = 2 // the log has a row with this number
			}
			return change, err
		}}
	}
	w.send(c, "waits", "x")
	claimed, err := tasks.Exchange(ctx, "acme", "bob", updates, dispatch.Batch{Most: 1},
		func(cur task.Current) (task.Change, error) {
			return task.DecideClaim(cur.Task, task.Lease{
				Token: "lease-" + cur.Task.UID + "-1", Worker: "w", ExpiresAt: cur.Clock.Add(time.Minute),
			}, w.now())
		})
	w.must(err)
	if len(claimed) != 1 {
		w.Errorf("claimed %d tasks, want 1", len(claimed))
	}
	for i := range updates {
		t, err := tasks.Row(ctx, "acme", updates[i].UID)
		w.must(err)
		if faulty := i == 1; faulty != (updates[i].Err != nil) || faulty == (t.State == task.Completed) {
			w.Errorf("update %d: error %v and state %s, want faulty = %v", i, updates[i].Err, t.State, faulty)
		}
	}
}

// testRacingExchanges: every task is completed once, by one worker.
func testRacingExchanges(w *world) {
	ctx := w.Context()
	const workers, all = 4, 60
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	for i := range all {
		w.send(c, fmt.Sprintf("t%d", i), "x")
	}
	var wg sync.WaitGroup
	var done atomic.Int64
	for i := range workers {
		wg.Go(func() {
			var reports []dispatch.LeaseReport
			for {
				got, err := w.tasks.Exchange(ctx, p, reports, exchangeClaim(fmt.Sprintf("w%d", i), 7))
				if err != nil || got.Err != nil {
					w.Errorf("exchange: %v, %v, want no error", err, got.Err)
					return
				}
				for _, r := range got.Results {
					if r.Err != nil {
						w.Errorf("report: %v, want no error", r.Err)
					}
					done.Add(1)
				}
				if len(got.Claim.Assignments) == 0 {
					return
				}
				reports = nil
				for _, a := range got.Claim.Assignments {
					reports = append(reports, completed(a))
				}
			}
		})
	}
	wg.Wait()
	if n := done.Load(); n != all {
		w.Errorf("%d reports succeeded, want %d", n, all)
	}
	for i := range all {
		w.checkLeases(c, fmt.Sprintf("t%d", i))
	}
}
