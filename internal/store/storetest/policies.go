package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/policy"
	"github.com/parley-dev/parley/internal/task"
)

// realTime sets the world's clock to that of the database, with which deadlines are compared.
func (w *world) realTime() { w.clock = time.Now().UTC().Truncate(time.Microsecond) }

func (w *world) sendWith(c dispatch.Call, id string, p policy.Policy) task.Task {
	w.Helper()
	t, err := w.tasks.Send(w.Context(), c, dispatch.SendRequest{ID: id, Message: says("x"), Policy: p}, 0)
	w.must(err)
	return t
}

// comesTo waits until a task is in a state and returns it.
func (w *world) comesTo(c dispatch.Call, id string, s task.State) (t task.Task) {
	w.Helper()
	w.until(id+" is "+string(s), func() bool {
		var err error
		t, err = w.newTasks().Get(w.Context(), c, id, task.All) // another node may have changed it
		w.must(err)
		return t.State == s
	})
	return t
}

// testDeadlines: a task fails at its deadline whatever it waits for, once, although two nodes look.
func testDeadlines(w *world) {
	w.realTime()
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	limit := policy.Policy{Timeout: 3 * time.Second}
	w.sendWith(c, "leased", limit)
	leased := w.claim(p)
	w.sendWith(c, "asking", limit)
	asking := w.claim(p)
	_, err := w.tasks.Report(ctx, p, asking.Lease.Token, task.Report{State: task.InputRequired})
	w.must(err)
	w.sendWith(c, "retrying", policy.Policy{
		Timeout: 3 * time.Second, Retry: policy.Retry{Attempts: 2, Backoff: 2 * time.Second, Failed: true},
	})
	retrying := w.claim(p)
	w.sendWith(c, "queued", limit)
	w.sendWith(c, "later", policy.Policy{Timeout: time.Hour})
	w.send(c, "free", "x")
	canceled := w.sendWith(c, "canceled", limit)
	_, err = w.tasks.Cancel(ctx, c, "canceled", task.Content{})
	w.must(err)
	if got := leased.Task.Policy; got.Timeout != limit.Timeout || got.Deadline.Sub(leased.Task.CreatedAt) != limit.Timeout {
		w.Errorf("policy of the assignment = %+v, want 3 s from %s", got, leased.Task.CreatedAt)
	}
	w.background(w.tasks.Run, w.newTasks().Run)
	w.advance(time.Second)
	if _, err := w.tasks.Report(ctx, p, retrying.Lease.Token, task.Report{State: task.Failed}); err != nil {
		w.Error(err)
	}
	w.advance(2 * time.Second)
	for id, doing := range map[string]string{
		"leased": "a worker was working on it", "asking": "it waited for its sender", "queued": "it waited for a worker",
	} {
		t := w.comesTo(c, id, task.Failed)
		if says := t.Message.Text(); !strings.HasSuffix(says, " passed while "+doing+".") ||
			!strings.Contains(says, t.Policy.Deadline.Format("2006-01-02T15:04:05")) {
			w.Errorf("%s says %q, want its deadline and that %s", id, says, doing)
		}
		log, err := w.store.Tasks().Events(ctx, "acme", t.UID, 0, 100)
		w.must(err)
		ends := slices.DeleteFunc(log, func(e task.Event) bool { return !e.State.Terminal() || e.State == "" })
		if len(ends) != 1 || t.Queued || t.Lease != (task.Lease{}) || !t.WakeAt.IsZero() {
			w.Errorf("%s ended %d times and is %+v, want once, and nothing left to do", id, len(ends), t)
		}
	}
	if t := w.comesTo(c, "retrying", task.Failed); t.Attempts != 0 {
		w.Errorf("attempts = %d, want 0: another one would start too late", t.Attempts)
	}
	for _, state := range []task.State{task.Completed, task.Failed, ""} {
		_, err := w.tasks.Report(ctx, p, leased.Lease.Token, task.Report{State: state})
		w.want(err, errs.Conflict)
	}
	for _, id := range []string{"later", "free"} {
		if t, err := w.tasks.Get(ctx, c, id, task.All); err != nil || t.State != task.Submitted {
			w.Errorf("%s is %s, %v, want submitted", id, t.State, err)
		}
	}
	if t, err := w.store.Tasks().Row(ctx, "acme", canceled.UID); err != nil || !t.WakeAt.IsZero() {
		w.Errorf("the canceled task wakes at %s, %v, want never", t.WakeAt, err)
	}
	w.checkLeases(c, "leased")
}

// testOverdueSend: a deadline in the past is refused, but the retry of a send finds its task.
func testOverdueSend(w *world) {
	w.realTime()
	ctx := w.Context()
	c := w.call("acme", "user:ann", "bob")
	at := w.now().Add(time.Minute)
	request := dispatch.SendRequest{ID: "once", Message: says("x"), Policy: policy.Policy{Deadline: at}}
	first, err := w.tasks.Send(ctx, c, request, 0)
	w.must(err)
	w.advance(time.Hour)
	again, err := w.tasks.Send(ctx, c, request, 0)
	if err != nil || again.UID != first.UID {
		w.Errorf("sent again: %s, %v, want %s", again.UID, err, first.UID)
	}
	request.ID = "another"
	_, err = w.tasks.Send(ctx, c, request, 0)
	w.want(err, errs.Invalid)
	request.Policy = policy.Policy{Deadline: w.now().Add(policy.MaxTimeout + time.Hour)}
	_, err = w.tasks.Send(ctx, c, request, 0)
	w.want(err, errs.Invalid)
}

// testRetryPolicy: failed attempts are repeated, later each time, also after a restart.
func testRetryPolicy(w *world) {
	w.realTime()
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	want := policy.Policy{Retry: policy.Retry{Attempts: 3, Backoff: time.Second, Lost: true, Failed: true}}
	sent := w.sendWith(c, "t1", want)
	sender := identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}
	for attempt := 1; attempt <= 3; attempt++ {
		a := w.claim(p)
		if a.Number != attempt || a.Task.Policy != want {
			w.Fatalf("assignment %d with %+v, want %d with %+v", a.Number, a.Task.Policy, attempt, want)
		}
		said := fmt.Sprintf("cause %d", attempt)
		failed := task.Report{State: task.Failed, Message: task.Says(said)}
		got, err := w.tasks.Report(ctx, p, a.Lease.Token, failed)
		w.must(err)
		if attempt == 3 {
			break
		}
		t, err := w.tasks.Get(ctx, c, "t1", task.All)
		w.must(err)
		if got.State != task.Working || t.Queued || t.WakeAt.IsZero() || t.Message.Parts[1].Text != said {
			w.Errorf("after attempt %d: %+v, %+v, want that it waits and says %q", attempt, got, t, said)
		}
		if n, err := w.store.Tasks().CountLive(ctx, sender, 10); err != nil || n != 1 {
			w.Errorf("live tasks = %d, %v, want 1", n, err)
		}
		if none, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{
			Worker: "w", Max: 1, Lease: time.Minute, Capacity: 1,
		}); err != nil || len(none.Assignments) != 0 {
			w.Errorf("claimed %+v, %v before its time", none, err)
		}
		wait := want.Retry.Wait(attempt)
		if d := t.WakeAt.Sub(t.UpdatedAt); d != wait {
			w.Errorf("attempt %d follows after %s, want %s", attempt+1, d, wait)
		}
		w.advance(wait)
		restarted, stop := context.WithCancel(ctx)
		node := w.newTasks()
		done := make(chan struct{})
		go func() { node.Run(restarted); close(done) }()
		w.until("the next attempt is queued", func() bool {
			t, err := w.store.Tasks().Row(ctx, "acme", sent.UID)
			w.must(err)
			return t.Queued
		})
		stop()
		<-done
	}
	t, err := w.tasks.Get(ctx, c, "t1", task.All)
	w.must(err)
	if t.State != task.Failed || t.Message.Text() != "cause 3" || !t.WakeAt.IsZero() {
		w.Errorf("task after three failures = %+v, want failed with the last cause", t)
	}
	w.checkLeases(c, "t1")
}

// testRetryInProcess: the retry policy also applies to agents that run in the server.
func testRetryInProcess(w *world) {
	w.realTime()
	var runs atomic.Int64
	w.tasks.Host(dispatch.Target{ID: "local", Org: "acme", Public: true}, setter(func(a dispatch.Assignment) error {
		if n := int(runs.Add(1)); n < 3 || a.Number != n {
			return fmt.Errorf("run %d is attempt %d", n, a.Number)
		}
		return nil
	}), dispatch.Hosting{})
	w.background(w.tasks.Run)
	c := w.call("acme", "user:ann", "local")
	w.sendWith(c, "t1", policy.Policy{Timeout: time.Hour, Retry: policy.Retry{Attempts: 3, Failed: true}})
	t := w.comesTo(c, "t1", task.Completed)
	if runs.Load() != 3 || t.Attempts != 2 {
		w.Errorf("%d runs, %d attempts before the last, want 3 and 2", runs.Load(), t.Attempts)
	}
	w.checkLeases(c, "t1")
}

// testRerun: a task that ended without a result is sent again under a new id that names the old one.
func testRerun(w *world) {
	w.realTime()
	ctx := w.Context()
	c, p := w.call("other", "service:crm", "bob"), w.post("bob")
	limit := policy.Policy{Timeout: time.Hour, Retry: policy.Retry{Attempts: 2, Lost: true}}
	old, err := w.tasks.Send(ctx, c, dispatch.SendRequest{
		ID: "a/1", Message: says("first"), ContextID: "ctx", Metadata: []byte(`{"x":1}`), Policy: limit,
		OutputModes: []string{"text/plain"},
	}, 0)
	w.must(err)
	for _, state := range []task.State{task.Submitted, task.Working} {
		if state == task.Working {
			a := w.claim(p)
			_, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.InputRequired})
			w.must(err)
			w.send(c, "a/1", "second")
		}
		_, err := w.tasks.Rerun(ctx, c, "a/1")
		if w.want(err, errs.Conflict); errs.As(err).Code != task.CodeNotRerunnable {
			w.Errorf("code = %s, want %s", errs.As(err).Code, task.CodeNotRerunnable)
		}
	}
	a := w.claim(p)
	_, err = w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Failed, Message: task.Says("no")})
	w.must(err)
	w.advance(time.Minute)
	for _, want := range []struct{ rerun, id string }{{"a/1", "a/1.2"}, {"a/1.2", "a/1.3"}, {"a/1", "a/1.4"}} {
		made, err := w.tasks.Rerun(ctx, c, want.rerun)
		w.must(err)
		if made.ID != want.id || made.UID == old.UID || made.ContextID != "ctx" || made.Sender != old.Sender {
			w.Errorf("task = %+v, want %s of the same sender and context", made, want.id)
		}
		again := w.claim(p)
		metadata := `{"x":1,"parley.dev/rerun_of":"` + want.rerun + `"}`
		if got := again.Task; got.ID != want.id || string(got.Metadata) != metadata || again.Number != 1 ||
			len(got.History) != 2 || got.History[0].Text() != "first" || got.History[1].Text() != "second" ||
			!slices.Equal(got.OutputModes, []string{"text/plain"}) {
			w.Errorf("assignment = %+v, want the two messages with %s", got, metadata)
		}
		if got := again.Task.Policy; got.Timeout != time.Hour || got.Retry != limit.Retry ||
			got.Deadline.Sub(again.Task.CreatedAt) != time.Hour {
			w.Errorf("policy = %+v, want an hour from %s", got, again.Task.CreatedAt)
		}
		_, err = w.tasks.Report(ctx, p, again.Lease.Token, task.Report{State: task.Rejected})
		w.must(err)
	}
	for _, other := range []dispatch.Call{
		w.call("other", "service:erp", "bob"), w.call("acme", "user:ann", "bob"), w.call("other", "service:crm", "eve"),
	} {
		_, err := w.tasks.Rerun(ctx, other, "a/1")
		w.want(err, errs.NotFound)
	}
	_, err = w.tasks.Rerun(ctx, c, "a/9")
	w.want(err, errs.NotFound)
	admin := w.as(w.access("acme", "user:ann"), identity.ManageAgents)
	_, err = w.tasks.OrgRerun(ctx, w.as(w.access("other", "user:zoe"), identity.ManageAgents), old.UID)
	w.want(err, errs.NotFound)
	made, err := w.tasks.OrgRerun(ctx, admin, old.UID)
	w.must(err)
	if made.ID != "a/1.5" || made.Sender != old.Sender {
		w.Errorf("rerun by an admin = %+v, want a/1.5 of %+v", made, old.Sender)
	}
	if got, err := w.tasks.Get(ctx, c, "a/1.5", task.All); err != nil || got.UID != made.UID {
		w.Errorf("its sender gets %s, %v, want %s", got.UID, err, made.UID)
	}
}

// testRacingReruns: commands with the same idempotency key make one task, others one each.
func testRacingReruns(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	w.send(c, "t", "x")
	a := w.claim(p)
	_, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Failed})
	w.must(err)
	const keys, each = 3, 4
	var mu sync.Mutex
	made := map[string]map[string]bool{}
	var wg sync.WaitGroup
	for i := range keys * each {
		value := fmt.Sprint("key-", i%keys)
		wg.Go(func() {
			k, err := idempotency.New("POST rerun", value, nil)
			w.must(err)
			once, _, err := idempotency.Begin(ctx, k, "acme", "user:ann", "secret")
			w.must(err)
			t, err := w.tasks.Rerun(once, c, "t")
			if err != nil {
				w.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if made[value] == nil {
				made[value] = map[string]bool{}
			}
			made[value][t.ID] = true
		})
	}
	wg.Wait()
	ids := map[string]bool{}
	for value, of := range made {
		if len(of) != 1 {
			w.Errorf("%s made %v, want one task", value, of)
		}
		maps.Copy(ids, of)
	}
	if want := map[string]bool{"t.2": true, "t.3": true, "t.4": true}; !maps.Equal(ids, want) {
		w.Errorf("the tasks are %v, want %v", ids, want)
	}
}
