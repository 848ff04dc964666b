package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/store"
)

func (w *world) oauth() clients {
	return clients{oauth.New(oauth.Options{
		Stores: w.store.OAuthStores(), Agents: w.agents, Now: w.now, NewID: w.newID, MaxClients: 1000,
	})}
}

// allowed creates a grant of ann with a code, whose refresh token is set later.
func (w *world) allowed(s clients, code string, scopes ...identity.Scope) oauth.Grant {
	w.Helper()
	now := w.now().Truncate(time.Microsecond)
	g := oauth.Grant{
		ID: s.NewGrantID(), Principal: principal("user:ann"), ClientID: "client-1", Scopes: scopes, Audience: "/mcp",
		CreatedAt: now, EndsAt: now.Add(time.Hour), Code: identity.HashSecret(code), CodeExpires: now.Add(time.Minute),
		Challenge: "challenge", RedirectURI: "http://127.0.0.1:1/done", RefreshExpires: now.Add(time.Hour),
	}
	w.must(s.Create(w.Context(), g))
	g.Version = 1
	return g
}

func testRacingGrants(w *world) {
	w.manage()
	ctx, s := w.Context(), w.oauth()
	made := w.allowed(s, "code", identity.TasksRead, "agent:scout")
	got, err := s.GrantByCode(ctx, identity.HashSecret("code"))
	w.must(err)
	if diff := cmp.Diff(made, got); diff != "" {
		w.Errorf("diff of the stored grant (-want +got):\n%s", diff)
	}
	_, err = s.GrantByCode(ctx, identity.HashSecret("other"))
	w.want(err, errs.NotFound)
	_, err = s.GrantByCode(ctx, identity.Hash{})
	w.want(err, errs.NotFound)

	got.CodeUsedAt, got.Refresh = w.now().Truncate(time.Microsecond), identity.HashSecret("r1")
	if n := w.race(func() error { return s.Use(ctx, got) }); n != 1 {
		w.Errorf("redemptions of one code = %d, want 1", n)
	}
	now, err := s.Grant(ctx, got.ID)
	w.must(err)
	if now.RevokedAt.IsZero() {
		w.Error("grant after its code was redeemed twice: revoked = false, want true")
	}

	w.allowed(s, "code 2", identity.TasksRead)
	got, err = s.GrantByCode(ctx, identity.HashSecret("code 2"))
	w.must(err)
	got.CodeUsedAt, got.Refresh = w.now(), identity.HashSecret("r2")
	w.must(s.Use(ctx, got))
	_, err = s.GrantByCode(ctx, identity.HashSecret("code 2"))
	w.want(err, errs.NotFound) // the grant has ended
	_, err = s.GrantByRefresh(ctx, identity.HashSecret("r2"), true)
	w.want(err, errs.NotFound)
}

func testRefreshFamily(w *world) {
	m, ann := w.manage()
	ctx, s := w.Context(), w.oauth()
	w.allowed(s, "code", identity.TasksRead)
	g, err := s.GrantByCode(ctx, identity.HashSecret("code"))
	w.must(err)
	g.CodeUsedAt, g.Refresh = w.now(), identity.HashSecret("r1")
	w.must(s.Use(ctx, g))

	g, err = s.GrantByRefresh(ctx, identity.HashSecret("r1"), true)
	w.must(err)
	g.Refresh = identity.HashSecret("r2")
	w.must(s.Use(ctx, g))
	_, err = s.GrantByRefresh(ctx, identity.HashSecret("r1"), false)
	w.want(err, errs.NotFound) // reading does not use it
	_, err = s.GrantByRefresh(ctx, identity.HashSecret("r2"), true)
	w.must(err)
	_, err = s.GrantByRefresh(ctx, identity.HashSecret("r1"), true)
	w.want(err, errs.NotFound)
	_, err = s.GrantByRefresh(ctx, identity.HashSecret("r2"), true)
	w.want(err, errs.NotFound)
	list, _ := w.log(m, ann, identity.AuditFilter{Action: oauth.GrantReplay})
	if len(list) != 1 || list[0].Actor != "user:ann" {
		w.Errorf("log = %+v, want one replay of user:ann", list)
	}
}

func testTokens(w *world) {
	m, ann := w.manage()
	ctx, s := w.Context(), w.oauth()
	auth := identity.NewAuthenticator(w.store.Identity(), w.now)
	auth.AcceptTokens(s)
	issue := func(g oauth.Grant, scopes ...identity.Scope) (string, identity.Hash) {
		w.Helper()
		secret := identity.NewToken()
		h := identity.HashSecret(secret)
		w.must(s.Issue(ctx, g, oauth.Token{
			GrantID: g.ID, Scopes: scopes, Audience: g.Audience, CreatedAt: w.now(), ExpiresAt: w.now().Add(15 * time.Minute),
		}, h))
		return secret, h
	}
	works := func(secret string) bool {
		w.Helper()
		w.must(auth.Refresh(ctx))
		_, err := auth.Authenticate(ctx, secret)
		if err != nil {
			w.want(err, errs.Unauthenticated)
		}
		return err == nil
	}

	g := w.allowed(s, "code", identity.TasksRead, identity.Admin)
	admin, h := issue(g, identity.TasksRead, identity.Admin)
	caller, err := auth.Authenticate(ctx, admin)
	w.must(err)
	if caller.Ref() != "user:ann" || caller.Org != "acme" || caller.Audience != "/mcp" || caller.KeyID[:4] != "tok-" ||
		caller.ExpiresAt.IsZero() || caller.Scopes.String() != "svc:tasks:read svc:admin:admin" {
		w.Errorf("caller = %+v, want user:ann of acme with a token for /mcp", caller)
	}
	w.must(auth.Flush(ctx)) // tokens do not count as used keys

	reader, _ := issue(g, identity.TasksRead)
	st, err := s.Token(ctx, h)
	w.must(err)
	w.must(s.RevokeToken(ctx, st, h))
	if works(admin) || !works(reader) {
		w.Error("after the revocation, want only the other token to work")
	}

	// A demoted admin loses tokens with the admin scope; other tokens stay valid.
	admin, _ = issue(g, identity.TasksRead, identity.Admin)
	_, err = m.CreateMember(ctx, ann, identity.User, "bob", "", true)
	w.must(err)
	yes, no := true, false
	bob := w.access("acme", "user:bob")
	_, err = m.UpdateMember(ctx, bob, principal("user:ann"), identity.MemberEdit{Admin: &no})
	w.must(err)
	if works(admin) || !works(reader) {
		w.Error("after the demotion, want only the token without the admin scope to work")
	}
	member, err := w.store.Identity().Member(ctx, principal("user:ann"))
	w.must(err)
	if left, err := s.TokenScopes(ctx, g, member, nil); err != nil || left.String() != "svc:tasks:read" {
		w.Errorf("scopes of a refresh = %q, %v, want svc:tasks:read", left, err)
	}
	_, err = m.UpdateMember(ctx, bob, principal("user:ann"), identity.MemberEdit{Disabled: &yes})
	w.must(err)
	_, err = m.UpdateMember(ctx, bob, principal("user:ann"), identity.MemberEdit{Disabled: &no})
	w.must(err)
	if works(reader) {
		w.Error("token of a disabled member works = true, want false")
	}

	// The tokens of a key end with the key.
	k, _, err := m.CreateKey(ctx, bob, identity.KeyRequest{
		Principal: principal("service:crm"), Scopes: []string{"svc:tasks:read", "svc:a2a:write", "agent:scout"},
	})
	w.must(err)
	self := oauth.Grant{
		ID: s.NewGrantID(), Principal: k.Principal, ClientID: k.ID, Scopes: k.Scopes, CreatedAt: w.now(),
		EndsAt: w.now().Add(time.Hour),
	}
	w.must(s.Create(ctx, self))
	own, _ := issue(self, k.Scopes...)
	loose, _ := issue(self, identity.A2AWrite)
	if !works(own) || works(loose) {
		w.Error("want the token of the key to work, and one without its restriction not to")
	}
	_, err = m.RevokeKey(ctx, bob, k.ID)
	w.must(err)
	if works(own) {
		w.Error("token of a revoked key works = true, want false")
	}
	_, _, err = s.KeyClient(ctx, k.ID)
	w.want(err, errs.NotFound)

	late, _ := issue(g, identity.TasksRead)
	w.advance(16 * time.Minute)
	if works(late) {
		w.Error("expired token works = true, want false")
	}
}

func testSweepLogins(w *world) {
	w.manage()
	ctx, s := w.Context(), w.oauth()
	w.allowed(s, "code", identity.TasksRead)
	g, err := s.GrantByCode(ctx, identity.HashSecret("code"))
	w.must(err)
	g.CodeUsedAt, g.Refresh = w.now(), identity.HashSecret("r1")
	w.must(s.Use(ctx, g))
	c, secret, err := s.Register(ctx, oauth.Registration{
		Name: "App", RedirectURIs: []string{"https://app.example/done"}, Method: oauth.SecretPost,
	})
	w.must(err)
	if _, h, err := s.Client(ctx, c.ID); err != nil || h != identity.HashSecret(secret) {
		w.Error(err)
	}
	w.must(w.store.Sessions().Create(ctx, "t1", nil, w.now().Add(time.Minute)))
	n, err := w.store.Sweep(ctx, w.now(), store.Retention{})
	w.must(err)
	if len(n) != 0 {
		w.Errorf("swept %v, which are in use", n)
	}
	w.advance(8 * 24 * time.Hour)
	n, err = w.store.Sweep(ctx, w.now(), store.Retention{})
	w.must(err)
	if len(n) != 3 || n["grants"] != 1 || n["unused clients"] != 1 || n["sessions"] != 1 {
		w.Errorf("swept %v, want the grant, the client and the session", n)
	}
	_, _, err = s.Client(ctx, c.ID)
	w.want(err, errs.NotFound)
	_, err = s.GrantByRefresh(ctx, identity.HashSecret("r1"), true)
	w.want(err, errs.NotFound)
}

func testDescribedClient(w *world) {
	ctx, s := w.Context(), w.oauth()
	const id = "https://app.example/client.json"
	_, _, err := s.Client(ctx, id)
	w.want(err, errs.NotFound)
	r := oauth.Registration{Name: "App", RedirectURIs: []string{"https://app.example/done", "http://127.0.0.1/done"}}
	// Several users can be sent here by the client at the same moment.
	if n := w.race(func() error { return s.Describe(ctx, id, r) }); n != 20 {
		w.Errorf("stored the document %d times, want 20", n)
	}
	made, secret, err := s.Client(ctx, id)
	w.must(err)
	if made.Name != "App" || len(made.RedirectURIs) != 2 || made.Method != oauth.Public || made.Org != "" ||
		secret != (identity.Hash{}) || made.Scopes.String() != oauth.Registrable.String() {
		w.Errorf("client = %+v, want public App with two redirect URIs and all registrable scopes", made)
	}
	epoch, err := w.store.Identity().Epoch(ctx)
	w.must(err)
	r.Name, r.RedirectURIs = "App 2", r.RedirectURIs[:1]
	w.must(s.Describe(ctx, id, r))
	if now, err := w.store.Identity().Epoch(ctx); err != nil || now != epoch {
		w.Errorf("epoch after a new name = %d, %v, want %d", now, err, epoch)
	}
	r.Scope = "svc:tasks:read"
	w.must(s.Describe(ctx, id, r))
	if now, err := w.store.Identity().Epoch(ctx); err != nil || now == epoch {
		w.Errorf("epoch after fewer scopes = %d, %v, want more", now, err)
	}
	again, _, err := s.Client(ctx, id)
	w.must(err)
	if again.Name != "App 2" || len(again.RedirectURIs) != 1 || again.Scopes.String() != "svc:tasks:read" ||
		!again.CreatedAt.Equal(made.CreatedAt) {
		w.Errorf("client = %+v, want App 2 with one redirect URI, created at %s", again, made.CreatedAt)
	}
	// An identical document is not stored again.
	before := w.described(id)
	w.must(s.Describe(ctx, id, r))
	if after := w.described(id); before < 2 || after != before {
		w.Errorf("log entries = %d, then %d, want the same number, at least 2", before, after)
	}
}

// described counts the entries about a client's document in the platform's log.
func (w *world) described(id string) (n int) {
	w.Helper()
	list, err := w.store.Audit().List(w.Context(), "", identity.AuditFilter{Limit: 100})
	w.must(err)
	for _, e := range list {
		if e.Action == oauth.ClientDescribe && e.Target == id {
			n++
		}
	}
	return n
}
