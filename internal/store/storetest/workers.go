package storetest

import (
	"context"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/trace"
)

// testTurnsWithoutMemory: a stored report is accepted, also if the server has no memory for the
// sender's messages. A later report delivers them once.
func testTurnsWithoutMemory(w *world) {
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	for _, seen := range []bool{false, true} {
		id := map[bool]string{false: "without seen", true: "with seen"}[seen]
		w.send(c, id, "hello")
		a := w.claim(p)
		w.send(c, id, "small")
		large := strings.Repeat("x", 100<<10)
		w.send(c, id, large)
		pool := budget.NewPool(budget.Limits{Memory: 1 << 20, Response: 1 << 20})
		full := &budget.Account{Pool: pool, Owner: budget.Owner{Org: "acme", Principal: "agent:bob"}}
		w.must(full.Hold(w.Context(), 200<<10))
		ctx := context.WithValue(w.Context(), budget.Key{}, &budget.Account{Pool: pool, Owner: full.Owner})
		report := task.Report{Message: ptr(agentSays("half"))}
		if seen {
			report.Seen = &a.Task.Seq
		}
		got, err := w.tasks.Report(ctx, p, a.Lease.Token, report)
		w.must(err)
		if !got.More || got.State != task.Working || len(got.Turns) > 1 {
			w.Errorf("%s: turns = %d, more = %v, want at most 1, and more", id, len(got.Turns), got.More)
		}
		full.Close()
		next := task.Report{}
		if seen {
			next.Seen = &got.Seen
		}
		rest, err := w.tasks.Report(w.Context(), p, a.Lease.Token, next)
		w.must(err)
		var texts []int
		for _, m := range append(got.Turns, rest.Turns...) {
			texts = append(texts, len(m.Parts[0].Text))
		}
		if diff := cmp.Diff([]int{len("small"), len(large)}, texts); diff != "" || rest.More {
			w.Errorf("%s: more = %v, want false; diff of the turns' lengths (-want +got):\n%s", id, rest.More, diff)
		}
		again, err := w.tasks.Report(w.Context(), p, a.Lease.Token, task.Report{})
		if w.must(err); len(again.Turns) > 0 {
			w.Errorf("%s: turns of the next report = %d, want 0", id, len(again.Turns))
		}
		w.report(p, a, task.Report{State: task.Completed})
	}
}

func testAuthRequired(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	w.send(c, "t1", "hello")
	a := w.claim(p)
	w.report(p, a, task.Report{State: task.AuthRequired, Message: ptr(agentSays("sign in at …"))})
	waits, err := w.tasks.Get(ctx, c, "t1", task.All)
	if w.must(err); waits.State != task.AuthRequired || waits.Message == nil {
		w.Errorf("task = %+v, want auth-required with a message", waits)
	}
	if again := w.send(c, "t1", "hello"); again.State != task.Working || !again.Queued {
		w.Errorf("task after the reply = %+v, want it working and queued", again)
	}
	a = w.claim(p)
	canceled, err := w.tasks.Cancel(ctx, c, "t1", task.All)
	if w.must(err); canceled.State != task.Canceled {
		w.Errorf("task = %+v, want canceled", canceled)
	}
	for range 2 {
		got, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Canceled})
		if w.must(err); !got.Canceled || got.State != task.Canceled {
			w.Errorf("report = %+v, want canceled", got)
		}
	}
}

func testClaimShowsTheRequest(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	send := func(r dispatch.SendRequest) {
		r.ID = "mine"
		_, err := w.tasks.Send(ctx, c, r, 0)
		w.must(err)
	}
	check := func(modes []string, metadata string) dispatch.Assignment {
		a := w.claim(p)
		got := a.Task.RequestMetadata
		if got == nil {
			got = a.Task.Metadata
		}
		if a.Task.ID != "mine" || !slices.Equal(a.Task.OutputModes, modes) || string(got) != metadata {
			w.Errorf("task = %q, output modes %v, metadata %s, want mine, %v, %s",
				a.Task.ID, a.Task.OutputModes, got, modes, metadata)
		}
		return a
	}
	send(dispatch.SendRequest{
		Message: says("one"), OutputModes: []string{"text/plain", "image/png"}, Metadata: []byte(`{"a":1}`),
	})
	a := check([]string{"text/plain", "image/png"}, `{"a":1}`)
	w.report(p, a, task.Report{State: task.InputRequired})
	send(dispatch.SendRequest{Message: says("two"), Metadata: []byte(`{"b":2}`)})
	a = check([]string{"text/plain", "image/png"}, `{"b":2}`)
	w.report(p, a, task.Report{State: task.InputRequired})
	send(dispatch.SendRequest{Message: says("three"), OutputModes: []string{"text/html"}})
	check([]string{"text/html"}, `{"b":2}`)
	// The sender sees the metadata of the task unchanged.
	if t, err := w.tasks.Get(ctx, c, "mine", task.All); err != nil || string(t.Metadata) != `{"a":1}` {
		w.Errorf("metadata = %s, %v, want {\"a\":1}", t.Metadata, err)
	}
	long := slices.Repeat([]string{"text/plain"}, task.MaxIDs+1)
	_, err := w.tasks.Send(ctx, c, dispatch.SendRequest{ID: "x", Message: says("x"), OutputModes: long}, 0)
	w.want(err, errs.Invalid)
}

// testClaimShowsTheTrace: the trace of the latest message that had one survives in the task's row.
func testClaimShowsTheTrace(w *world) {
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	send := func(id, text string, t *trace.Context) {
		ctx := context.WithValue(w.Context(), trace.Key{}, t)
		_, err := w.tasks.Send(ctx, c, dispatch.SendRequest{ID: id, Message: says(text), Metadata: []byte(`{"a":1}`)}, 0)
		w.must(err)
	}
	check := func(want string) {
		w.Helper()
		a := w.claim(p)
		got, err := w.tasks.Report(w.Context(), p, a.Lease.Token, task.Report{State: task.InputRequired})
		if w.must(err); a.Task.Trace != want || got.Trace != want {
			w.Errorf("the claim has the trace %q, the report %q, want %q", a.Task.Trace, got.Trace, want)
		}
	}
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	first, second := &trace.Context{Parent: parent}, &trace.Context{Parent: parent[:53] + "00", State: "a=1"}
	send("none", "one", nil)
	check("")
	send("traced", "one", first)
	check(first.String())
	send("traced", "two", nil)
	check(first.String())
	send("traced", "three", second)
	check(second.String())
	t, err := w.tasks.Get(w.Context(), c, "traced", task.All)
	if w.must(err); t.Trace != second.String() {
		w.Errorf("the stored trace is %q", t.Trace)
	}
}

// testReportOnce: a report whose response was lost is repeated safely.
func testReportOnce(w *world) {
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	w.send(c, "t1", "hello")
	a := w.claim(p)
	w.send(c, "t1", "and this")
	report := func(key string, r task.Report) (dispatch.Progress, bool) {
		k, err := idempotency.New("report "+a.Lease.Token, key, []byte(key))
		w.must(err)
		ctx, once, err := idempotency.Begin(w.Context(), k, "acme", "agent:bob", "secret")
		w.must(err)
		got, err := w.tasks.Report(ctx, p, a.Lease.Token, r)
		w.must(err)
		return got, once.Replayed()
	}
	for _, r := range []struct {
		key    string
		report task.Report
	}{
		{"piece", task.Report{Artifacts: []task.ArtifactUpdate{artifact("a", "x", true)}}},
		{"end", task.Report{State: task.Completed}},
	} {
		first, replayed := report(r.key, r.report)
		again, repeated := report(r.key, r.report)
		if replayed || !repeated {
			w.Errorf("%s: replayed = %v, then %v, want false, then true", r.key, replayed, repeated)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			w.Errorf("%s: diff of the replay (-want +got):\n%s", r.key, diff)
		}
		if want := map[string]int{"piece": 1, "end": 0}[r.key]; len(again.Turns) != want {
			w.Errorf("%s: turns = %d, want %d", r.key, len(again.Turns), want)
		}
	}
	got, err := w.tasks.Get(w.Context(), c, "t1", task.All)
	if w.must(err); len(got.Artifacts) != 1 || len(got.Artifacts[0].Parts) != 1 || got.State != task.Completed {
		w.Errorf("task = %+v, want it completed with 1 artifact of 1 part", got)
	}
}

// testReportOnceWithoutMemory repeats a report after a later one, when the server has no memory
// for the messages. They stay delivered, because the later report had them.
func testReportOnceWithoutMemory(w *world) {
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	w.send(c, "t1", "hello")
	a := w.claim(p)
	w.send(c, "t1", strings.Repeat("x", 100<<10))
	report := func(ctx context.Context) dispatch.Progress {
		k, err := idempotency.New("report", "k", nil)
		w.must(err)
		ctx, _, err = idempotency.Begin(ctx, k, "acme", "agent:bob", "secret")
		w.must(err)
		got, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{Message: ptr(agentSays("half"))})
		w.must(err)
		return got
	}
	if got := report(w.Context()); len(got.Turns) != 1 || got.More {
		w.Errorf("turns = %d, more = %v, want 1, and no more", len(got.Turns), got.More)
	}
	pool := budget.NewPool(budget.Limits{Memory: 1 << 20, Response: 1 << 20})
	full := &budget.Account{Pool: pool, Owner: budget.Owner{Org: "acme", Principal: "agent:bob"}}
	w.must(full.Hold(w.Context(), 200<<10))
	again := report(context.WithValue(w.Context(), budget.Key{}, &budget.Account{Pool: pool, Owner: full.Owner}))
	full.Close()
	if !again.More || len(again.Turns) != 0 || again.Seen >= a.Task.Seq+2 {
		w.Errorf("repeat: turns = %d, more = %v, seen = %d, want 0, true and less than %d",
			len(again.Turns), again.More, again.Seen, a.Task.Seq+2)
	}
	next, err := w.tasks.Report(w.Context(), p, a.Lease.Token, task.Report{})
	if w.must(err); len(next.Turns) != 0 {
		w.Errorf("turns of the next report = %d, want 0", len(next.Turns))
	}
	rest, err := w.tasks.Report(w.Context(), p, a.Lease.Token, task.Report{Seen: &again.Seen})
	if w.must(err); len(rest.Turns) != 1 {
		w.Errorf("%d messages since %d, want the one that was left out", len(rest.Turns), again.Seen)
	}
}
