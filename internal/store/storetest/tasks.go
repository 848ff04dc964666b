package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/task"
)

// newTasks makes a task service over the store, as another node would.
func (w *world) newTasks() *task.Tasks {
	s := task.New(task.Options{
		Store: w.store, Directory: agents{}, Now: w.now, NewID: w.newID, Node: "here",
		OnError: func(err error) {
			if !errors.Is(err, context.Canceled) {
				w.Error(err)
			}
		},
	})
	return s
}

// background runs a service until the test ends.
func (w *world) background(s *task.Tasks) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	w.Cleanup(func() { cancel(); wg.Wait() })
}

// agents knows the agents of these tests: all in org acme, public but for "own".
type agents struct{}

func (agents) Target(_ context.Context, id string) (task.Target, error) {
	if id == "nobody" {
		return task.Target{}, errs.ErrNotFound
	}
	return task.Target{ID: id, Org: "acme", Public: id != "own"}, nil
}

func (w *world) call(org, ref, agent string) task.Call {
	w.Helper()
	c, err := w.tasks.Reach(w.Context(), w.access(org, ref).Caller(), agent)
	w.must(err)
	return c
}

func (w *world) post(agent string) task.Post {
	w.Helper()
	p, err := w.tasks.Serve(w.Context(), w.access("acme", "agent:"+agent).Caller(), agent)
	w.must(err)
	return p
}

func says(text string) task.Message {
	return task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: text}}}
}

func (w *world) send(c task.Call, id, text string) task.Task {
	w.Helper()
	t, err := w.tasks.Send(w.Context(), c, task.SendRequest{ID: id, Message: says(text)}, 0)
	w.must(err)
	return t
}

func (w *world) claim(p task.Post) task.Assignment {
	w.Helper()
	got, err := w.tasks.Claim(w.Context(), p, task.ClaimRequest{Worker: "w1", Max: 1, Lease: time.Minute, Capacity: 1})
	w.must(err)
	if len(got.Assignments) != 1 {
		w.Fatalf("claimed %d tasks; want 1", len(got.Assignments))
	}
	return got.Assignments[0]
}

// until waits for a condition.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("waited in vain until %s", what)
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
		w.Errorf("sent to nobody: %+v", sent)
	}
	a := w.claim(p)
	if a.Number != 1 || a.Task.UID != sent.UID || a.Task.State != task.Working || a.Task.History[0].Parts[0].Text != "hello" {
		w.Errorf("assigned %+v", a)
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
			w.Errorf("report %d: %+v", i, got)
		}
	}
	waiting, err := w.tasks.Get(ctx, c, "crm-1")
	w.must(err)
	if waiting.State != task.InputRequired || waiting.Message.Parts[0].Text != "which one?" {
		w.Errorf("waits as %+v", waiting)
	}
	answered := w.send(c, "crm-1", "the second")
	if answered.State != task.Working || !answered.Queued {
		w.Errorf("after the answer: %+v", answered)
	}
	a = w.claim(p)
	if n := len(a.Task.History); n != 4 || a.Number != 1 {
		w.Errorf("the second lease has %d messages, attempt %d", n, a.Number)
	}
	done, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Completed, Artifacts: []task.ArtifactUpdate{artifact("c", "end", false)}})
	w.must(err)
	if done.State != task.Completed || !done.ExpiresAt.IsZero() {
		w.Errorf("completed as %+v", done)
	}
	got, err := w.tasks.Get(ctx, c, "crm-1")
	w.must(err)
	var texts []string
	for _, art := range got.Artifacts {
		for _, part := range art.Parts {
			texts = append(texts, art.ID+":"+part.Text)
		}
	}
	if diff := cmp.Diff([]string{"a:one ", "a:two", "b:x", "c:end"}, texts); diff != "" || got.State != task.Completed {
		w.Errorf("ended %s\n%s", got.State, diff)
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
		w.Errorf("a retry made %+v", again)
	}
	a := w.claim(p)
	more := w.send(c, "t1", "and one more thing")
	if more.UID != first.UID || len(more.History) != 2 || more.State != task.Working {
		w.Errorf("a further turn made %+v", more)
	}
	got, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{})
	w.must(err)
	if len(got.Turns) != 1 || got.Turns[0].Parts[0].Text != "and one more thing" {
		w.Errorf("the worker was given %+v", got.Turns)
	}
	if got, err = w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.InputRequired}); err != nil || len(got.Turns) != 0 {
		w.Errorf("the same turn again: %+v, %v", got.Turns, err)
	}
	// The same words are an answer once the agent has asked.
	if again := w.send(c, "t1", "and one more thing"); again.State != task.Working || len(again.History) != 3 {
		w.Errorf("an answer made %+v", again)
	}
	a = w.claim(p)
	_, err = w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Failed})
	w.must(err)
	if again := w.send(c, "t1", "and one more thing"); again.State != task.Failed {
		w.Errorf("a retry of the last message on an ended task made %+v", again)
	}
	_, err = w.tasks.Send(ctx, c, task.SendRequest{ID: "t1", Message: says("new")}, 0)
	if w.want(err, errs.Conflict); errs.As(err).Code != task.CodeTerminal {
		w.Errorf("code %s", errs.As(err).Code)
	}
	_, err = w.tasks.Send(ctx, c, task.SendRequest{ID: "unknown", Message: says("new"), MustExist: true}, 0)
	w.want(err, errs.NotFound)
}

func testTaskOwnership(w *world) {
	ctx := w.Context()
	ann, eve, twin := w.call("acme", "user:ann", "bob"), w.call("acme", "user:eve", "bob"), w.call("other", "user:ann", "bob")
	mine := w.send(ann, "t1", "secret")
	for _, c := range []task.Call{eve, twin} {
		_, err := w.tasks.Get(ctx, c, "t1")
		w.want(err, errs.NotFound)
		_, err = w.tasks.Cancel(ctx, c, "t1")
		w.want(err, errs.NotFound)
		_, _, err = w.tasks.Follow(ctx, c, "t1", 0, 0)
		w.want(err, errs.NotFound)
		own := w.send(c, "t1", "mine")
		if own.UID == mine.UID || len(own.History) != 1 || own.Seq != mine.Seq {
			w.Errorf("the same id of another sender made %+v", own)
		}
		list, err := w.tasks.List(ctx, c, task.Filter{Limit: 10})
		w.must(err)
		if len(list) != 1 || list[0].UID != own.UID {
			w.Errorf("the other's list is %+v", list)
		}
	}
	admin := w.access("acme", "user:root")
	all, err := w.tasks.OrgTasks(ctx, admin, task.Filter{Limit: 10})
	w.must(err)
	one, err := w.tasks.OrgTask(ctx, admin, mine.UID)
	w.must(err)
	if len(all) != 3 || one.ID != "t1" || one.Sender.Ref() != "user:ann" {
		w.Errorf("the admin sees %d tasks, and %+v", len(all), one)
	}
	_, err = w.tasks.OrgTask(ctx, w.access("other", "user:root"), mine.UID)
	w.want(err, errs.NotFound)
	_, err = w.tasks.OrgTasks(ctx, w.access("acme", "user:x", memberScopes...), task.Filter{Limit: 1})
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
			w.Errorf("%s/%s %v works for bob: %v", c.org, c.ref, c.scopes, err)
		}
	}
}

func testCancel(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	w.send(c, "queued", "x")
	got, err := w.tasks.Cancel(ctx, c, "queued")
	w.must(err)
	if got.State != task.Canceled || got.Queued {
		w.Errorf("canceled as %+v", got)
	}
	_, err = w.tasks.Cancel(ctx, c, "queued")
	if w.want(err, errs.Conflict); errs.As(err).Code != task.CodeNotCancelable {
		w.Errorf("code %s", errs.As(err).Code)
	}
	w.send(c, "running", "x")
	a := w.claim(p) // the canceled one is not given out
	if a.Task.ID != "running" {
		w.Fatalf("claimed %s", a.Task.ID)
	}
	_, err = w.tasks.Cancel(ctx, c, "running")
	w.must(err)
	told, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Completed})
	w.must(err)
	if !told.Canceled || told.State != task.Canceled {
		w.Errorf("the worker was told %+v", told)
	}
	if got, err := w.tasks.Get(ctx, c, "running"); err != nil || got.State != task.Canceled {
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
	before, err := w.tasks.Get(ctx, c, "t1")
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
func (w *world) checkLeases(c task.Call, id string) {
	w.Helper()
	t, err := w.tasks.Get(w.Context(), c, id)
	w.must(err)
	events, err := w.store.TaskEvents(w.Context(), t.Org, t.UID, 0, 1000)
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
		got, err := w.tasks.Claim(ctx, p, task.ClaimRequest{Worker: "w", Max: 1, Lease: task.MinLease, Capacity: 1})
		w.must(err)
		if len(got.Assignments) != 1 || got.Assignments[0].Number != attempt {
			w.Fatalf("attempt %d: claimed %+v", attempt, got)
		}
		token := got.Assignments[0].Lease.Token
		w.advance(task.MinLease + time.Second) // SQLite's leases; PostgreSQL measures its own time
		w.until("the lease is over", func() bool {
			t, err := w.tasks.Get(ctx, c, "t1")
			w.must(err)
			return t.Queued || t.State.Terminal()
		})
		_, err = w.tasks.Report(ctx, p, token, task.Report{State: task.Completed})
		w.want(err, errs.Conflict)
	}
	t, err := w.tasks.Get(ctx, c, "t1")
	w.must(err)
	if t.State != task.Failed || t.Message == nil || t.Attempts != task.MaxAttempts {
		w.Errorf("after three lost workers: %+v", t)
	}
	w.checkLeases(c, "t1")
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
			got, err := w.tasks.Claim(ctx, p, task.ClaimRequest{Worker: fmt.Sprint("w", i), Max: 3, Lease: time.Minute, Capacity: 3})
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
		got := make(chan task.Claim, 1)
		go func() {
			claim, err := w.tasks.Claim(ctx, p, task.ClaimRequest{Worker: "w", Max: 1, Wait: 20 * time.Second, Lease: time.Minute, Capacity: 1})
			if err != nil {
				w.Error(err)
			}
			got <- claim
		}()
		if i%2 == 0 {
			w.until("the worker waits", func() bool { return w.tasks.Waiting("bob") == 1 })
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

func testEcho(w *world) {
	ctx := w.Context()
	c := w.call("other", "user:ann", "echo")
	early := w.send(c, "early", "before it runs")
	if early.State != task.Submitted {
		w.Errorf("sent to an agent that is not there: %s", early.State)
	}
	w.tasks.Host(task.Target{ID: "echo", Org: "acme", Public: true}, task.Echo{})
	w.background(w.tasks)
	race(w, 50, func(i int) error {
		t, err := w.tasks.Send(ctx, c, task.SendRequest{ID: fmt.Sprint("t", i), Message: says(fmt.Sprint("hello ", i))}, 20*time.Second)
		if err == nil && (t.State != task.Completed || t.Artifacts[0].Parts[0].Text != fmt.Sprint("hello ", i)) {
			err = fmt.Errorf("answered %+v", t)
		}
		return err
	})
	w.until("the early task is done", func() bool {
		t, err := w.tasks.Get(ctx, c, "early")
		w.must(err)
		return t.State == task.Completed
	})
	w.checkLeases(c, "early")
}

// testTakeOver: a server that was killed in the middle of its agents' work leaves
// leases; the next one takes the work over without waiting for them, and no
// attempt is lost.
func testTakeOver(w *world) {
	ctx := w.Context()
	c := w.call("acme", "user:ann", "echo")
	w.send(c, "t1", "hello")
	killed, err := w.store.ClaimTasks(ctx, "acme", "echo", 1, func(cur task.Current) (task.Change, error) {
		ch := task.Change{Task: cur.Task}
		ch.Task.Queued = false
		ch.Task.Seq++
		ch.Task.State = task.Working
		ch.Task.Lease = task.Lease{Token: "lease-" + cur.Task.UID + "-1", Worker: "server:gone", ExpiresAt: cur.Clock.Add(time.Hour)}
		ch.Events = []task.Event{{Seq: ch.Task.Seq, At: w.now(), Kind: task.StatusEvent, State: task.Working, Lease: ch.Task.Lease.Token, Attempt: 1}}
		return ch, nil
	})
	w.must(err)
	if len(killed) != 1 {
		w.Fatalf("claimed %d", len(killed))
	}
	w.tasks.Host(task.Target{ID: "echo", Org: "acme", Public: true}, task.Echo{})
	w.background(w.tasks)
	w.until("the next server has done it", func() bool {
		t, err := w.tasks.Get(ctx, c, "t1")
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
	collect := func(s *task.Tasks, after int64) chan []int64 {
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
		_, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{Artifacts: []task.ArtifactUpdate{artifact("a", fmt.Sprint(i), i > 0)}})
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
			w.Errorf("the stream after %d:\n%s", after, diff)
		}
	}
}

func testDirectMessages(w *world) {
	ctx := w.Context()
	c, p := w.call("other", "user:ann", "bob"), w.post("bob")
	m, err := w.tasks.Message(ctx, c, says("psst"))
	w.must(err)
	claim := func(ack ...string) []task.DirectMessage {
		w.Helper()
		got, err := w.tasks.Claim(ctx, p, task.ClaimRequest{Worker: "w", Max: 0, Lease: time.Minute, Capacity: 1, Ack: ack})
		w.must(err)
		return got.Messages
	}
	for range 2 { // again until acknowledged
		got := claim()
		if len(got) != 1 || got[0].ID != m.ID || got[0].From.Org != "other" || got[0].Message.Parts[0].Text != "psst" {
			w.Errorf("delivered %+v", got)
		}
	}
	if got := claim(m.ID); len(got) != 0 {
		w.Errorf("delivered after its acknowledgement: %+v", got)
	}
	w.want(w.store.PutMessage(ctx, task.DirectMessage{ID: "msg-x", Org: "acme", Agent: "bob", Message: says("x")}, 0), errs.RateLimited)
	if _, err := w.tasks.Message(ctx, c, says("old")); err != nil {
		w.Error(err)
	}
	w.advance(task.KeepMessages + time.Hour)
	if n, err := w.tasks.Sweep(ctx, 0); err != nil || n != 1 {
		w.Errorf("swept %d messages, %v", n, err)
	}
}

func testPresence(w *world) {
	ctx := w.Context()
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	expect := func(want task.Presence) {
		w.Helper()
		w.advance(time.Second) // past what is kept in memory
		if got, err := w.tasks.Presence(ctx, "bob"); err != nil || got != want {
			w.Errorf("presence %s, %v; want %s", got, err, want)
		}
	}
	expect(task.Offline)
	w.send(c, "t1", "x")
	expect(task.Offline)
	a := w.claim(p)
	expect(task.Busy)
	_, err := w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Completed})
	w.must(err)
	expect(task.Available)
	w.advance(time.Minute)
	expect(task.Offline)
}

func testSweepTasks(w *world) {
	ctx := w.Context()
	_, err := w.admins.CreateOrg(ctx, "acme", "")
	w.must(err)
	c := w.call("acme", "user:ann", "bob")
	w.send(c, "over", "x")
	w.send(c, "live", "x")
	_, err = w.tasks.Cancel(ctx, c, "over")
	w.must(err)
	if n, err := w.tasks.Sweep(ctx, time.Hour); err != nil || n != 0 {
		w.Errorf("swept %d fresh tasks, %v", n, err)
	}
	w.advance(2 * time.Hour)
	if n, err := w.tasks.Sweep(ctx, time.Hour); err != nil || n != 1 {
		w.Errorf("swept %d tasks, %v", n, err)
	}
	_, err = w.tasks.Get(ctx, c, "over")
	w.want(err, errs.NotFound)
	_, err = w.tasks.Get(ctx, c, "live")
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
			w.Errorf("the follow-up is %s, its task %s, of %q; want %s, %s", f.Status, f.TaskState, f.Assignee, status, state)
		}
	}
	c := w.call("acme", "user:root", "bob")
	old, err := w.tasks.Send(ctx, c, task.SendRequest{Message: says("do it"), FollowupID: id}, 0)
	w.must(err)
	expect(followup.Open, task.Submitted)
	a := w.claim(p)
	expect(followup.InProgress, task.Working)
	_, err = w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Failed})
	w.must(err)
	expect(followup.Open, task.Failed)
	_, err = w.tasks.Send(ctx, c, task.SendRequest{Message: says("do it again"), FollowupID: id}, 0)
	w.must(err)
	a = w.claim(p)
	if a.Task.UID == old.UID {
		w.Fatal("claimed the failed task")
	}
	_, err = w.tasks.Report(ctx, p, a.Lease.Token, task.Report{State: task.Completed})
	w.must(err)
	expect(followup.Done, task.Completed)
	counted, total, err := w.followups.List(ctx, admin, &followup.Query{Status: followup.Done})
	w.must(err)
	if total != 1 || !slices.ContainsFunc(counted, func(f followup.Followup) bool { return f.ID == id }) {
		w.Errorf("done follow-ups: %d, %+v", total, counted)
	}
}
