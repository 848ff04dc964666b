package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// newTasks returns a task service over the store, like another node.
func (w *world) newTasks() *dispatch.Service { return dispatch.New(w.options()) }

// options returns the options of the world's task service.
func (w *world) options() dispatch.Options {
	return dispatch.Options{
		Stores: w.store.DispatchStores(), Directory: agents{}, Now: w.now, NewID: w.newID, Node: "here",
		Deliveries: w.deliveries(nil, delivery.Retry{}), OnError: w.failed,
	}
}

func (w *world) failed(err error) {
	if !errors.Is(err, context.Canceled) {
		w.Error(err)
	}
}

// background runs services until the test ends.
func (w *world) background(runs ...func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range runs {
		wg.Go(func() { run(ctx) })
	}
	w.Cleanup(func() { cancel(); wg.Wait() })
}

// agents holds the agents of these tests: all in org acme, and public except "own".
type agents struct{}

func (agents) Target(_ context.Context, _, id string) (dispatch.Target, *dispatch.Target, error) {
	if id == "nobody" {
		return dispatch.Target{}, nil, errs.ErrNotFound
	}
	return dispatch.Target{ID: id, Org: "acme", Public: id != "own"}, nil, nil
}

func (agents) Own(_ context.Context, org, id string) (dispatch.Target, error) {
	if id == "nobody" || org != "acme" {
		return dispatch.Target{}, errs.ErrNotFound
	}
	return dispatch.Target{ID: id, Org: "acme", Public: id != "own"}, nil
}

func (w *world) call(org, ref, agent string) dispatch.Call {
	w.Helper()
	c, err := w.tasks.Reach(w.Context(), w.access(org, ref).Caller(), agent)
	w.must(err)
	return c
}

func (w *world) post(agent string) dispatch.Post {
	w.Helper()
	p, err := w.tasks.Serve(w.Context(), w.access("acme", "agent:"+agent).Caller(), agent)
	w.must(err)
	return p
}

func says(text string) task.Message {
	return task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: text}}}
}

func (w *world) send(c dispatch.Call, id, text string) task.Task {
	w.Helper()
	t, err := w.tasks.Send(w.Context(), c, dispatch.SendRequest{ID: id, Message: says(text), Show: task.All}, 0)
	w.must(err)
	return t
}

func (w *world) claim(p dispatch.Post) dispatch.Assignment {
	w.Helper()
	got, err := w.tasks.Claim(w.Context(), p, dispatch.ClaimRequest{
		Worker: "w1", Max: 1, Lease: time.Minute, Capacity: 1,
	})
	w.must(err)
	if len(got.Assignments) != 1 {
		w.Fatalf("claimed %d tasks, want 1", len(got.Assignments))
	}
	return got.Assignments[0]
}

// until waits for a condition.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("timeout, want that %s", what)
		}
	}
}

func artifact(id, text string, more bool) task.ArtifactUpdate {
	return task.ArtifactUpdate{
		Artifact: task.Artifact{ID: id, Type: "text", Parts: []task.Part{{Kind: task.TextPart, Text: text}}}, Append: more,
	}
}

func testTaskLife(w *world) {
	ctx := w.Context()
	c, p := w.call("other", "service:crm", "bob"), w.post("bob")
	sent := w.send(c, "crm-1", "hello")
	if sent.State != task.Submitted || sent.ID != "crm-1" || len(sent.History) != 1 {
		w.Errorf("task without a worker = %+v, want it submitted as crm-1", sent)
	}
	a := w.claim(p)
	if a.Number != 1 || a.Task.UID != sent.UID || a.Task.State != task.Working ||
		a.Task.History[0].Parts[0].Text != "hello" {
		w.Errorf("assignment = %+v, want attempt 1 of %s", a, sent.UID)
	}
	for i, r := range []task.Report{
		{Message: ptr(agentSays("thinking"))},
		{Artifacts: []task.ArtifactUpdate{artifact("a", "one ", false), artifact("b", "x", false)}},
		{Artifacts: []task.ArtifactUpdate{artifact("a", "two", true)}, Extend: time.Hour},
		{State: task.InputRequired, Message: ptr(agentSays("which one?"))},
	} {
		got, err := w.tasks.Report(ctx, p, a.Lease.Token, r)
		w.must(err)
		if want := task.Working; i < 3 && got.State != want {
			w.Errorf("report %d = %+v, want state %s", i, got, want)
		}
	}
	waiting, err := w.tasks.Get(ctx, c, "crm-1", task.All)
	w.must(err)
	if waiting.State != task.InputRequired || waiting.Message.Parts[0].Text != "which one?" {
		w.Errorf("task = %+v, want input-required with a question", waiting)
	}
	answered := w.send(c, "crm-1", "the second")
	if answered.State != task.Working || !answered.Queued {
		w.Errorf("task after the reply = %+v, want it working and queued", answered)
	}
	a = w.claim(p)
	if n := len(a.Task.History); n != 4 || a.Number != 1 {
		w.Errorf("second lease has %d messages, attempt %d, want 4 and 1", n, a.Number)
	}
	done, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{
		State: task.Completed, Artifacts: []task.ArtifactUpdate{artifact("c", "end", false)},
	})
	w.must(err)
	if done.State != task.Completed || !done.ExpiresAt.IsZero() {
		w.Errorf("last report = %+v, want completed without a lease", done)
	}
	got, err := w.tasks.Get(ctx, c, "crm-1", task.All)
	w.must(err)
	var texts []string
	for _, art := range got.Artifacts {
		for _, part := range art.Parts {
			texts = append(texts, art.ID+":"+part.Text)
		}
	}
	if diff := cmp.Diff([]string{"a:one ", "a:two", "b:x", "c:end"}, texts); diff != "" || got.State != task.Completed {
		w.Errorf("state = %s, want completed; diff of the artifacts (-want +got):\n%s", got.State, diff)
	}
}

func agentSays(text string) task.Message {
	m := says(text)
	m.Role = task.RoleAgent
	return m
}

func ptr[T any](v T) *T { return &v }

func testResend(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	first := w.send(c, "t1", "hello")
	if again := w.send(c, "t1", "hello"); again.UID != first.UID || again.Seq != first.Seq {
		w.Errorf("task after a retry = %+v, want it unchanged", again)
	}
	a := w.claim(p)
	more := w.send(c, "t1", "and one more thing")
	if more.UID != first.UID || len(more.History) != 2 || more.State != task.Working {
		w.Errorf("task after a further turn = %+v, want it working with 2 messages", more)
	}
	got, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{})
	w.must(err)
	if len(got.Turns) != 1 || got.Turns[0].Parts[0].Text != "and one more thing" {
		w.Errorf("turns for the worker = %+v, want the last message", got.Turns)
	}
	got, err = w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.InputRequired})
	if err != nil || len(got.Turns) != 0 {
		w.Errorf("turns of the next report = %+v, %v, want none", got.Turns, err)
	}
	// The same words are a reply once the agent has asked.
	if again := w.send(c, "t1", "and one more thing"); again.State != task.Working || len(again.History) != 3 {
		w.Errorf("task after a reply = %+v, want it working with 3 messages", again)
	}
	a = w.claim(p)
	_, err = w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Failed})
	w.must(err)
	if again := w.send(c, "t1", "and one more thing"); again.State != task.Failed {
		w.Errorf("task after a retry of the last message = %+v, want it failed", again)
	}
	_, err = w.tasks.Send(ctx, c, dispatch.SendRequest{ID: "t1", Message: says("new")}, 0)
	if w.want(err, errs.Conflict); errs.As(err).Code != task.CodeTerminal {
		w.Errorf("code = %s, want %s", errs.As(err).Code, task.CodeTerminal)
	}
	_, err = w.tasks.Send(ctx, c, dispatch.SendRequest{ID: "unknown", Message: says("new"), MustExist: true}, 0)
	w.want(err, errs.NotFound)
}

// testTasksSince: the filter includes the given time, with the store's precision of microseconds.
func testTasksSince(w *world) {
	ctx := w.Context()
	c := w.call("acme", "user:ann", "bob")
	w.send(c, "t1", "hello")
	list, err := w.tasks.Own(ctx, c, dispatch.OwnRequest{})
	w.must(err)
	at := list.Tasks[0].UpdatedAt
	for since, want := range map[time.Duration]int64{-time.Microsecond: 1, -1: 1, 0: 1, 1: 0, time.Microsecond: 0} {
		list, err := w.tasks.Own(ctx, c, dispatch.OwnRequest{UpdatedAfter: at.Add(since)})
		w.must(err)
		if list.Total != want || int64(len(list.Tasks)) != want {
			w.Errorf("%v after the change there are %d tasks, want %d", since, list.Total, want)
		}
	}
}

func testTaskOwnership(w *world) {
	ctx := w.Context()
	ann, eve := w.call("acme", "user:ann", "bob"), w.call("acme", "user:eve", "bob")
	twin := w.call("other", "user:ann", "bob")
	mine := w.send(ann, "t1", "secret")
	for _, sender := range []identity.Principal{
		{Org: "acme", Kind: identity.User, ID: "eve"}, {Org: "other", Kind: identity.User, ID: "ann"},
	} {
		if key := (task.Key{Org: mine.Org, Agent: mine.Agent, Sender: sender, ID: "t1"}); w.store.Tasks().Taken(ctx, key) {
			w.Errorf("%+v is taken by the task of another sender", key)
		}
	}
	for _, c := range []dispatch.Call{eve, twin} {
		_, err := w.tasks.Get(ctx, c, "t1", task.All)
		w.want(err, errs.NotFound)
		_, err = w.tasks.Cancel(ctx, c, "t1", task.All)
		w.want(err, errs.NotFound)
		_, _, err = w.tasks.Follow(ctx, c, "t1", 0, 0)
		w.want(err, errs.NotFound)
		own := w.send(c, "t1", "mine")
		if own.UID == mine.UID || len(own.History) != 1 || own.Seq != mine.Seq {
			w.Errorf("task of another sender with the same id = %+v, want a new one", own)
		}
		list, err := w.tasks.Own(ctx, c, dispatch.OwnRequest{})
		w.must(err)
		if len(list.Tasks) != 1 || list.Tasks[0].UID != own.UID || list.Total != 1 {
			w.Errorf("tasks of the other sender = %+v, want %s", list, own.UID)
		}
	}
	admin := w.access("acme", "user:root")
	all, err := w.tasks.OrgTasks(ctx, w.as(admin, identity.ReadTasks), dispatch.Filter{Limit: 10})
	w.must(err)
	one, err := w.tasks.OrgTask(ctx, w.as(admin, identity.ReadTasks), mine.UID)
	w.must(err)
	if len(all) != 3 || one.ID != "t1" || one.Sender.Ref() != "user:ann" {
		w.Errorf("tasks seen by the admin = %d, %+v, want 3, and t1 of user:ann", len(all), one)
	}
	_, err = w.tasks.OrgTask(ctx, w.as(w.access("other", "user:root"), identity.ReadTasks), mine.UID)
	w.want(err, errs.NotFound)
	_, err = w.access("acme", "user:x", memberScopes...).As(identity.ReadTasks)
	w.want(err, errs.Forbidden)

	for _, c := range []struct {
		org, ref, agent string
		scopes          []identity.Scope
		kind            errs.Kind
	}{
		{"other", "user:ann", "own", nil, errs.NotFound}, // not public
		{"acme", "user:ann", "nobody", nil, errs.NotFound},
		{"acme", "user:ann", "Bob", nil, errs.NotFound},
		{"acme", "user:ann", "bob", []identity.Scope{identity.TasksWrite}, errs.Forbidden},
		{"acme", "user:ann", "bob", []identity.Scope{identity.TasksWrite, identity.A2AWrite, "agent:cy"}, errs.Forbidden},
		{"acme", "user:ann", "nobody", []identity.Scope{identity.TasksWrite, identity.A2AWrite, "agent:cy"}, errs.Forbidden},
	} {
		_, err := w.tasks.Reach(ctx, w.access(c.org, c.ref, c.scopes...).Caller(), c.agent)
		w.want(err, c.kind)
	}
	for _, c := range []struct {
		org, ref string
		scopes   []identity.Scope
		ok       bool
	}{
		{"acme", "agent:bob", nil, true},
		{"acme", "agent:cy", nil, false}, // an agent works for itself only
		{"acme", "user:ann", nil, false}, // others need an explicit scope
		{"other", "agent:bob", nil, false},
		{"acme", "service:host", []identity.Scope{identity.TasksWrite, identity.A2AServe, "agent:bob"}, true},
		{"acme", "service:host", []identity.Scope{identity.TasksWrite, identity.A2AServe, "agent:*"}, true},
		{"acme", "service:host", []identity.Scope{identity.TasksWrite, identity.A2AServe, "agent:cy"}, false},
		{"acme", "agent:bob", []identity.Scope{identity.TasksWrite, identity.A2AWrite}, false},
	} {
		if _, err := w.tasks.Serve(ctx, w.access(c.org, c.ref, c.scopes...).Caller(), "bob"); (err == nil) != c.ok {
			w.Errorf("%s/%s %v works for bob = %v, want allowed = %t", c.org, c.ref, c.scopes, err, c.ok)
		}
	}
}
