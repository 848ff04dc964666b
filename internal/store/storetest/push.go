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

// pushed is an event as a receiver gets it.
type pushed struct {
	delivery.Request
	Config task.PushConfig
	Task   task.Task // as it was encoded
}

// encodePush makes bodies that a receiver can read all of.
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

// receiver is whom events are pushed to, and notes what it got.
type receiver struct {
	mu       sync.Mutex
	got      []*pushed
	inFlight map[string]int // by configuration
	doubled  []string
	answer   func(d *pushed) error // nil: success
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

// seqs lists the events that a configuration got, in the order it got them.
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

// pushing makes the world's task service one that pushes, and runs it.
func (w *world) pushing(r delivery.Sender, retry delivery.Retry) *dispatch.Service {
	s := dispatch.New(withPush(w.options(), r, retry))
	w.tasks = s
	w.background(s)
	return s
}

func withPush(o dispatch.Options, r delivery.Sender, retry delivery.Retry) dispatch.Options {
	o.Push = dispatch.PushOptions{Encode: encodePush, Sender: r, Retry: retry}
	o.Push.URL = func(raw string) error {
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
	w.Fatalf("no configuration %s of %s", id, uid)
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
		w.Errorf("%s got other events: %s", config, diff)
	}
}

// testPushOrder: every event but what the sender said itself arrives once and in
// order, and the configuration is done with the task.
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
	w.report(p, a, task.Report{Artifacts: []task.ArtifactUpdate{artifact("a", "one ", false)}})                      // 4
	w.report(p, a, task.Report{State: task.InputRequired, Message: ptr(agentSays("which?"))})                        // 5
	w.send(c, "t1", "the second")                                                                                    // 6 turn, 7 working
	a = w.claim(p)                                                                                                   // 8
	w.report(p, a, task.Report{State: task.Completed, Artifacts: []task.ArtifactUpdate{artifact("a", "two", true)}}) // 9, 10
	w.until("all is pushed", func() bool {
		return w.push(t.UID, "first").State == delivery.Done && w.push(t.UID, "late").State == delivery.Done
	})
	w.wantSeqs(r, "first", 2, 3, 4, 5, 7, 8, 9, 10)
	w.wantSeqs(r, "late", 4, 5, 7, 8, 9, 10)
	for _, d := range r.all() {
		if d.Attempt != 1 || d.Header["event"] != strconv.FormatInt(d.Seq, 10) || d.Task.Seq != d.Seq || d.Task.ID != "t1" || d.Config.TaskID != "t1" {
			w.Errorf("delivered %+v", d)
		}
		if d.Config.ID != "first" {
			continue
		}
		if d.Token != "tok" || d.Scheme != "Bearer" || d.Credentials != "cred" || d.Config.Token != "tok" {
			w.Errorf("delivered with %+v", d)
		}
		switch d.Seq {
		case 4:
			if len(d.Task.Artifacts) != 1 || d.Task.State != task.Working || len(d.Task.History) != 1 {
				w.Errorf("the task as of event 4: %+v", d.Task)
			}
		case 10:
			if parts := d.Task.Artifacts[0].Parts; len(parts) != 2 || d.Task.State != task.Completed || len(d.Task.History) != 3 {
				w.Errorf("the task as of event 10: %+v", d.Task)
			}
		}
	}
	// Whoever asks when all is over learns how it ended.
	_, err = w.tasks.SetPush(ctx, c, "t1", hook("too-late"))
	w.must(err)
	w.until("the end is pushed", func() bool { return w.push(t.UID, "too-late").State == delivery.Done })
	w.wantSeqs(r, "too-late", 10)
	// A repeated message means the same configuration, which is where it was.
	w.sendPushed(c, "t2", task.PushConfig{URL: "https://receiver.example/same"})
	w.sendPushed(c, "t2", task.PushConfig{URL: "https://receiver.example/same"})
	list, err := w.tasks.ListPush(ctx, c, "t2")
	w.must(err)
	if len(list) != 1 {
		w.Fatalf("a repeated send made %d configurations", len(list))
	}
	w.until("the second task is pushed", func() bool { return len(r.seqs(list[0].ID)) > 0 })
	w.wantSeqs(r, list[0].ID, 2)
	if due, dead, err := w.store.Deliveries().Count(ctx); err != nil || dead != 0 {
		w.Errorf("counted %d due, %d dead, %v", due, dead, err)
	}
}

// testPushLost: a node that gets lost in the middle of a delivery loses nothing;
// the next one repeats it under the same id, and what the first one finds out
// afterwards counts no more.
func testPushLost(w *world) {
	retry := delivery.Retry{Claim: 400 * time.Millisecond}
	stuck := make(chan struct{})
	lost := &receiver{answer: func(*pushed) error { <-stuck; return errors.New("nobody should care") }}
	w.pushing(lost, retry)
	c := w.call("acme", "user:ann", "bob")
	t := w.sendPushed(c, "t1", hook("h"))
	w.until("the first node is at it", func() bool { return len(lost.seqs("h")) == 1 })
	next := &receiver{}
	w.pushing(next, retry)
	_, err := w.tasks.Cancel(w.Context(), c, "t1", task.All)
	w.must(err)
	if len(next.all()) != 0 {
		w.Error("the second node did not wait for the claim's end")
	}
	w.until("the second node has pushed all", func() bool {
		w.advance(50 * time.Millisecond) // SQLite's claims; PostgreSQL measures its own time
		return w.push(t.UID, "h").State == delivery.Done
	})
	w.wantSeqs(next, "h", 2, 3)
	if a, b := lost.all()[0], next.all()[0]; a.ID != b.ID {
		w.Errorf("one delivery has the ids %s and %s", a.ID, b.ID)
	}
	close(stuck)
	w.until("the first node is through", func() bool {
		lost.mu.Lock()
		defer lost.mu.Unlock()
		return lost.inFlight[t.UID+"/h"] == 0
	})
	if p := w.push(t.UID, "h"); p.State != delivery.Done || p.Attempts != 0 || p.LastError != "" || p.Cursor != 3 {
		w.Errorf("the lost node left %+v", p)
	}
}

// testPushRetry: a failed delivery is repeated later, and nothing overtakes it.
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
				w.Errorf("attempt %d is followed after %s", p.Attempts, wait)
			}
			if p.LastError != fmt.Sprintf("not now (%d)", p.Attempts) || p.Cursor != 0 {
				w.Errorf("after %d attempts: %+v", p.Attempts, p)
			}
		}
		w.advance(5 * time.Millisecond)
		return p.State == delivery.Done
	})
	if len(seen) == 0 {
		w.Error("no back-off was seen")
	}
	w.wantSeqs(r, "h", 2, 2, 2, 2, 2, 3)
	for i, d := range r.all() {
		if i < 5 && (d.Attempt != i+1 || d.ID != r.all()[0].ID) {
			w.Errorf("attempt %d is %+v", i, d)
		}
	}
}

type refused struct{ error }

func (refused) Permanent() bool { return true }

// testPushDead: what cannot be delivered is given up and can be taken up again;
// the other configurations of the task do not notice.
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
	if p := w.push(t.UID, "broken"); p.Cursor != 0 || p.Attempts != 3 || p.LastError != "it is broken" || !p.DueAt.IsZero() {
		w.Errorf("given up as %+v", p)
	}
	admin := w.access("acme", "user:root")
	list, err := w.tasks.OrgPushes(ctx, w.as(admin, identity.ReadTasks), dispatch.PushFilter{State: delivery.Dead, Limit: 10})
	w.must(err)
	if len(list) != 2 || list[0].ID != "gone" || list[1].ID != "broken" || list[0].TaskID != "t1" {
		w.Errorf("the dead are %+v", list)
	}
	page, err := w.tasks.OrgPushes(ctx, w.as(admin, identity.ReadTasks), dispatch.PushFilter{State: delivery.Dead, Before: t.UID, BeforeID: "gone", Limit: 10})
	w.must(err)
	if len(page) != 1 || page[0].ID != "broken" {
		w.Errorf("the next page is %+v", page)
	}
	if _, n, err := w.store.Deliveries().Count(ctx); err != nil || n != 2 {
		w.Errorf("counted %d dead, %v", n, err)
	}
	_, err = w.tasks.RetryPush(ctx, w.as(admin, identity.ReadTasks), t.UID, "fine")
	if w.want(err, errs.Conflict); errs.As(err).Code != task.CodePushNotDead {
		w.Errorf("code %s", errs.As(err).Code)
	}
	_, err = w.tasks.RetryPush(ctx, w.as(w.access("other", "user:root"), identity.ReadTasks), t.UID, "broken")
	w.want(err, errs.NotFound)
	r.answers(nil)
	again, err := w.tasks.RetryPush(ctx, w.as(admin, identity.ReadTasks), t.UID, "broken")
	w.must(err)
	if again.State != delivery.Active || again.Attempts != 0 {
		w.Errorf("taken up as %+v", again)
	}
	w.until("broken is done", func() bool { return w.push(t.UID, "broken").State == delivery.Done })
	w.wantSeqs(r, "broken", 2, 2, 2, 2, 3)
	// A dead one that is set again lives, too, and goes on where it was.
	_, err = w.tasks.SetPush(ctx, c, "t1", hook("gone"))
	w.must(err)
	w.until("gone is done", func() bool { return w.push(t.UID, "gone").State == delivery.Done })
	w.wantSeqs(r, "gone", 3, 3)
}

// testPushNodes: several nodes share the work, and none of it is done twice.
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
		got, err := w.tasks.Claim(w.Context(), p, dispatch.ClaimRequest{Worker: "w", Max: 1, Lease: time.Minute, Capacity: 1})
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
		w.Errorf("in flight twice: %v", r.doubled)
	}
}

// testPushSlow: receivers that do not answer, more than there are slots, delay
// nobody else.
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
		w.Errorf("%d deliveries to one receiver at once", n)
	}
	close(release)
	w.until("the slow one has all", func() bool { return len(r.seqs("slow")) == 40 })
}
