package storetest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

func testOwnKeys(w *world) {
	m, ann := w.manage()
	ctx := w.Context()
	_, err := m.CreateMember(ctx, ann, identity.User, "bob", "", false)
	w.must(err)
	bob, err := m.Member(ctx, ann, principal("user:bob"))
	w.must(err)
	session := &identity.Caller{Principal: bob.Principal, KeyID: "session-1", Scopes: bob.Entitled()}
	ask := func(scopes ...string) identity.KeyRequest { return identity.KeyRequest{Scopes: scopes} }

	// A session may create keys by the user's rights, and only for the user itself.
	r := ask("svc:tasks:read", "svc:tasks:write")
	r.Principal = principal("user:ann")
	k, secret, err := m.CreateOwnKey(ctx, session, r)
	w.must(err)
	if k.Principal != bob.Principal || k.CreatedBy != "user:bob" || secret == "" {
		w.Errorf("key = %+v, want one of user:bob with a secret", k)
	}
	for _, beyond := range []string{"svc:admin:admin", "svc:a2a:serve"} {
		_, _, err = m.CreateOwnKey(ctx, session, ask("svc:tasks:read", beyond))
		w.refusedAs(err, errs.Forbidden, "identity.scope_not_held")
	}
	_, _, err = m.CreateOwnKey(ctx, session, ask("svc:a2a:write", "agent:hidden"))
	w.want(err, errs.Invalid) // private agent of another org
	program := *session
	program.Delegated = true
	_, _, err = m.CreateOwnKey(ctx, &program, ask("svc:tasks:read"))
	w.refusedAs(err, errs.Forbidden, "auth.delegated")
	_, err = m.OwnKeys(ctx, &program, identity.KeyFilter{})
	w.refusedAs(err, errs.Forbidden, "auth.delegated")
	_, err = m.OwnKeys(ctx, nil, identity.KeyFilter{})
	w.want(err, errs.Unauthenticated)

	// A key cannot create a key with more rights or a longer lifetime.
	weak := &identity.Caller{
		Principal: bob.Principal, KeyID: k.ID, Scopes: identity.Scopes{identity.A2AWrite, "agent:scout"},
		ExpiresAt: w.clock.Add(time.Hour),
	}
	_, _, err = m.CreateOwnKey(ctx, weak, ask("svc:tasks:read", "agent:scout"))
	w.refusedAs(err, errs.Forbidden, "identity.scope_not_held")
	_, _, err = m.CreateOwnKey(ctx, weak, ask("svc:a2a:write"))
	w.refusedAs(err, errs.Forbidden, "identity.scope_not_held") // without the restriction
	_, _, err = m.CreateOwnKey(ctx, weak, ask("svc:a2a:write", "agent:scout", "agent:open"))
	w.refusedAs(err, errs.Forbidden, "identity.scope_not_held")
	long := ask("svc:a2a:write", "agent:scout")
	long.ExpiresAt = w.clock.Add(2 * time.Hour)
	_, _, err = m.CreateOwnKey(ctx, weak, long)
	w.want(err, errs.Invalid)
	child, _, err := m.CreateOwnKey(ctx, weak, ask("svc:a2a:write", "agent:scout"))
	w.must(err)
	if !child.ExpiresAt.Equal(weak.ExpiresAt) {
		w.Errorf("the key ends %v, want %v", child.ExpiresAt, weak.ExpiresAt)
	}
	_, _, err = m.RotateOwnKey(ctx, weak, k.ID, 0) // k has more scopes and does not expire
	w.refusedAs(err, errs.Forbidden, "identity.scope_not_held")
	serving := &identity.Caller{Principal: bob.Principal, KeyID: k.ID, Scopes: identity.Scopes{identity.A2AServe}}
	_, _, err = m.CreateOwnKey(ctx, serving, ask("svc:a2a:serve", "agent:scout"))
	w.refusedAs(err, errs.Forbidden, "identity.scope_not_held") // the key may serve no agent

	// A user lists, rotates and revokes own keys; keys of others are not found.
	hers, _, err := m.CreateOwnKey(ctx, ann.Caller(), ask("svc:admin:admin"))
	w.must(err)
	list, err := m.OwnKeys(ctx, session, identity.KeyFilter{})
	w.must(err)
	if len(list) != 2 || list[0].ID != child.ID || list[1].ID != k.ID {
		w.Errorf("keys = %+v, want %s and %s", list, child.ID, k.ID)
	}
	next, _, err := m.RotateOwnKey(ctx, session, k.ID, identity.DefaultOverlap)
	w.must(err)
	if next.Replaces != k.ID || next.Scopes.String() != k.Scopes.String() {
		w.Errorf("rotated key = %+v, want it to replace %s with scopes %s", next, k.ID, k.Scopes)
	}
	if got, err := m.OwnKey(ctx, session, next.ID); err != nil || got.Replaces != k.ID {
		w.Errorf("key = %+v, %v, want it to replace %s", got, err, k.ID)
	}
	if got, err := m.OwnKey(ctx, session, k.ID); err != nil || got.ReplacedBy != next.ID {
		w.Errorf("key = %+v, %v, want it replaced by %s", got, err, next.ID)
	}
	for _, f := range []func() error{
		func() error { _, err := m.OwnKey(ctx, session, hers.ID); return err },
		func() error { _, err := m.RevokeOwnKey(ctx, session, hers.ID); return err },
		func() error { _, _, err := m.RotateOwnKey(ctx, session, hers.ID, 0); return err },
	} {
		w.want(f(), errs.NotFound)
	}
	for range 2 {
		got, err := m.RevokeOwnKey(ctx, session, k.ID)
		w.must(err)
		if got.RevokedAt.IsZero() {
			w.Errorf("key = %+v, want it revoked", got)
		}
	}
	_, actions := w.log(m, ann, identity.AuditFilter{Actor: "user:bob"})
	if want := "key.revoke " + k.ID; !slices.Contains(actions, want) {
		w.Errorf("the log has %q, want %q", actions, want)
	}
	// A demoted admin cannot create an admin key, even with an outdated session.
	stale := &identity.Caller{Principal: bob.Principal, KeyID: "session-1", Scopes: identity.AllScopes}
	_, _, err = m.CreateOwnKey(ctx, stale, ask("svc:admin:admin"))
	w.refusedAs(err, errs.Forbidden, "identity.not_an_admin")
}

func testKeyViews(w *world) {
	m, ann := w.manage()
	ctx := w.Context()
	create := func(name string, end time.Duration, scopes ...string) identity.Key {
		r := identity.KeyRequest{Principal: principal("service:crm"), Name: name, Scopes: scopes}
		if end > 0 {
			r.ExpiresAt = w.clock.Add(end)
		}
		k, _, err := m.CreateKey(ctx, ann, r)
		w.must(err)
		return k
	}
	day := 24 * time.Hour
	create("forever", 0, "svc:tasks:read")
	soon := create("soon", 3*day, "svc:tasks:read", "agent:open")
	create("later", 30*day, "svc:admin:admin", "svc:tasks:read")
	gone := create("gone", 2*day, "svc:admin:admin")
	_, err := m.RevokeKey(ctx, ann, gone.ID)
	w.must(err)
	w.must(w.store.Identity().TouchKeys(ctx, map[string]time.Time{soon.ID: w.now()}))
	for _, c := range []struct {
		rule string
		f    identity.KeyFilter
		want string
	}{
		{"all", identity.KeyFilter{}, "gone later soon forever"},
		{"live", identity.KeyFilter{State: identity.KeyLive}, "later soon forever"},
		{"revoked", identity.KeyFilter{State: identity.KeyRevoked}, "gone"},
		{"ends within a week", identity.KeyFilter{EndsWithin: 7 * day}, "soon"},
		{"ends within two months", identity.KeyFilter{EndsWithin: 60 * day}, "soon later"},
		{
			"the next page of those",
			identity.KeyFilter{EndsWithin: 60 * day, Before: soon.ID, BeforeEnd: soon.ExpiresAt},
			"later",
		},
		{"never used", identity.KeyFilter{NeverUsed: true, State: identity.KeyLive}, "later forever"},
		{"with admin scope", identity.KeyFilter{Scope: identity.Admin}, "gone later"},
		{"for an agent", identity.KeyFilter{Scope: "agent:open"}, "soon"},
		{"a scope is matched as a whole", identity.KeyFilter{Scope: "agent:ope"}, ""},
		{"an underscore is no wildcard", identity.KeyFilter{Scope: "agent:ope_"}, ""},
		{"of a principal", identity.KeyFilter{Principal: principal("agent:scout")}, ""},
	} {
		list, err := m.Keys(ctx, ann, c.f)
		w.must(err)
		names := []string{}
		for _, k := range list {
			names = append(names, k.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			w.Errorf("%s: %q, want %q", c.rule, got, c.want)
		}
	}
}

func testResetLink(w *world) {
	m, ann := w.manage()
	ctx, people := w.Context(), w.people()
	bob := w.userOf("acme", "bob", "words of bob once")
	session := w.session("acme", "bob", "words of bob once")
	reset := func(a identity.Access, p identity.Principal) (string, error) {
		a, err := a.As(identity.ManageMembers)
		if err != nil {
			return "", err
		}
		token, l, err := people.ResetLink(ctx, a, p, account.LinkLifetime)
		if err == nil && (l.CreatedBy != a.Principal().Ref() || l.ExpiresAt.Sub(l.CreatedAt) != account.LinkLifetime) {
			w.Errorf("link = %+v, want one by %s that lives for %s", l, a.Principal().Ref(), account.LinkLifetime)
		}
		return token, err
	}
	_, err := reset(w.access("acme", "user:ann", identity.TasksWrite), bob)
	w.want(err, errs.Forbidden)
	_, err = reset(ann, identity.Principal{Org: "other", Kind: identity.User, ID: "ann"})
	w.want(err, errs.NotFound)
	_, err = reset(ann, principal("user:nobody"))
	w.want(err, errs.NotFound)
	for _, ref := range []string{"agent:scout", "service:crm"} {
		_, err = reset(ann, principal(ref))
		w.refusedAs(err, errs.Conflict, "account.not_a_user")
	}
	_, _, err = people.ResetLink(ctx, w.as(ann, identity.ManageMembers), bob, account.MaxLinkLifetime+time.Second)
	w.want(err, errs.Invalid)

	old, err := reset(ann, bob)
	w.must(err)
	token, err := reset(ann, bob)
	w.must(err)
	_, err = people.Link(ctx, old)
	w.want(err, errs.NotFound)  // replaced
	w.wantOrgs(session, "acme") // unchanged so far
	_, err = people.UseLink(ctx, token, "a new password of bob")
	w.must(err)
	w.wantOrgs(session)
	_, err = people.Login(ctx, "acme", "bob", "words of bob once")
	w.want(err, errs.Unauthenticated)
	_, actions := w.log(m, ann, identity.AuditFilter{Actor: "user:ann", Action: account.LinkCreate})
	if len(actions) != 2 || actions[0] != "login.link user:bob" {
		w.Errorf("log = %q, want 2 entries, the last one login.link user:bob", actions)
	}
	yes := true
	_, err = m.UpdateMember(ctx, ann, bob, identity.MemberEdit{Disabled: &yes})
	w.must(err)
	_, err = reset(ann, bob)
	w.refusedAs(err, errs.Conflict, "identity.principal_disabled")
}

func testConnection(w *world) {
	m, ann := w.manage()
	ctx := w.Context()
	w.useRegistry()
	w.must(w.agent("acme", "bob", false))
	look := func(g dispatch.Enlisted) dispatch.Connection {
		w.Helper()
		g.ID = "scout"
		c, err := w.tasks.Connection(ctx, w.as(ann, identity.ManageAgents), g)
		w.must(err)
		if c.Sentence == "" {
			w.Errorf("sentence of %s = \"\", want a text", c.State)
		}
		return c
	}
	want := func(state dispatch.ConnectionState) dispatch.Connection {
		w.Helper()
		c := look(dispatch.Enlisted{})
		if c.State != state {
			w.Errorf("the connection is %s (%s), want %s", c.State, c.Sentence, state)
		}
		return c
	}
	key := func(ref string, scopes ...string) identity.Key {
		k, _, err := m.CreateKey(ctx, ann, identity.KeyRequest{Principal: principal(ref), Scopes: scopes})
		w.must(err)
		return k
	}
	_, err := w.access("acme", "user:ann", identity.TasksRead, identity.TasksWrite).As(identity.ManageAgents)
	w.want(err, errs.Forbidden)
	want(dispatch.NoKey)
	key("service:crm", "svc:a2a:write", "agent:scout") // calls the agent, but does not serve it
	want(dispatch.NoKey)
	wrong := key("agent:scout", "svc:tasks:read")
	if c := want(dispatch.WrongScope); len(c.Keys) != 1 || c.Keys[0].Key.ID != wrong.ID ||
		c.Keys[0].Problem != dispatch.WrongScope {
		w.Errorf("connection = %+v, want key %s with the wrong scope", c, wrong.ID)
	}
	right := key("service:crm", "svc:a2a:serve", "agent:scout")
	if c := want(dispatch.KeyNeverUsed); len(c.Keys) != 2 {
		w.Errorf("connection = %+v, want 2 keys", c)
	}
	w.must(w.store.Identity().TouchKeys(ctx, map[string]time.Time{right.ID: w.now()}))
	want(dispatch.NoWorker)

	// The reason why a worker was refused is reported for a while.
	serve := func(k identity.Key, agent string) (dispatch.Post, error) {
		return w.tasks.Serve(ctx, &identity.Caller{Principal: k.Principal, KeyID: k.ID, Scopes: k.Scopes}, agent)
	}
	_, err = serve(wrong, "scout")
	w.want(err, errs.Forbidden)
	want(dispatch.WrongScope)
	other := key("service:crm", "svc:a2a:serve", "agent:open")
	_, err = serve(other, "scout")
	w.want(err, errs.Forbidden)
	if c := want(dispatch.OtherAgent); len(c.Refusals) != 2 || c.Refusals[0].KeyID != other.ID ||
		c.Refusals[1].KeyID != wrong.ID {
		w.Errorf("refusals = %+v, want those of %s and %s", c.Refusals, other.ID, wrong.ID)
	}
	for range 3 {
		_, _ = serve(other, "scout")
	}
	if c := want(dispatch.OtherAgent); len(c.Refusals) != 2 {
		w.Errorf("refusals = %d, want 2: one for each key", len(c.Refusals))
	}

	seen := func(a identity.Access, ids ...string) map[string]time.Time {
		w.Helper()
		out, err := w.tasks.LastSeen(ctx, w.as(a, identity.ManageAgents), ids)
		w.must(err)
		return out
	}
	if got := seen(ann, "scout", "bob", "none"); len(got) != 0 {
		w.Errorf("last seen = %v, want none", got)
	}
	post, err := serve(right, "scout")
	w.must(err)
	_, err = w.tasks.Claim(ctx, post, dispatch.ClaimRequest{Worker: "one", Max: 1, Lease: time.Minute, Capacity: 2})
	w.must(err)
	if c := want(dispatch.Connected); len(c.Workers) != 1 || c.Workers[0].Name != "one" || c.Workers[0].Capacity != 2 ||
		c.LastSeen.IsZero() {
		w.Errorf("connection = %+v, want worker one with capacity 2", c)
	}
	if c := look(dispatch.Enlisted{Pinned: "offline"}); c.State != dispatch.StatusPinned || c.Pinned != "offline" {
		w.Errorf("connection = %+v, want it pinned offline", c)
	}
	if c := look(dispatch.Enlisted{Disabled: true}); c.State != dispatch.AgentDisabled {
		w.Errorf("connection = %+v, want state %s", c, dispatch.AgentDisabled)
	}
	if c := look(dispatch.Enlisted{Builtin: "echo"}); c.State != dispatch.RunsInTheServer {
		w.Errorf("connection = %+v, want state %s", c, dispatch.RunsInTheServer)
	}
	first := w.now()
	for _, worker := range []dispatch.Worker{
		{Org: "acme", Agent: "scout", Name: "two", Capacity: 1, SeenAt: first},
		{Org: "acme", Agent: "bob", Name: "one", Capacity: 1, SeenAt: first.Add(-time.Hour)},
		{Org: "other", Agent: "scout", Name: "one", Capacity: 1, SeenAt: first.Add(time.Hour)},
	} {
		w.must(w.store.Workers().See(ctx, worker, 0))
	}
	w.advance(time.Hour)
	lost := want(dispatch.ConnectionLost)
	both := map[string]time.Time{"scout": lost.LastSeen, "bob": lost.LastSeen.Add(-time.Hour)}
	diff := cmp.Diff(both, seen(ann, append(numbered(2500), "scout", "bob", "none")...))
	if diff != "" || lost.LastSeen != first.Truncate(time.Microsecond) {
		w.Errorf("last seen = %s, want %s; diff of all (-want +got):\n%s",
			lost.LastSeen, first.Truncate(time.Microsecond), diff)
	}
	if diff := cmp.Diff(map[string]time.Time{"bob": both["bob"]}, seen(ann, "bob")); diff != "" {
		w.Error(diff)
	}
	// A caller that may not see the connection gets no data about it.
	narrow := w.access("acme", "user:ann", identity.Admin, identity.TasksWrite, "agent:bob")
	if got := seen(narrow, "scout"); len(got) != 0 {
		w.Errorf("last seen = %v, want none", got)
	}
	reader, err := w.access("acme", "user:ann", identity.TasksRead, identity.TasksWrite).As(identity.ReadAgents)
	w.must(err)
	got, err := w.tasks.LastSeen(ctx, reader, []string{"scout"})
	if w.refusedAs(err, errs.Internal, "auth.wrong_action"); len(got) != 0 {
		w.Errorf("last seen = %v, want none", got)
	}
	w.must(w.store.Workers().Forget(ctx, dispatch.Worker{Org: "other", Agent: "scout", Name: "one"}))
	// Another org gets no data about it.
	c, err := w.tasks.Connection(ctx, w.as(w.access("other", "user:ann"), identity.ManageAgents),
		dispatch.Enlisted{ID: "scout"})
	w.must(err)
	if c.State != dispatch.NoKey || len(c.Keys)+len(c.Refusals)+len(c.Workers) > 0 {
		w.Errorf("connection seen by another org = %+v, want state %s and nothing else", c, dispatch.NoKey)
	}
}

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = "a" + strconv.Itoa(i)
	}
	return out
}
