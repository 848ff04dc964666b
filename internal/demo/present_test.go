package demo

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/task"
)

func TestTheCompanyWorks(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	before := len(w.tasks())
	var mu sync.Mutex
	var failed []error
	const acts = 60
	c := NewCompany(w.Services, orgtest.Now, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failed = append(failed, err)
	})
	c.beat, c.acts = time.Millisecond, acts
	c.pace = func(time.Duration) time.Duration { return 2 * time.Millisecond }
	ctx, stop := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { c.Run(ctx) })
	w.await("proposal and every kind of end", func(count map[task.State]int, answered bool) bool {
		return count[task.Completed] >= 20 && count[task.Failed] >= 2 && count[task.Canceled] >= 1 && answered &&
			len(w.proposals()) == 41
	})
	stop()
	run.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(failed) > 0 {
		t.Errorf("errors: %v", failed)
	}
	after := w.tasks()
	if n := len(after) - before; n > acts {
		t.Errorf("%d new tasks, want at most %d", n, acts)
	}
	for _, x := range after {
		if x.Lease.Live() {
			t.Errorf("task %s of %s is still held by %s, which has stopped", x.ID, x.Agent, x.Lease.Worker)
		}
		if x.Agent == offline && x.CreatedAt.After(w.start.Add(-2*day)) && x.State != task.Submitted {
			t.Errorf("%s has no worker, but its task is %s", offline, x.State)
		}
	}
}

// await waits until the tasks of the present fulfil a condition. answered is whether a question was
// asked and answered.
func (w *town) await(what string, ok func(count map[task.State]int, answered bool) bool) {
	w.Helper()
	within, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	for {
		count, answered := map[task.State]int{}, false
		for _, x := range w.tasks() {
			if x.CreatedAt.Before(w.start) {
				continue
			}
			count[x.State]++
			answered = answered || x.State == task.Completed && jobOf(x.Agent, w.text(&x)).question != ""
		}
		if ok(count, answered) {
			return
		}
		select {
		case <-within.Done():
			w.Fatalf("no new %s within a minute; tasks: %v, answered: %v", what, count, answered)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// text returns the first message of a task.
func (w *town) text(x *task.Task) string {
	w.Helper()
	full, err := w.store.Tasks().ByUID(w.Context(), x.Org, x.UID, task.Content{History: true})
	if err != nil || len(full.History) == 0 {
		w.Fatal(err)
	}
	return full.History[0].Parts[0].Text
}
