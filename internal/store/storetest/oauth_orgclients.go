package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/store"
)

func testOrgClients(w *world) {
	m, ann := w.manage()
	ctx, s := w.Context(), w.oauth()
	eve := w.access("other", "user:ann")
	request := oauth.ClientRequest{
		Name: "Reports", RedirectURIs: []string{"https://reports.example/done", "http://127.0.0.1/done"},
		Scopes: []string{"svc:tasks:read", "svc:admin:admin", "agent:scout", "agent:open"}, Method: oauth.SecretBasic,
	}
	made, secret, err := s.CreateClient(ctx, ann, request)
	w.must(err)
	got, h, err := s.Client(ctx, made.ID)
	w.must(err)
	made.CreatedAt = made.CreatedAt.Truncate(time.Microsecond)
	diff := cmp.Diff(made, got)
	if diff != "" || h != identity.HashSecret(secret) || got.Org != "acme" || got.CreatedBy != "user:ann" {
		w.Errorf("client = %+v, want one of user:ann in acme; diff to the created one (-want +got):\n%s", got, diff)
	}
	second, secret, err := s.CreateClient(ctx, ann, oauth.ClientRequest{
		Name: "Desk", RedirectURIs: []string{"http://127.0.0.1/done"},
	})
	w.must(err)
	if secret != "" || second.Method != oauth.Public || second.Scopes.String() != oauth.Registrable.String() {
		w.Errorf("public client = %+v with secret %q, want all registrable scopes and no secret", second, secret)
	}
	request.Scopes = []string{"agent:hidden"}
	_, _, err = s.CreateClient(ctx, ann, request)
	w.want(err, errs.Invalid)
	plain := w.access("acme", "user:ann", memberScopes...)
	_, _, err = s.CreateClient(ctx, plain, request)
	w.want(err, errs.Forbidden)
	_, err = s.Clients(ctx, plain, oauth.ClientFilter{})
	w.want(err, errs.Forbidden)

	// Pages, and only clients of the own org.
	for cursor, want := range map[string]string{"": second.ID, second.ID: made.ID} {
		list, err := s.Clients(ctx, ann, oauth.ClientFilter{Before: cursor, Limit: 1})
		w.must(err)
		if len(list) != 1 || list[0].ID != want {
			w.Errorf("page after %q = %+v, want %s", cursor, list, want)
		}
	}
	list, err := s.Clients(ctx, eve, oauth.ClientFilter{})
	w.must(err)
	if len(list) != 0 {
		w.Errorf("clients of another org = %+v, want none", list)
	}
	_, err = s.OrgClient(ctx, eve, made.ID)
	w.want(err, errs.NotFound)
	_, err = s.DeleteClient(ctx, eve, made.ID)
	w.want(err, errs.NotFound)
	_, _, err = s.ClientFor(ctx, "other", made.ID)
	w.want(err, errs.NotFound)
	_, _, err = s.ClientFor(ctx, "acme", made.ID)
	w.must(err)
	own, _, err := s.Register(ctx, oauth.Registration{Name: "App", RedirectURIs: []string{"https://app.example/done"}})
	w.must(err)
	for _, id := range []string{own.ID, oauth.CommandLine.ID} {
		_, _, err = s.ClientFor(ctx, "other", id) // clients of all orgs
		w.must(err)
		_, err = s.OrgClient(ctx, ann, id) // clients of no org
		w.want(err, errs.NotFound)
		_, err = s.DeleteClient(ctx, ann, id)
		w.want(err, errs.NotFound)
	}

	// Unused clients of an org are kept.
	w.advance(8 * 24 * time.Hour)
	_, err = w.store.Sweep(ctx, w.now(), store.Retention{})
	w.must(err)
	_, err = s.OrgClient(ctx, ann, made.ID)
	w.must(err)
	_, _, err = s.Client(ctx, own.ID)
	w.want(err, errs.NotFound)

	// Deleting a client ends its grants, and no others.
	auth := identity.NewAuthenticator(w.store.Identity(), w.now)
	auth.AcceptTokens(s)
	token := func(client string) string {
		w.Helper()
		now := w.now()
		g := oauth.Grant{
			ID: s.NewGrantID(), Principal: principal("user:ann"), ClientID: client,
			Scopes:    identity.Scopes{identity.TasksRead},
			CreatedAt: now, EndsAt: now.Add(time.Hour),
		}
		w.must(s.Create(ctx, g))
		text := identity.NewToken()
		token := oauth.Token{GrantID: g.ID, Scopes: g.Scopes, CreatedAt: now, ExpiresAt: now.Add(time.Minute)}
		w.must(s.Issue(ctx, g, token, identity.HashSecret(text)))
		_, err := auth.Authenticate(ctx, text)
		w.must(err)
		return text
	}
	ends, stays := token(made.ID), token(second.ID)
	w.must(auth.Refresh(ctx))
	if n := w.race(func() error { _, err := s.DeleteClient(ctx, ann, made.ID); return err }); n != 1 {
		w.Errorf("deletions of one client = %d, want 1", n)
	}
	w.must(auth.Refresh(ctx))
	_, err = auth.Authenticate(ctx, ends)
	w.want(err, errs.Unauthenticated)
	_, err = auth.Authenticate(ctx, stays)
	w.must(err)
	_, _, err = s.Client(ctx, made.ID)
	w.want(err, errs.NotFound)
	_, actions := w.log(m, ann, identity.AuditFilter{Action: oauth.ClientDelete})
	if diff := cmp.Diff([]string{"oauth.client.delete " + made.ID}, actions); diff != "" {
		w.Error(diff)
	}
}

// testFewClients registers the last client that an org may have many times concurrently.
func testFewClients(w *world) {
	w.manage()
	ctx := w.Context()
	const most = 3
	create := func(org string) error {
		_, err := w.store.OAuth().CreateOrgClient(ctx, oauth.Client{
			ID: w.newID(oauth.ClientPrefix), Org: org, Name: "x", Method: oauth.Public,
			RedirectURIs: []string{"http://127.0.0.1/"}, CreatedAt: w.now(),
		}, identity.Hash{}, most, identity.NewEntry(ctx, w.now(), org, oauth.ClientCreate, "x", ""))
		return err
	}
	if n := w.race(func() error { return create("acme") }); n != most {
		w.Errorf("%d clients were made, want %d", n, most)
	}
	w.want(create("acme"), errs.Conflict)
	w.must(create("other"))
	w.want(create("nowhere"), errs.NotFound)
}
