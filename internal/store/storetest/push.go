package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// pushed is an event that a receiver got.
type pushed struct {
	delivery.Request
	Config task.PushConfig
	Task   task.Task // as it was encoded
}

// encodePush encodes bodies that contain everything for the receiver.
func encodePush(p *task.PushConfig, t *task.Task, e *task.Event) (map[string]string, []byte) {
	body, err := json.Marshal(struct {
		Config task.PushConfig
		Task   task.Task
	}{*p, *t})
	if err != nil {
		panic(err)
	}
	return map[string]string{"event": strconv.FormatInt(e.Seq, 10)}, body
}

// receiver records the events that are pushed to it.
type receiver struct {
	mu       sync.Mutex
	got      []*pushed
	inFlight map[string]int // by configuration
	doubled  []string
	answer   func(d *pushed) error // the result of a push; nil means success
}

func (r *receiver) Send(_ context.Context, req *delivery.Request) error {
	d := &pushed{Request: *req}
	if err := json.Unmarshal(req.Body, d); err != nil {
		return err
	}
	key := d.Topic + "/" + d.Config.ID
	r.mu.Lock()
	r.got = append(r.got, d)
	if r.inFlight == nil {
		r.inFlight = map[string]int{}
	}
	if r.inFlight[key]++; r.inFlight[key] > 1 {
		r.doubled = append(r.doubled, d.ID)
	}
	answer := r.answer
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.inFlight[key]--
		r.mu.Unlock()
	}()
	runtime.Gosched()
	if answer != nil {
		return answer(d)
	}
	return nil
}

func (r *receiver) answers(fn func(d *pushed) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = fn
}

// seqs returns the events that a configuration got, in order of arrival.
func (r *receiver) seqs(config string) []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []int64{}
	for _, d := range r.got {
		if d.Config.ID == config {
			out = append(out, d.Seq)
		}
	}
	return out
}

func (r *receiver) all() []*pushed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// pushing replaces the world's task service by one that pushes, and runs it.
func (w *world) pushing(r delivery.Sender, retry delivery.Retry) *dispatch.Service {
	o := withPush(w.options())
	o.Deliveries = w.deliveries(r, retry)
	s := dispatch.New(o)
	w.tasks = s
	w.background(s.Run, o.Deliveries.Run)
	return s
}

// deliveries makes what delivers pushes; without a sender it delivers nothing.
func (w *world) deliveries(r delivery.Sender, retry delivery.Retry) *delivery.Service {
	source := dispatch.NewPushSource(w.store.DispatchStores(), encodePush)
	return delivery.New(delivery.Options{
		Store: w.store.Deliveries(), Sources: map[delivery.Kind]delivery.Source{dispatch.PushKind: source},
		Sender: r, Retry: retry, OnError: w.failed,
	})
}

// withPush turns push configurations on.
func withPush(o dispatch.Options) dispatch.Options {
	o.CheckPushURL = func(raw string) error {
		if strings.Contains(raw, "forbidden") {
			return errors.New("must be another one")
		}
		return nil
	}
	return o
}

func hook(id string) task.PushConfig {
	return task.PushConfig{ID: id, URL: "https://receiver.example/" + id, Form: task.PushV1}
}

func (w *world) sendPushed(c dispatch.Call, id string, p task.PushConfig) task.Task {
	w.Helper()
	t, err := w.tasks.Send(w.Context(), c, dispatch.SendRequest{ID: id, Message: says("hello"), Push: &p}, 0)
	w.must(err)
	return t
}

func (w *world) push(uid, id string) dispatch.Push {
	w.Helper()
	list, err := w.store.Pushes().OfTask(w.Context(), "acme", uid)
	w.must(err)
	for _, p := range list {
		if p.ID == id {
			return p
		}
	}
	w.Fatalf("configuration %s of %s not found, want it", id, uid)
	return dispatch.Push{}
}

func (w *world) report(p dispatch.Post, a dispatch.Assignment, r task.Report) {
	w.Helper()
	_, err := w.tasks.Report(w.Context(), p, a.Lease.Token, r)
	w.must(err)
}

func (w *world) wantSeqs(r *receiver, config string, want ...int64) {
	w.Helper()
	if diff := cmp.Diff(want, r.seqs(config)); diff != "" {
		w.Errorf("%s: diff of the events (-want +got):\n%s", config, diff)
	}
}

// testPushOrder: every event except the sender's own messages arrives once and in order, and the
// configuration is done when the task ends.
func testPushOrder(w *world) {
	ctx := w.Context()
	r := &receiver{}
	w.pushing(r, delivery.Retry{})
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	first := hook("first")
	first.Form, first.Token, first.Scheme, first.Credentials = task.PushV03, "tok", "Bearer", "cred"
	t := w.sendPushed(c, "t1", first) // 1 turn, 2 submitted
	a := w.claim(p)                   // 3
	w.until("the claim is pushed", func() bool { return len(r.seqs("first")) == 2 })
	_, err := w.tasks.SetPush(ctx, c, "t1", hook("late"))
	w.must(err)
	w.report(p, a, task.Report{Artifacts: []task.ArtifactUpdate{artifact("a", "one ", false)}}) // 4
	w.report(p, a, task.Report{State: task.InputRequired, Message: ptr(agentSays("which?"))})   // 5
	w.send(c, "t1", "the second")                                                               // 6 turn, 7 working
	a = w.claim(p)                                                                              // 8
	last := []task.ArtifactUpdate{artifact("a", "two", true)}
	w.report(p, a, task.Report{State: task.Completed, Artifacts: last}) // 9, 10
	w.until("all is pushed", func() bool {
		return w.push(t.UID, "first").State == delivery.Done && w.push(t.UID, "late").State == delivery.Done
	})
	w.wantSeqs(r, "first", 2, 3, 4, 5, 7, 8, 9, 10)
	w.wantSeqs(r, "late", 4, 5, 7, 8, 9, 10)
	for _, d := range r.all() {
		if d.Attempt != 1 || d.Header["event"] != strconv.FormatInt(d.Seq, 10) || d.Task.Seq != d.Seq ||
			d.Task.ID != "t1" || d.Config.TaskID != "t1" {
			w.Errorf("delivered %+v, want the first attempt of an event of t1", d)
		}
		if d.Config.ID != "first" {
			continue
		}
		if d.Token != "tok" || d.Scheme != "Bearer" || d.Credentials != "cred" || d.Config.Token != "tok" {
			w.Errorf("delivered with %+v, want token tok and credentials Bearer cred", d)
		}
		switch d.Seq {
		case 4:
			if len(d.Task.Artifacts) != 1 || d.Task.State != task.Working || len(d.Task.History) != 1 {
				w.Errorf("task at event 4 = %+v, want it working with 1 artifact and 1 message", d.Task)
			}
		case 10:
			parts := d.Task.Artifacts[0].Parts
			if len(parts) != 2 || d.Task.State != task.Completed || len(d.Task.History) != 3 {
				w.Errorf("task at event 10 = %+v, want it completed with 2 parts and 3 messages", d.Task)
			}
		}
	}
	// A configuration that is set after the end gets the last event.
	_, err = w.tasks.SetPush(ctx, c, "t1", hook("too-late"))
	w.must(err)
	w.until("the end is pushed", func() bool { return w.push(t.UID, "too-late").State == delivery.Done })
	w.wantSeqs(r, "too-late", 10)
	// A repeated message has the same configuration, which keeps its progress.
	w.sendPushed(c, "t2", task.PushConfig{URL: "https://receiver.example/same"})
	w.sendPushed(c, "t2", task.PushConfig{URL: "https://receiver.example/same"})
	list, err := w.tasks.ListPush(ctx, c, "t2")
	w.must(err)
	if len(list) != 1 {
		w.Fatalf("configurations after a repeated send = %d, want 1", len(list))
	}
	w.until("the second task is pushed", func() bool { return len(r.seqs(list[0].ID)) > 0 })
	w.wantSeqs(r, list[0].ID, 2)
	if due, dead, err := w.store.Deliveries().Count(ctx); err != nil || dead != 0 {
		w.Errorf("count = %d due, %d dead, %v, want 0 dead", due, dead, err)
	}
}

// testPushLost: if a node is lost during a delivery, the next one repeats it under the same id,
// and later results of the first node are ignored.
func testPushLost(w *world) {
	retry := delivery.Retry{Claim: 400 * time.Millisecond}
	stuck := make(chan struct{})
	lost := &receiver{answer: func(*pushed) error { <-stuck; return errors.New("this result must be ignored") }}
	w.pushing(lost, retry)
	c := w.call("acme", "user:ann", "bob")
	t := w.sendPushed(c, "t1", hook("h"))
	w.until("the first node is at it", func() bool { return len(lost.seqs("h")) == 1 })
	next := &receiver{}
	w.pushing(next, retry)
	_, err := w.tasks.Cancel(w.Context(), c, "t1", task.All)
	w.must(err)
	if len(next.all()) != 0 {
		w.Errorf("deliveries of the second node before the claim ended = %d, want 0", len(next.all()))
	}
	w.until("the second node has pushed all", func() bool {
		w.advance(50 * time.Millisecond) // SQLite's claims; PostgreSQL measures its own time
		return w.push(t.UID, "h").State == delivery.Done
	})
	w.wantSeqs(next, "h", 2, 3)
	if a, b := lost.all()[0], next.all()[0]; a.ID != b.ID {
		w.Errorf("ids of one delivery = %s and %s, want the same", a.ID, b.ID)
	}
	close(stuck)
	w.until("the first node is through", func() bool {
		lost.mu.Lock()
		defer lost.mu.Unlock()
		return lost.inFlight[t.UID+"/h"] == 0
	})
	if p := w.push(t.UID, "h"); p.State != delivery.Done || p.Attempts != 0 || p.LastError != "" || p.Cursor != 3 {
		w.Errorf("configuration = %+v, want it done at event 3 without errors", p)
	}
}

// testPushRetry: a failed delivery is repeated later, and no other event overtakes it.
func testPushRetry(w *world) {
	retry := delivery.Retry{First: 40 * time.Millisecond, Most: 100 * time.Millisecond}
	r := &receiver{answer: func(d *pushed) error {
		if d.Seq == 2 && d.Attempt < 5 {
			return fmt.Errorf("not now (%d)", d.Attempt)
		}
		return nil
	}}
	w.pushing(r, retry)
	c := w.call("acme", "user:ann", "bob")
	t := w.sendPushed(c, "t1", hook("h"))
	_, err := w.tasks.Cancel(w.Context(), c, "t1", task.All)
	w.must(err)
	seen := map[int]bool{}
	w.until("all is pushed", func() bool {
		p := w.push(t.UID, "h")
		if p.Attempts > 0 && p.ClaimedUntil.IsZero() && !seen[p.Attempts] {
			seen[p.Attempts] = true
			most := min(retry.First<<(p.Attempts-1), retry.Most)
			if wait := p.DueAt.Sub(p.LastAttemptAt); wait > most || wait < most*3/4-time.Millisecond {
				w.Errorf("wait after attempt %d = %s, want %s to %s", p.Attempts, wait, most*3/4, most)
			}
			if p.LastError != fmt.Sprintf("not now (%d)", p.Attempts) || p.Cursor != 1 {
				w.Errorf("configuration after %d attempts = %+v, want its error and cursor 1", p.Attempts, p)
			}
		}
		w.advance(5 * time.Millisecond)
		return p.State == delivery.Done
	})
	if len(seen) == 0 {
		w.Error("back-offs seen = 0, want at least 1")
	}
	w.wantSeqs(r, "h", 2, 2, 2, 2, 2, 3)
	for i, d := range r.all() {
		if i < 5 && (d.Attempt != i+1 || d.ID != r.all()[0].ID) {
			w.Errorf("delivery %d = %+v, want attempt %d of %s", i, d, i+1, r.all()[0].ID)
		}
	}
}

type refused struct{ error }

func (refused) Permanent() bool { return true }

// testPushDead: an event that cannot be delivered is given up and can be retried later. Other
// configurations of the task are not affected.
func testPushDead(w *world) {
	ctx := w.Context()
	r := &receiver{answer: func(d *pushed) error {
		switch d.Config.ID {
		case "gone":
			return refused{errors.New("it is gone")}
		case "broken":
			return errors.New("it is broken")
		}
		return nil
	}}
	w.pushing(r, delivery.Retry{First: time.Millisecond, Most: time.Millisecond, Attempts: 3})
	c := w.call("acme", "user:ann", "bob")
	t := w.sendPushed(c, "t1", hook("broken"))
	for _, id := range []string{"fine", "gone"} {
		_, err := w.tasks.SetPush(ctx, c, "t1", hook(id))
		w.must(err)
	}
	_, err := w.tasks.Cancel(ctx, c, "t1", task.All) // 3
	w.must(err)
	dead := func(id string) func() bool {
		return func() bool { w.advance(5 * time.Millisecond); return w.push(t.UID, id).State == delivery.Dead }
	}
	w.until("broken is given up", dead("broken"))
	w.until("gone is given up", dead("gone"))
	w.until("fine is done", func() bool { return w.push(t.UID, "fine").State == delivery.Done })
	w.wantSeqs(r, "broken", 2, 2, 2)
	w.wantSeqs(r, "gone", 3)
	w.wantSeqs(r, "fine", 3)
	if p := w.push(t.UID, "broken"); p.Cursor != 1 || p.Attempts != 3 || p.LastError != "it is broken" ||
		!p.DueAt.IsZero() {
		w.Errorf("dead configuration = %+v, want 3 attempts, cursor 1, of the event that is not pushed, and no due time", p)
	}
	admin := w.access("acme", "user:root")
	list, err := w.tasks.OrgPushes(ctx, w.as(admin, identity.ReadTasks),
		dispatch.PushFilter{State: delivery.Dead, Limit: 10})
	w.must(err)
	if len(list) != 2 || list[0].ID != "gone" || list[1].ID != "broken" || list[0].TaskID != "t1" {
		w.Errorf("dead configurations = %+v, want gone and broken of t1", list)
	}
	page, err := w.tasks.OrgPushes(ctx, w.as(admin, identity.ReadTasks),
		dispatch.PushFilter{State: delivery.Dead, Before: t.UID, BeforeID: "gone", Limit: 10})
	w.must(err)
	if len(page) != 1 || page[0].ID != "broken" {
		w.Errorf("next page = %+v, want broken", page)
	}
	if _, n, err := w.store.Deliveries().Count(ctx); err != nil || n != 2 {
		w.Errorf("dead configurations = %d, %v, want 2", n, err)
	}
	_, err = w.tasks.RetryPush(ctx, w.as(admin, identity.ManageAgents), t.UID, "fine")
	if w.want(err, errs.Conflict); errs.As(err).Code != task.CodePushNotDead {
		w.Errorf("code = %s, want %s", errs.As(err).Code, task.CodePushNotDead)
	}
	_, err = w.tasks.RetryPush(ctx, w.as(w.access("other", "user:root"), identity.ManageAgents), t.UID, "broken")
	w.want(err, errs.NotFound)
	r.answers(nil)
	again, err := w.tasks.RetryPush(ctx, w.as(admin, identity.ManageAgents), t.UID, "broken")
	w.must(err)
	if again.State != delivery.Active || again.Attempts != 0 {
		w.Errorf("retried configuration = %+v, want it active with 0 attempts", again)
	}
	w.until("broken is done", func() bool { return w.push(t.UID, "broken").State == delivery.Done })
	w.wantSeqs(r, "broken", 2, 2, 2, 2, 3)
	// A dead configuration that is set again is active, too, and continues where it was.
	_, err = w.tasks.SetPush(ctx, c, "t1", hook("gone"))
	w.must(err)
	w.until("gone is done", func() bool { return w.push(t.UID, "gone").State == delivery.Done })
	w.wantSeqs(r, "gone", 3, 3)
}

// testPushNodes: several nodes share the deliveries, and none is made twice.
func testPushNodes(w *world) {
	r := &receiver{}
	w.pushing(r, delivery.Retry{})
	w.pushing(r, delivery.Retry{})
	w.pushing(r, delivery.Retry{})
	c, p := w.call("acme", "user:ann", "bob"), w.post("bob")
	const n = 10
	uids := make([]string, n)
	race(w, n, func(i int) error {
		id := fmt.Sprint("t", i)
		h := hook("h-" + id)
		t, err := w.tasks.Send(w.Context(), c, dispatch.SendRequest{ID: id, Message: says("x"), Push: &h}, 0)
		uids[i] = t.UID
		return err
	})
	race(w, n, func(int) error {
		got, err := w.tasks.Claim(w.Context(), p, dispatch.ClaimRequest{
			Worker: "w", Max: 1, Lease: time.Minute, Capacity: 1,
		})
		if err != nil || len(got.Assignments) != 1 {
			return fmt.Errorf("claimed %+v, %w", got, err)
		}
		for i := range 8 {
			report := task.Report{Artifacts: []task.ArtifactUpdate{artifact("a", fmt.Sprint(i), i > 0)}}
			if i == 7 {
				report = task.Report{State: task.Completed}
			}
			if _, err := w.tasks.Report(w.Context(), p, got.Assignments[0].Lease.Token, report); err != nil {
				return err
			}
		}
		return nil
	})
	for i, uid := range uids {
		id := fmt.Sprint("h-t", i)
		w.until(id+" is done", func() bool { return w.push(uid, id).State == delivery.Done })
		w.wantSeqs(r, id, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	}
	if len(r.doubled) > 0 {
		w.Errorf("configurations with two deliveries in flight = %v, want none", r.doubled)
	}
}

// testPushSlow: receivers that do not respond, more of them than slots, do not delay others.
func testPushSlow(w *world) {
	release := make(chan struct{})
	r := &receiver{answer: func(d *pushed) error {
		if strings.Contains(d.URL, "slow") {
			<-release
		}
		return nil
	}}
	w.pushing(r, delivery.Retry{Claim: time.Hour})
	c := w.call("acme", "user:ann", "bob")
	for i := range 40 {
		w.sendPushed(c, fmt.Sprint("slow-", i), task.PushConfig{ID: "slow", URL: "https://slow.example/"})
	}
	w.until("the slow one is asked", func() bool { return len(r.seqs("slow")) > 0 })
	t := w.sendPushed(c, "quick", hook("quick"))
	w.until("the quick one has it", func() bool { return w.push(t.UID, "quick").Cursor == 2 })
	if n := len(r.seqs("slow")); n > 4 {
		w.Errorf("concurrent deliveries to one receiver = %d, want at most 4", n)
	}
	close(release)
	w.until("the slow one has all", func() bool { return len(r.seqs("slow")) == 40 })
}
