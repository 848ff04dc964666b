package storetest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/task"
)

// orgLog reads the log of an org step by step.
type orgLog struct {
	*world
	org   string
	after int64
}

// orgLog returns the log of an org from now on.
func (w *world) orgLog(org string) *orgLog {
	l := &orgLog{world: w, org: org}
	l.after = l.page(event.Viewer{Admin: true}).Last
	return l
}

func (l *orgLog) page(v event.Viewer) event.Page {
	l.Helper()
	page, err := l.store.Events().Page(l.Context(), l.org, event.Query{
		Filter: event.Filter{Viewer: v}, After: l.after, Limit: 100,
	})
	l.must(err)
	return page
}

// wrote compares the events since the last call, each as its type, subject, actor and scope.
func (l *orgLog) wrote(want ...string) {
	l.Helper()
	page := l.page(event.Viewer{Admin: true})
	var got []string
	for _, e := range page.Events {
		if strings.HasPrefix(string(e.Type), "task.") {
			continue // written later, and not the subject of these tests
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", e.Type, e.Subject, e.Actor, e.Scope)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		l.Errorf("diff of the events (-want +got):\n%s", diff)
	}
	l.after = page.Last
}

func testMemberEvents(w *world) {
	m, ann := w.manage()
	ctx, yes, no := w.Context(), true, false
	log, other := w.orgLog("acme"), w.orgLog("other")
	asOperator := identity.WithOrigin(ctx, identity.Origin{Actor: identity.OperatorActor})

	bob := principal("user:bob")
	_, err := m.CreateMember(ctx, ann, identity.User, "bob", "Bob", true)
	w.must(err)
	log.wrote("member.created member:user:bob user:ann admins")
	_, err = m.CreateMember(ctx, ann, identity.User, "bob", "Bob", true)
	w.want(err, errs.Conflict)
	log.wrote()
	_, err = w.operator.CreateMember(asOperator, principal("service:ci"), "", false)
	w.must(err)
	log.wrote("member.created member:service:ci operator admins")

	edit := func(p identity.Principal, e identity.MemberEdit) {
		w.Helper()
		_, err := m.UpdateMember(ctx, ann, p, e)
		w.must(err)
	}
	name := "Robert"
	edit(bob, identity.MemberEdit{Name: &name})
	log.wrote("member.changed member:user:bob user:ann admins")
	edit(bob, identity.MemberEdit{Name: &name})
	log.wrote() // nothing changed
	var keys []string
	for _, scope := range []string{"svc:admin:admin", "svc:tasks:read"} {
		k, _, err := w.operator.CreateKey(asOperator, identity.KeyRequest{Principal: bob, Scopes: []string{scope}})
		w.must(err)
		keys = append(keys, "key:"+k.ID)
	}
	log.wrote("key.created "+keys[0]+" operator admins", "key.created "+keys[1]+" operator admins")
	edit(bob, identity.MemberEdit{Admin: &no, Disabled: &yes})
	log.wrote("member.changed member:user:bob user:ann admins", "member.disabled member:user:bob user:ann admins",
		"key.revoked "+keys[0]+" user:ann admins")
	edit(bob, identity.MemberEdit{Disabled: &no})
	log.wrote("member.enabled member:user:bob user:ann admins")
	_, err = w.operator.SetAdmin(asOperator, bob, true)
	w.must(err)
	log.wrote("member.changed member:user:bob operator admins")

	// A password, a link and a session are no part of the record.
	w.setPassword(bob, goodPassword)
	_, err = w.newLink(bob)
	w.must(err)
	w.must(w.people().LogoutEverywhere(ctx, bob))
	log.wrote()

	// A repeated request, also in a race, writes no second event.
	w.race(func() error {
		ctx, _ := w.once("create", "gil", "secret")
		_, err := m.CreateMember(ctx, ann, identity.User, "gil", "", false)
		return err
	})
	log.wrote("member.created member:user:gil user:ann admins")

	// The record of an agent is the agent, not its member.
	edit(principal("agent:scout"), identity.MemberEdit{Name: &name, Disabled: &yes})
	log.wrote("agent.changed agent:scout user:ann", "agent.disabled agent:scout user:ann")
	edit(principal("agent:scout"), identity.MemberEdit{Disabled: &no})
	log.wrote("agent.enabled agent:scout user:ann")
	other.wrote()
}

func testArrivalEvents(w *world) {
	m, ann := w.manage()
	ctx, people, log := w.Context(), w.people(), w.orgLog("acme")
	yes, no := true, false

	cy := arrival("s-cy", "cy")
	_, err := people.Arrive(ctx, cy, account.Proof{})
	w.want(err, errs.Forbidden)
	log.wrote()
	cy.Create, cy.Admin = true, &yes
	_, err = people.Arrive(ctx, cy, account.Proof{})
	w.must(err)
	log.wrote("member.created member:user:cy user:cy admins")
	_, err = people.Arrive(ctx, cy, account.Proof{})
	w.must(err)
	log.wrote() // signed in
	k, _, err := w.operator.CreateKey(ctx, identity.KeyRequest{
		Principal: principal("user:cy"), Scopes: []string{"svc:admin:admin"},
	})
	w.must(err)
	log.wrote("key.created key:" + k.ID + " system admins")
	cy.Admin = &no
	_, err = people.Arrive(ctx, cy, account.Proof{})
	w.must(err)
	log.wrote("member.changed member:user:cy user:cy admins", "key.revoked key:"+k.ID+" user:cy admins")

	// The last admin keeps the role, so nothing changes.
	who := arrival("s-ann", "ann")
	_, err = people.Arrive(ctx, who, account.Proof{User: "ann"})
	w.must(err)
	who.Admin = &no
	_, err = people.Arrive(ctx, who, account.Proof{})
	w.must(err)
	log.wrote()

	// Invitations: accepted with a password, with a provider, and with a linked account.
	invite := func(user string) (id, token string) {
		w.Helper()
		i, token, err := m.Invite(ctx, ann, identity.InvitationRequest{User: user})
		w.must(err)
		log.wrote("invitation.created invitation:" + i.ID + " user:ann admins")
		return i.ID, token
	}
	accepted := func(id, user string) {
		w.Helper()
		log.wrote("invitation.accepted invitation:"+id+" user:"+user+" admins",
			"member.created member:user:"+user+" user:"+user+" admins")
	}
	id, token := invite("dee")
	_, err = m.Accept(ctx, token, "hash")
	w.must(err)
	accepted(id, "dee")
	_, err = m.Accept(ctx, token, "hash")
	w.want(err, errs.NotFound)
	log.wrote()
	id, token = invite("eli")
	_, err = people.Arrive(ctx, arrival("s-eli", ""), account.Proof{Invitation: identity.HashToken(token)})
	w.must(err)
	accepted(id, "eli")
	w.userOf("beta", "lovelace", goodPassword)
	beta := w.orgLog("beta")
	id, token = invite("ada")
	_, _, err = people.Join(ctx, w.session("beta", "lovelace", goodPassword)[0], token)
	w.must(err)
	accepted(id, "ada")
	beta.wrote() // the other org is told nothing of it
	id, _ = invite("fay")
	for range 2 {
		_, err = m.RevokeInvitation(ctx, ann, id)
		w.must(err)
	}
	log.wrote("invitation.revoked invitation:" + id + " user:ann admins")
}

func testKeyEvents(w *world) {
	m, ann := w.manage()
	ctx, log := w.Context(), w.orgLog("acme")
	k, _, err := m.CreateKey(ctx, ann, identity.KeyRequest{
		Principal: principal("service:crm"), Scopes: []string{"svc:tasks:read"},
	})
	w.must(err)
	log.wrote("key.created key:" + k.ID + " user:ann admins")
	next, _, err := m.RotateKey(ctx, ann, k.ID, time.Hour)
	w.must(err)
	log.wrote("key.created key:"+next.ID+" user:ann admins", "key.rotated key:"+k.ID+" user:ann admins")
	_, _, err = m.RotateKey(ctx, ann, k.ID, time.Hour)
	w.want(err, errs.Conflict)
	log.wrote()
	for range 2 {
		_, err = m.RevokeKey(ctx, ann, next.ID)
		w.must(err)
	}
	log.wrote("key.revoked key:" + next.ID + " user:ann admins")
	w.must(w.store.Identity().TouchKeys(ctx, map[string]time.Time{k.ID: w.now()}))
	log.wrote()

	crm := w.access("acme", "service:crm").Caller()
	own, _, err := m.CreateOwnKey(ctx, crm, identity.KeyRequest{Scopes: []string{"svc:tasks:read"}})
	w.must(err)
	log.wrote("key.created key:" + own.ID + " service:crm admins")
	next, _, err = m.RotateOwnKey(ctx, crm, own.ID, 0)
	w.must(err)
	log.wrote("key.created key:"+next.ID+" service:crm admins", "key.rotated key:"+own.ID+" service:crm admins")
	_, err = m.RevokeOwnKey(ctx, crm, next.ID)
	w.must(err)
	log.wrote("key.revoked key:" + next.ID + " service:crm admins")
}

func testBootstrapEvents(w *world) {
	first, err := w.operator.Bootstrap(w.Context())
	w.must(err)
	keys, err := w.operator.Keys(w.Context(), first.Org.ID)
	w.must(err)
	log := &orgLog{world: w, org: first.Org.ID}
	log.wrote("member.created member:user:admin system admins", "key.created key:"+keys[0].ID+" system admins")
	again, err := w.operator.Bootstrap(w.Context())
	if w.must(err); again != nil {
		w.Error("bootstrap happened twice, want once")
	}
	log.wrote()
}

func testClientEvents(w *world) {
	_, ann := w.manage()
	ctx, s, log := w.Context(), w.oauth(), w.orgLog("acme")
	c, _, err := s.CreateClient(ctx, ann, oauth.ClientRequest{
		Name: "Reports", RedirectURIs: []string{"https://reports.example/done"}, Method: oauth.SecretBasic,
	})
	w.must(err)
	about := " client:" + c.ID + " user:ann admins"
	log.wrote("client.created" + about)
	for _, name := range []string{"Monthly", "Monthly"} { // the second changes nothing
		_, err = s.UpdateClient(ctx, ann, c.ID, oauth.ClientEdit{Name: &name})
		w.must(err)
	}
	log.wrote("client.changed" + about)
	_, _, err = s.RotateClient(ctx, ann, c.ID, time.Hour)
	w.must(err)
	log.wrote("client.changed" + about)
	_, err = s.DeleteClient(ctx, ann, c.ID)
	w.must(err)
	log.wrote("client.deleted" + about)
	_, err = s.DeleteClient(ctx, ann, c.ID)
	w.want(err, errs.NotFound)
	// Clients without an org are in no log.
	_, _, err = s.Register(ctx, oauth.Registration{Name: "App", RedirectURIs: []string{"https://app.example/done"}})
	w.must(err)
	log.wrote()
}

func testAgentEvents(w *world) {
	w.manage()
	ctx, log := w.Context(), w.orgLog("acme")
	asRoot := identity.WithOrigin(ctx, identity.Origin{Actor: "user:root"})
	_, err := w.agents.Create(asRoot, agent.Agent{ID: "bob", Org: "acme", Name: "Bob", Public: true})
	w.must(err)
	log.wrote("agent.registered agent:bob user:root")
	text, pin, yes, no := "Builds.", "busy", true, false
	for _, c := range []struct {
		edit agent.Edit
		want []string
	}{
		{agent.Edit{Description: &text}, []string{"agent.changed agent:bob user:root"}},
		{agent.Edit{Description: &text}, nil}, // nothing changed
		{agent.Edit{Pinned: &pin, Disabled: &yes}, []string{
			"agent.changed agent:bob user:root", "agent.disabled agent:bob user:root",
		}},
		{agent.Edit{Disabled: &no}, []string{"agent.enabled agent:bob user:root"}},
	} {
		_, err = w.agents.Update(asRoot, "acme", "bob", c.edit)
		w.must(err)
		log.wrote(c.want...)
	}
	_, err = w.agents.Release(asRoot, "acme", "bob")
	w.must(err)
	log.wrote("agent.changed agent:bob user:root")

	// Events about agents are all that a reader who is not an admin sees.
	log.after = 0
	for _, e := range log.page(event.Viewer{Ref: "agent:bob"}).Events {
		if !strings.HasPrefix(string(e.Type), "agent.") {
			w.Errorf("%s is seen by a reader who is not an admin", e.Type)
		}
	}
	if all, seen := log.page(event.Viewer{Admin: true}), log.page(event.Viewer{Ref: "agent:bob"}); len(all.Events) <=
		len(seen.Events) || len(seen.Events) < 6 {
		w.Errorf("admins see %d events and others %d, want fewer, and those of agents", len(all.Events), len(seen.Events))
	}
}

// testPresenceEvents: an agent that gets its first worker, or loses its last, is reported once.
func testPresenceEvents(w *world) {
	w.manage()
	w.useRegistry()
	ctx, log, workers := w.Context(), w.orgLog("acme"), w.store.Workers()
	const changed = "agent.presence agent:scout system"
	p := w.postOf("acme", "scout")
	poll := func(worker string) []dispatch.Assignment {
		w.Helper()
		got, err := w.tasks.Claim(ctx, p, dispatch.ClaimRequest{Worker: worker, Max: 1, Lease: time.Minute, Capacity: 1})
		w.must(err)
		return got.Assignments
	}
	scout := func(name string) dispatch.Worker {
		return dispatch.Worker{Org: "acme", Agent: "scout", Name: name, Capacity: 1, SeenAt: w.now()}
	}
	update := func() {
		w.Helper()
		_, err := workers.UpdatePresences(ctx, w.now())
		w.must(err)
	}
	update()
	log.wrote()
	poll("one")
	log.wrote(changed)
	for range 10 {
		w.advance(6 * time.Second)
		poll("one")
		poll("two")
		update()
	}
	log.wrote()
	w.advance(dispatch.GoneAfter + time.Second)
	for range 2 {
		update()
	}
	log.wrote(changed)
	w.advance(time.Minute)
	poll("one") // this node knew it, and it comes back
	log.wrote(changed)

	// Work does not change the presence: neither a task nor a worker that is silent while it works.
	c, err := w.tasks.Reach(ctx, w.access("acme", "user:ann").Caller(), "scout")
	w.must(err)
	w.send(c, "t1", "hello")
	a := poll("one")
	w.advance(dispatch.GoneAfter + time.Second)
	update()
	log.wrote()
	w.report(p, a[0], task.Report{State: task.Completed})
	log.wrote()
	update()
	log.wrote(changed)

	// A pinned status hides the change.
	pin, none := "busy", ""
	_, err = w.agents.Update(ctx, "acme", "scout", agent.Edit{Pinned: &pin})
	w.must(err)
	log.wrote("agent.changed agent:scout system")
	w.advance(time.Minute)
	poll("one")
	log.wrote()
	_, err = w.agents.Update(ctx, "acme", "scout", agent.Edit{Pinned: &none})
	w.must(err)
	log.wrote("agent.changed agent:scout system")
	poll("one")
	log.wrote()

	// Of several nodes that notice it, one reports it.
	w.advance(time.Minute)
	at := w.now()
	var sum atomic.Int64
	w.race(func() error {
		n, err := workers.UpdatePresences(ctx, at)
		sum.Add(int64(n))
		return err
	})
	if log.wrote(changed); sum.Load() != 1 {
		w.Errorf("%d nodes changed the presence, want 1", sum.Load())
	}
	w.race(func() error {
		return workers.See(ctx, scout(w.newID("w")), 0)
	})
	log.wrote(changed)
	// A worker whose agent another node considered offline.
	w.advance(time.Minute)
	update()
	w.must(workers.SeeAgain(ctx, scout("one")))
	log.wrote(changed)
	update()
	log.wrote(changed)
}
