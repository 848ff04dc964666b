package storetest

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

// orgs creates orgs.
func (w *world) orgs(orgs ...string) {
	w.Helper()
	for _, org := range orgs {
		_, err := w.operator.CreateOrg(w.Context(), org, "")
		w.must(err)
	}
}

// team creates an org with agents.
func (w *world) team(org string, agents ...string) {
	w.Helper()
	w.orgs(org)
	for _, id := range agents {
		w.must(w.agent(org, id, false))
	}
}

func (w *world) agent(org, id string, public bool) error {
	_, err := w.agents.Create(w.Context(), agent.Agent{ID: id, Org: org, Name: org + "'s " + id, Public: public})
	return err
}

func (w *world) publish(org, id string, public bool) error {
	_, err := w.agents.Update(w.Context(), org, id, agent.Edit{Public: &public})
	return err
}

// reaches returns the agent that callers of an org reach by an id, as "org" or "org hides org".
func (w *world) reaches(org, id string) string {
	w.Helper()
	w.advance(2 * time.Second) // past the lifetime of caches
	a, hidden, err := w.agents.Reach(w.Context(), org, id)
	switch {
	case err != nil:
		w.want(err, errs.NotFound)
		return ""
	case hidden != nil:
		return a.Org + " hides " + hidden.Org
	}
	return a.Org
}

// testAgentIDs: an id is unique within an org. The id of an agent that is or was public is also
// unique among all such agents.
func testAgentIDs(w *world) {
	ctx := w.Context()
	w.orgs("acme", "other", "third")
	w.must(w.agent("acme", "bob", false))
	w.must(w.agent("other", "bob", false))
	w.refusedAs(w.agent("acme", "bob", false), errs.Conflict, "agent.exists")
	w.refusedAs(w.agent("acme", "bob", true), errs.Conflict, "agent.exists")
	expect := func(want map[string]string) {
		w.Helper()
		got := map[string]string{}
		for org := range want {
			got[org] = w.reaches(org, "bob")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Error(diff)
		}
	}
	expect(map[string]string{"acme": "acme", "other": "other", "third": "", "": ""})

	w.must(w.publish("acme", "bob", true))
	expect(map[string]string{"acme": "acme", "other": "other hides acme", "third": "acme", "": "acme"})
	w.refusedAs(w.publish("other", "bob", true), errs.Conflict, "agent.public_id_taken")
	w.refusedAs(w.agent("third", "bob", true), errs.Conflict, "agent.public_id_taken")
	w.must(w.publish("acme", "bob", true)) // again

	// A disabled own agent hides the public one.
	_, err := w.agents.Update(ctx, "other", "bob", agent.Edit{Disabled: ptr(true)})
	w.must(err)
	expect(map[string]string{"other": "", "third": "acme"})
	if a, err := w.agents.Own(ctx, "other", "bob"); err != nil || !a.Disabled {
		w.Errorf("own agent = %+v, %v, want it disabled", a, err)
	}
	if ok, err := w.agents.Reachable(ctx, "other", "bob"); err != nil || !ok {
		w.Errorf("own agent: reachable for scopes = %t, %v, want true", ok, err)
	}
	_, err = w.agents.Own(ctx, "third", "bob")
	w.want(err, errs.NotFound)

	// The name of a disabled or private agent stays taken.
	_, err = w.agents.Update(ctx, "acme", "bob", agent.Edit{Disabled: ptr(true)})
	w.must(err)
	expect(map[string]string{"acme": "", "third": "", "": ""})
	w.refusedAs(w.agent("third", "bob", true), errs.Conflict, "agent.public_id_taken")
	_, err = w.agents.Update(ctx, "acme", "bob", agent.Edit{Disabled: ptr(false), Public: ptr(false)})
	w.must(err)
	expect(map[string]string{"acme": "acme", "third": "", "": ""})
	w.refusedAs(w.agent("third", "bob", true), errs.Conflict, "agent.public_id_taken")
	w.must(w.publish("acme", "bob", true))
	w.must(w.publish("acme", "bob", false))
	_, err = w.agents.Release(ctx, "acme", "bob")
	w.must(err)
	w.must(w.agent("third", "bob", true))
	w.refusedAs(w.publish("acme", "bob", true), errs.Conflict, "agent.public_id_taken")
	expect(map[string]string{"acme": "acme hides third", "third": "third", "": "third"})
	_, err = w.agents.Release(ctx, "acme", "nobody")
	w.want(err, errs.NotFound)
}

// testNewAgentIsThere: a cached public agent does not keep a new agent of the caller's org from
// working.
func testNewAgentIsThere(w *world) {
	ctx := w.Context()
	w.orgs("acme", "other")
	w.must(w.agent("acme", "bob", true))
	if a, _, err := w.agents.Reach(ctx, "other", "bob"); err != nil || a.Org != "acme" {
		w.Fatalf("agent = %+v, %v, want that of acme", a, err)
	}
	elsewhere := newAgents(w.store.Agents(), agent.Quotas{}, w.now)
	_, err := elsewhere.Create(ctx, agent.Agent{ID: "bob", Org: "other", Name: "Bob"})
	w.must(err)
	if a, err := w.agents.Own(ctx, "other", "bob"); err != nil || a.Org != "other" {
		w.Errorf("own agent = %+v, %v, want that of other", a, err)
	}
	w.advance(time.Second)
	if a, _, err := w.agents.Reach(ctx, "other", "bob"); err != nil || a.Org != "other" {
		w.Errorf("agent after the cache expired = %+v, %v, want that of other", a, err)
	}
}

// testPublicNameQuota: the quota of public names includes those of disabled and private agents.
func testPublicNameQuota(w *world) {
	w.orgs("acme", "other")
	w.agents = newAgents(w.store.Agents(), agent.Quotas{PublicNames: 3}, w.now)
	for i := range 3 {
		w.must(w.agent("acme", fmt.Sprint("a", i), i < 2))
	}
	w.must(w.publish("acme", "a0", false))
	w.must(w.publish("acme", "a2", true))
	w.refusedAs(w.agent("acme", "a3", true), errs.Conflict, "quota.public_agents")
	w.must(w.agent("acme", "a3", false))
	w.refusedAs(w.publish("acme", "a3", true), errs.Conflict, "quota.public_agents")
	w.must(w.publish("acme", "a0", true)) // it has kept its name
	w.must(w.agent("other", "a3", true))
	_, err := w.agents.Release(w.Context(), "acme", "a0")
	w.must(err)
	w.must(w.agent("acme", "a4", true))
}

// testPublicNameRace: of many orgs that publish an agent with the same id, one succeeds.
func testPublicNameRace(w *world) {
	const orgs = 20
	for i := range orgs {
		w.orgs(fmt.Sprintf("org%d", i))
		if i%2 == 0 {
			w.must(w.agent(fmt.Sprintf("org%d", i), "bob", false))
		}
	}
	var next atomic.Int64
	won := w.race(func() error {
		i := next.Add(1) - 1
		org, err := fmt.Sprintf("org%d", i), error(nil)
		if i%2 == 0 {
			err = w.publish(org, "bob", true)
		} else {
			err = w.agent(org, "bob", true)
		}
		if err != nil && errs.As(err).Code != "agent.public_id_taken" {
			w.Error(err)
		}
		return err
	})
	if won != 1 {
		w.Errorf("agents with the public name = %d, want 1", won)
	}
}

// useRegistry lets the task service find the agents that the test creates.
func (w *world) useRegistry() {
	o := w.options()
	o.Directory, o.CheckPushURL = dispatch.AgentDirectory(w.agents.Directory), func(string) error { return nil }
	w.tasks = dispatch.New(o)
}

func (w *world) postOf(org, agent string) dispatch.Post {
	w.Helper()
	p, err := w.tasks.Serve(w.Context(), w.access(org, "agent:"+agent).Caller(), agent)
	w.must(err)
	return p
}

// testSameIDInTwoOrgs: agents of two orgs with the same id share nothing: no tasks, messages,
// workers or presence.
func testSameIDInTwoOrgs(w *world) {
	ctx := w.Context()
	w.orgs("acme", "other")
	w.useRegistry()
	w.must(w.agent("acme", "bob", false))
	w.must(w.agent("other", "bob", false))

	// A waiting worker does not get tasks for the agent of another org.
	type claimed struct {
		org string
		dispatch.Claim
		error
	}
	waiting, done := make(chan string, 2), make(chan claimed, 2)
	for _, org := range []string{"acme", "other"} {
		p := w.postOf(org, "bob")
		go func() {
			got, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{
				Worker: "w", Max: 1, Lease: time.Minute, Wait: time.Minute, Capacity: 1, Waiting: func() { waiting <- org },
			})
			done <- claimed{org, got, err}
		}()
		<-waiting
	}
	for _, org := range []string{"other", "acme"} {
		key := task.AgentKey{Org: org, ID: "bob"}
		if n := w.tasks.Waiting(key); n != 1 {
			w.Errorf("waiting workers of %v = %d, want 1", key, n)
		}
		w.send(w.call(org, "user:ann", "bob"), "t-1", "from "+org)
		got := <-done
		if got.error != nil || got.org != org || len(got.Assignments) != 1 ||
			got.Assignments[0].Task.History[0].Parts[0].Text != "from "+org {
			w.Fatalf("%s got %+v, %v, want the task from %s", got.org, got.Claim, got.error, org)
		}
		_, err := w.tasks.Report(ctx, w.postOf("acme", "bob"), got.Assignments[0].Lease.Token,
			task.Report{State: task.Completed})
		if org == "other" {
			w.refusedAs(err, errs.Conflict, task.CodeStaleLease)
		} else {
			w.must(err)
		}
	}

	// The senders have the same name and use the same id.
	for org, state := range map[string]task.State{"acme": task.Completed, "other": task.Working} {
		c := w.call(org, "user:ann", "bob")
		if t, err := w.tasks.Get(ctx, c, "t-1", task.All); err != nil || t.Org != org || t.State != state {
			w.Errorf("task of %s = %+v, %v, want state %s", org, t, err, state)
		}
		page, err := w.tasks.Own(ctx, c, dispatch.OwnRequest{})
		if err != nil || page.Total != 1 || page.Tasks[0].Org != org {
			w.Errorf("tasks of %s = %+v, %v, want 1 of its own", org, page, err)
		}
	}
	w.advance(time.Second)
	for org, want := range map[string]dispatch.Presence{"acme": dispatch.Available, "other": dispatch.Busy} {
		if got, err := w.tasks.Presence(ctx, task.AgentKey{Org: org, ID: "bob"}); err != nil || got != want {
			w.Errorf("%s's bob is %s, %v, want %s", org, got, err, want)
		}
	}

	m, err := w.tasks.Message(ctx, w.call("acme", "user:ann", "bob"), says("psst"))
	w.must(err)
	for org, want := range map[string]int{"acme": 1, "other": 0} {
		got, err := w.tasks.Claim(ctx, w.postOf(org, "bob"), dispatch.ClaimRequest{
			Worker: "w", Lease: time.Minute, Capacity: 1, Ack: []string{m.ID + "x"},
		})
		if err != nil || len(got.Messages) != want {
			w.Errorf("messages of %s's bob = %+v, %v, want %d", org, got.Messages, err, want)
		}
	}
}

// testHiddenAgent: an org that creates an agent with the id of a public one still finds the
// tasks that it sent there before, and sends new tasks to its own agent.
func testHiddenAgent(w *world) {
	ctx := w.Context()
	w.orgs("acme", "other")
	w.useRegistry()
	w.must(w.agent("acme", "bob", true))
	before := w.call("other", "user:ann", "bob")
	for _, id := range []string{"asked", "queued", "retried"} {
		w.send(before, id, "hello")
	}
	asked := w.claim(w.postOf("acme", "bob"))
	_, err := w.tasks.Report(ctx, w.postOf("acme", "bob"), asked.Lease.Token, task.Report{State: task.InputRequired})
	w.must(err)

	w.must(w.agent("other", "bob", false))
	c := w.call("other", "user:ann", "bob")
	if c.Target().Org != "other" {
		w.Fatalf("target = %+v, want the agent of other", c.Target())
	}
	if t, err := w.tasks.Get(ctx, c, "asked", task.All); err != nil || t.Org != "acme" || t.State != task.InputRequired {
		w.Errorf("task = %+v, %v, want input-required in acme", t, err)
	}
	t, err := w.tasks.Send(ctx, c, dispatch.SendRequest{ID: "asked", Message: says("yes"), MustExist: true}, 0)
	if err != nil || t.Org != "acme" || !t.Queued {
		w.Errorf("task after the reply = %+v, %v, want it queued in acme", t, err)
	}
	if t := w.send(c, "retried", "hello"); t.Org != "acme" || len(t.History) != 1 {
		w.Errorf("task after a retry = %+v, want the one in acme with one message", t)
	}
	if _, err := w.tasks.SetPush(ctx, c, "queued", task.PushConfig{ID: "p", URL: "https://x.example/"}); err != nil {
		w.Error(err)
	}
	if list, err := w.tasks.ListPush(ctx, c, "queued"); err != nil || len(list) != 1 {
		w.Errorf("push configurations = %+v, %v, want 1", list, err)
	}
	if t, err := w.tasks.Cancel(ctx, c, "queued", task.All); err != nil || t.Org != "acme" || t.State != task.Canceled {
		w.Errorf("task = %+v, %v, want canceled in acme", t, err)
	}
	if t := w.send(c, "new", "hello"); t.Org != "other" {
		w.Errorf("new task is in %s, want other", t.Org)
	}
	page, err := w.tasks.Own(ctx, c, dispatch.OwnRequest{})
	if err != nil || page.Total != 4 || len(page.Tasks) != 4 {
		w.Errorf("tasks = %d of %d, %v, want 4", len(page.Tasks), page.Total, err)
	}
	_, err = w.tasks.Get(ctx, w.call("other", "user:eve", "bob"), "asked", task.All)
	w.want(err, errs.NotFound)

	ann := w.access("other", "user:ann").Caller()
	public, own := task.AgentKey{Org: "acme", ID: "bob"}, task.AgentKey{Org: "other", ID: "bob"}
	w.must(w.tasks.Still(ctx, ann, public))
	w.must(w.tasks.Still(ctx, ann, own))
	w.must(w.publish("acme", "bob", false))
	w.want(w.tasks.Still(ctx, ann, public), errs.NotFound)
	w.must(w.tasks.Still(ctx, ann, own))
	_, err = w.tasks.Get(ctx, w.call("other", "user:ann", "bob"), "asked", task.All)
	w.want(err, errs.NotFound)
}
