package storetest

import (
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// refusedAs fails the test unless err has the kind and the code.
func (w *world) refusedAs(err error, kind errs.Kind, code string) {
	w.Helper()
	if w.want(err, kind); errs.As(err).Code != code {
		w.Fatalf("code %s (%v), want %s", errs.As(err).Code, err, code)
	}
}

// testAdminQuotas: an org has limits on agents, keys and invitations, and those of other orgs do
// not count.
func testAdminQuotas(w *world) {
	ctx := w.Context()
	m, ann := w.manage()
	have, err := w.agents.List(ctx, "acme")
	w.must(err)
	w.agents = newAgents(w.store.Agents(), agent.Quotas{Agents: len(have) + 2}, w.now)
	made := w.race(func() error {
		_, err := w.agents.Create(ctx, agent.Agent{ID: w.newID("a"), Org: "acme", Name: "A"})
		return err
	})
	if made != 2 {
		w.Errorf("%d agents were made, want 2", made)
	}
	_, err = w.agents.Create(ctx, agent.Agent{ID: "late", Org: "acme", Name: "A"})
	w.refusedAs(err, errs.Conflict, "quota.agents")
	_, err = w.agents.Create(ctx, agent.Agent{ID: "late", Org: "other", Name: "A"})
	w.must(err)
	w.agents = newAgents(w.store.Agents(), agent.Quotas{}, w.now)
	_, err = w.agents.Create(ctx, agent.Agent{ID: "free", Org: "acme", Name: "A"})
	w.must(err)

	key := func(ref string, expires time.Duration) (identity.Key, error) {
		r := identity.KeyRequest{Principal: principal(ref), Scopes: []string{"svc:tasks:read"}}
		if expires > 0 {
			r.ExpiresAt = w.now().Add(expires)
		}
		k, _, err := m.CreateKey(ctx, ann, r)
		return k, err
	}
	keys, err := m.Keys(ctx, ann, identity.KeyFilter{State: identity.KeyLive})
	w.must(err)
	m = w.orgAdmin(identity.Quotas{OrgKeys: len(keys) + 3, PrincipalKeys: 2, Invitations: 2})
	first, err := key("service:crm", 0)
	w.must(err)
	_, err = key("service:crm", time.Hour)
	w.must(err)
	_, err = key("service:crm", 0)
	w.refusedAs(err, errs.Conflict, "quota.keys")
	_, err = key("agent:free", 0)
	w.must(err)
	_, err = key("agent:late", 0)
	w.want(err, errs.Invalid) // an agent of the other org
	_, err = key("user:ann", 0)
	w.refusedAs(err, errs.Conflict, "quota.keys") // the quota of the org
	// Each key may be replaced, but not repeatedly while all of them are valid.
	next, _, err := m.RotateKey(ctx, ann, first.ID, time.Hour)
	w.must(err)
	next, _, err = m.RotateKey(ctx, ann, next.ID, time.Hour)
	w.must(err)
	_, _, err = m.RotateKey(ctx, ann, next.ID, time.Hour)
	w.refusedAs(err, errs.Conflict, "quota.keys")
	// Expired and revoked keys do not count.
	w.advance(2 * time.Hour)
	_, err = key("service:crm", 0)
	w.must(err)
	_, err = key("service:crm", 0)
	w.refusedAs(err, errs.Conflict, "quota.keys")
	_, err = m.RevokeKey(ctx, ann, next.ID)
	w.must(err)
	_, err = key("service:crm", 0)
	w.must(err)

	invite := func(user string) (identity.Invitation, error) {
		i, _, err := m.Invite(ctx, ann, identity.InvitationRequest{User: user, Expires: time.Hour})
		return i, err
	}
	i, err := invite("u1")
	w.must(err)
	_, err = invite("u2")
	w.must(err)
	_, err = invite("u3")
	w.refusedAs(err, errs.Conflict, "quota.invitations")
	_, err = m.RevokeInvitation(ctx, ann, i.ID)
	w.must(err)
	_, err = invite("u3")
	w.must(err)
	_, err = invite("u4")
	w.refusedAs(err, errs.Conflict, "quota.invitations")
	w.advance(2 * time.Hour)
	_, err = invite("u4")
	w.must(err)
}

// testTaskQuotas: live tasks count for their sender, stored tasks for the agent's org. Retries
// and further turns are not refused.
func testTaskQuotas(w *world) {
	ctx := w.Context()
	limited := func(q task.Quotas) {
		o := w.options()
		o.Quotas = q
		w.tasks = withPushOff(o)
	}
	limited(task.Quotas{LiveTasks: 5})
	c, p := w.call("other", "user:ann", "bob"), w.post("bob")
	for _, id := range []string{"queued", "leased", "asking", "locked", "over"} {
		w.send(c, id, id)
	}
	// Tasks in each state that is not terminal, and one that has ended.
	got, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{Worker: "w", Max: 5, Lease: time.Minute, Capacity: 5})
	w.must(err)
	for _, a := range got.Assignments {
		switch a.Task.ID {
		case "locked":
			w.report(p, a, task.Report{State: task.AuthRequired})
		case "queued":
			w.must(w.tasks.Return(ctx, p, a.Lease.Token))
		case "asking":
			w.report(p, a, task.Report{State: task.InputRequired})
		case "over":
			w.report(p, a, task.Report{State: task.Completed})
		}
	}
	count := func(org, ref string, most int64) int64 {
		who, err := identity.ParseRef(org, ref)
		w.must(err)
		n, err := w.store.Tasks().CountLive(ctx, who, most)
		w.must(err)
		return n
	}
	for most, want := range map[int64]int64{10: 4, 4: 4, 3: 3, 2: 2, 1: 1} {
		if n := count("other", "user:ann", most); n != want {
			w.Errorf("counted %d live tasks up to %d, want %d", n, most, want)
		}
	}
	if n := count("acme", "user:ann", 10) + count("other", "user:bob", 10); n != 0 {
		w.Errorf("live tasks of others = %d, want 0", n)
	}
	if n, err := w.store.Tasks().Count(ctx, "acme", 10); err != nil || n != 5 {
		w.Errorf("stored tasks of the agent's org = %d, %v, want 5", n, err)
	}
	if n, err := w.store.Tasks().Count(ctx, "other", 10); err != nil || n != 0 {
		w.Errorf("stored tasks of the sender's org = %d, %v, want 0", n, err)
	}

	limited(task.Quotas{LiveTasks: 4})
	c = w.call("other", "user:ann", "bob")
	send := func(c dispatch.Call, id, text string) error {
		_, err := w.tasks.Send(ctx, c, dispatch.SendRequest{ID: id, Message: says(text)}, 0)
		return err
	}
	live := []string{"queued", "leased", "asking"}
	refused := func(kind errs.Kind, code string) {
		w.Helper()
		// The first send of a sender starts the count. Until it is done, sends are accepted.
		w.until("a new task is refused", func() bool {
			id := w.newID("t")
			err := send(c, id, "x")
			if err == nil {
				live = append(live, id)
			}
			return err != nil
		})
		err := send(c, w.newID("t"), "x")
		w.refusedAs(err, kind, code)
		w.refusedAs(send(c, "", "x"), kind, code)
	}
	refused(errs.RateLimited, task.CodeLiveTasks)
	w.must(send(c, "queued", "queued"))                      // a retry
	w.must(send(c, "asking", "an answer"))                   // a turn
	w.must(send(w.call("acme", "user:ann", "bob"), "", "x")) // another sender
	for _, id := range live {
		_, err := w.tasks.Cancel(ctx, c, id, task.All)
		w.must(err)
	}
	w.until("there is room again", func() bool { w.advance(time.Second); return send(c, w.newID("t"), "x") == nil })

	limited(task.Quotas{StoredTasks: 5})
	c = w.call("other", "user:ann", "bob")
	refused(errs.Conflict, task.CodeStoredTasks)
	w.must(send(c, "queued", "queued"))
}

// withPushOff returns a service that accepts configurations but does not push.
func withPushOff(o dispatch.Options) *dispatch.Service {
	return dispatch.New(withPush(o))
}

// testPushQuotas: active push configurations count for their sender and its org.
func testPushQuotas(w *world) {
	ctx := w.Context()
	o := w.options()
	w.tasks = withPushOff(o)
	c := w.call("other", "user:ann", "bob")
	for i := range 3 {
		w.sendPushed(c, fmt.Sprint("t", i), hook("h"))
	}
	count := func(p identity.Principal) int64 {
		n, err := w.store.Pushes().CountActive(ctx, p, 10)
		w.must(err)
		return n
	}
	ann, err := identity.ParseRef("other", "user:ann")
	w.must(err)
	bea := ann
	bea.ID = "bea"
	a, b := count(ann), count(bea)
	all, none := count(identity.Principal{Org: "other"}), count(identity.Principal{Org: "acme"})
	if a != 3 || b != 0 || all != 3 || none != 0 {
		w.Errorf("counts = %d of ann, %d of bea, %d of their org, %d of another org, want 3, 0, 3, 0", a, b, all, none)
	}
	o.Quotas = task.Quotas{SenderPushes: 3, OrgPushes: 100}
	w.tasks = withPushOff(o)
	set := func(c dispatch.Call, id, config string) error {
		_, err := w.tasks.SetPush(ctx, c, id, hook(config))
		return err
	}
	w.until("a new one is refused", func() bool { return set(c, "t0", w.newID("h")) != nil })
	w.refusedAs(set(c, "t0", "more"), errs.Conflict, task.CodePushConfigs)
	w.must(set(c, "t0", "h")) // it exists already
	changed := hook("h")
	changed.Token = "another"
	_, err = w.tasks.SetPush(ctx, c, "t0", changed)
	w.must(err)
	_, err = w.tasks.Send(ctx, c, dispatch.SendRequest{ID: "t9", Message: says("x"), Push: ptr(hook("h"))}, 0)
	w.refusedAs(err, errs.Conflict, task.CodePushConfigs)
	w.must(func() error {
		_, err := w.tasks.Send(ctx, c, dispatch.SendRequest{ID: "t9", Message: says("x")}, 0)
		return err
	}())
	other := w.call("other", "user:bea", "bob")
	w.sendPushed(other, "t", hook("h"))
	o.Quotas = task.Quotas{SenderPushes: 100, OrgPushes: 4}
	w.tasks = withPushOff(o)
	w.until("the org's are refused", func() bool { return set(other, "t", w.newID("h")) != nil })
	w.refusedAs(set(other, "t", "more"), errs.Conflict, task.CodePushConfigs)
	w.sendPushed(w.call("acme", "user:ann", "bob"), "t", hook("h"))
}

// testWorkerQuota: an agent has a limited number of workers; silent ones make room.
func testWorkerQuota(w *world) {
	ctx := w.Context()
	w.team("acme", "bob", "local")
	see := func(agent, name string, limit int) error {
		return w.store.Workers().See(ctx, dispatch.Worker{
			Org: "acme", Agent: agent, Name: name, Capacity: 1, SeenAt: w.now(),
		}, limit)
	}
	w.must(see("bob", "w1", 2))
	w.must(see("bob", "w2", 2))
	w.refusedAs(see("bob", "w3", 2), errs.RateLimited, task.CodeWorkers)
	w.must(see("bob", "w1", 2))
	w.must(see("local", "w3", 2))
	w.advance(dispatch.ForgetWorkers - time.Minute)
	w.must(see("bob", "w1", 0))
	w.advance(2 * time.Minute)
	w.must(see("bob", "w3", 2)) // w2 is forgotten
	w.refusedAs(see("bob", "w2", 2), errs.RateLimited, task.CodeWorkers)
	o := w.options()
	o.Quotas.Workers = 2
	w.tasks = dispatch.New(o)
	claim := func(name string) error {
		_, err := w.tasks.Claim(ctx, w.post("bob"), dispatch.ClaimRequest{
			Worker: name, Max: 1, Lease: time.Minute, Capacity: 1,
		})
		return err
	}
	w.must(claim("w3"))
	for range 2 {
		w.refusedAs(claim("w4"), errs.RateLimited, task.CodeWorkers)
	}
}
