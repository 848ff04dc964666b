package storetest

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

func testEditClients(w *world) {
	m, ann := w.manage()
	ctx, s := w.Context(), w.oauth()
	made, secret, err := s.CreateClient(ctx, ann, oauth.ClientRequest{
		Name: "Reports", RedirectURIs: []string{"https://reports.example/done"},
		Scopes: []string{"svc:tasks:read", "svc:admin:admin"}, Method: oauth.SecretBasic,
	})
	w.must(err)
	other, _, err := s.CreateClient(ctx, ann, oauth.ClientRequest{
		Name: "Desk", RedirectURIs: []string{"http://127.0.0.1/done"},
	})
	w.must(err)
	name, uris := " Monthly ", []string{"https://reports.example/b", "http://127.0.0.1/b"}
	scopes := []string{"svc:a2a:write", "agent:open"}
	want := made
	want.CreatedAt = want.CreatedAt.Truncate(time.Microsecond)
	change := func(e oauth.ClientEdit) oauth.Client {
		w.Helper()
		out, err := s.UpdateClient(ctx, ann, made.ID, e)
		w.must(err)
		read, h, err := s.Client(ctx, made.ID)
		w.must(err)
		diff := cmp.Diff(out.Client, read) + cmp.Diff(want, read)
		if diff != "" || out.Replayed || h != identity.HashSecret(secret) {
			w.Errorf("replayed = %t, want false; diff of the stored client (-want +got):\n%s", out.Replayed, diff)
		}
		return read
	}
	// One field changes and the others stay; the version increases.
	want.Name, want.Version = "Monthly", 2
	change(oauth.ClientEdit{Name: &name})
	want.RedirectURIs, want.Version = uris, 3
	change(oauth.ClientEdit{RedirectURIs: &uris})
	want.Scopes, want.Version = identity.Scopes{"svc:a2a:write", "agent:open"}, 4
	change(oauth.ClientEdit{Scopes: &scopes})
	same := oauth.ClientEdit{Name: &name, RedirectURIs: &uris, Scopes: &scopes, IfVersion: &want.Version}
	change(same) // changes nothing
	list, _ := w.log(m, ann, identity.AuditFilter{Action: oauth.ClientUpdate})
	got := []string{}
	for _, e := range list {
		if e.Actor != "user:ann" || e.KeyID != "key-user:ann" || e.Target != made.ID {
			w.Errorf("log entry = %+v, want one of user:ann about %s", e, made.ID)
		}
		got = append(got, e.Detail)
	}
	if diff := cmp.Diff([]string{
		"scopes svc:a2a:write agent:open instead of svc:tasks:read svc:admin:admin",
		"redirect_uris https://reports.example/b http://127.0.0.1/b instead of https://reports.example/done",
		`name "Monthly" instead of "Reports"`,
	}, got); diff != "" {
		w.Error(diff)
	}

	// A refused edit changes nothing.
	none, hidden, stale := []string{}, []string{"agent:hidden"}, int64(3)
	for _, c := range []struct {
		kind errs.Kind
		edit oauth.ClientEdit
	}{
		{errs.Invalid, oauth.ClientEdit{}},
		{errs.Invalid, oauth.ClientEdit{Scopes: &none}},
		{errs.Invalid, oauth.ClientEdit{RedirectURIs: &none}},
		{errs.Invalid, oauth.ClientEdit{Scopes: &hidden}},
		{errs.Stale, oauth.ClientEdit{Scopes: &scopes, IfVersion: &stale}},
	} {
		_, err := s.UpdateClient(ctx, ann, made.ID, c.edit)
		w.want(err, c.kind)
	}
	own, _, err := s.Register(ctx, oauth.Registration{Name: "App", RedirectURIs: []string{"https://app.example/done"}})
	w.must(err)
	eve := w.access("other", "user:ann")
	_, err = s.UpdateClient(ctx, eve, made.ID, oauth.ClientEdit{Name: &name})
	w.want(err, errs.NotFound)
	_, err = s.UpdateClient(ctx, w.access("acme", "user:ann", memberScopes...), made.ID, oauth.ClientEdit{Name: &name})
	w.want(err, errs.Forbidden)
	for _, id := range []string{own.ID, oauth.CommandLine.ID, "client-none"} {
		_, err = s.UpdateClient(ctx, ann, id, oauth.ClientEdit{Name: &name})
		w.want(err, errs.NotFound)
	}
	change(oauth.ClientEdit{Name: &name})
	if c, err := s.OrgClient(ctx, ann, other.ID); err != nil || c.Name != "Desk" || c.Version != 1 {
		w.Errorf("other client = %+v, %v, want it unchanged", c, err)
	}

	// Of many edits of one version, one succeeds; a repeat of it gets the same result.
	next := want.Version
	if n := w.race(func() error {
		to := w.newID("name-")
		_, err := s.UpdateClient(ctx, ann, made.ID, oauth.ClientEdit{Name: &to, IfVersion: &next})
		return err
	}); n != 1 {
		w.Errorf("edits of one version = %d, want 1", n)
	}
	key, err := idempotency.New("PATCH client", "k", []byte("body"))
	w.must(err)
	var first atomic.Int64
	race(w, 8, func(int) error {
		to := "once"
		out, err := s.UpdateClient(ctx, ann, made.ID, oauth.ClientEdit{Name: &to, Once: key})
		if !out.Replayed {
			first.Add(1)
		}
		if err == nil && (out.Client.Name != "once" || out.Client.Version != next+2 ||
			!slices.Equal(out.Client.Scopes, want.Scopes)) {
			w.Errorf("client = %+v, want it named once with version %d", out, next+2)
		}
		return err
	})
	if first.Load() != 1 {
		w.Errorf("edits with one idempotency key = %d, want 1", first.Load())
	}
	again, err := idempotency.New("PATCH client", "k", []byte("another body"))
	w.must(err)
	_, err = s.UpdateClient(ctx, ann, made.ID, oauth.ClientEdit{Name: &name, Once: again})
	w.want(err, errs.Invalid)
}

func testRotateClients(w *world) {
	m, ann := w.manage()
	ctx, s := w.Context(), w.oauth()
	made, first, err := s.CreateClient(ctx, ann, oauth.ClientRequest{
		Name: "Reports", RedirectURIs: []string{"http://127.0.0.1/done"}, Method: oauth.SecretPost,
	})
	w.must(err)
	known := []string{"", first}
	works := func() (out []int) {
		w.Helper()
		c, h, err := s.Client(ctx, made.ID)
		w.must(err)
		for i, secret := range known {
			if slices.Contains(s.Secrets(c, h), identity.HashSecret(secret)) {
				out = append(out, i)
			}
		}
		return out
	}
	rotate := func(overlap time.Duration) oauth.Client {
		w.Helper()
		c, secret, err := s.RotateClient(ctx, ann, made.ID, overlap)
		w.must(err)
		if slices.Contains(known, secret) || len(secret) != len(first) {
			w.Errorf("secret = %q, want a new one of %d characters", secret, len(first))
		}
		known = append(known, secret)
		read, err := s.OrgClient(ctx, ann, made.ID)
		w.must(err)
		want := made
		want.CreatedAt = want.CreatedAt.Truncate(time.Microsecond)
		want.OldSecretExpires, want.Version = read.OldSecretExpires, int64(len(known)-1)
		if diff := cmp.Diff(c, read) + cmp.Diff(want, read); diff != "" {
			w.Errorf("diff of the stored client (-want +got):\n%s", diff)
		}
		return c
	}
	expect := func(when string, want ...int) {
		w.Helper()
		if got := works(); !slices.Equal(got, want) {
			w.Errorf("%s: %v work, want %v", when, got, want)
		}
	}
	expect("before", 1)
	start := w.now()
	c := rotate(time.Hour)
	if c.OldSecretExpires.Before(start.Add(time.Hour)) || c.OldSecretExpires.After(w.now().Add(time.Hour)) {
		w.Errorf("old secret expires at %s, want in an hour", c.OldSecretExpires)
	}
	expect("during the overlap", 1, 2)
	w.advance(time.Hour)
	expect("after it", 2)
	rotate(identity.MaxOverlap)
	rotate(time.Minute)
	expect("a second rotation ends the oldest", 3, 4)
	if c := rotate(0); !c.OldSecretExpires.IsZero() {
		w.Errorf("old secret expires at %s, want no time", c.OldSecretExpires)
	}
	expect("without an overlap", 5)
	if c, _, err := s.Client(ctx, made.ID); err != nil || c.OldSecret != (identity.Hash{}) {
		w.Errorf("old secret after its end = %v, %v, want none", c.OldSecret, err)
	}

	for _, overlap := range []time.Duration{-1, identity.MaxOverlap + 1} {
		_, _, err = s.RotateClient(ctx, ann, made.ID, overlap)
		w.want(err, errs.Invalid)
	}
	public, _, err := s.CreateClient(ctx, ann, oauth.ClientRequest{
		Name: "Desk", RedirectURIs: []string{"http://127.0.0.1/done"},
	})
	w.must(err)
	_, _, err = s.RotateClient(ctx, ann, public.ID, 0)
	w.want(err, errs.Conflict)
	own, _, err := s.Register(ctx, oauth.Registration{
		Name: "App", RedirectURIs: []string{"https://app.example/done"}, Method: oauth.SecretBasic,
	})
	w.must(err)
	for _, id := range []string{own.ID, oauth.CommandLine.ID, "client-none"} {
		_, _, err = s.RotateClient(ctx, ann, id, 0)
		w.want(err, errs.NotFound)
	}
	_, _, err = s.RotateClient(ctx, w.access("other", "user:ann"), made.ID, 0)
	w.want(err, errs.NotFound)
	_, _, err = s.RotateClient(ctx, w.access("acme", "user:ann", memberScopes...), made.ID, 0)
	w.want(err, errs.Forbidden)
	expect("after refusals", 5)

	list, _ := w.log(m, ann, identity.AuditFilter{Action: oauth.ClientRotate})
	if len(list) != 4 || list[0].Detail != "the old secret ended at once" ||
		!strings.HasPrefix(list[3].Detail, "the old secret works until 2026-01-02T04:04:05Z") {
		w.Errorf("log = %+v, want 4 rotations with the end of the old secret", list)
	}
	for _, e := range list {
		for _, secret := range known[1:] {
			if strings.Contains(e.Detail, secret) || e.Actor != "user:ann" || e.Target != made.ID {
				w.Errorf("log entry = %+v, want one of user:ann about %s without the secret", e, made.ID)
			}
		}
	}

	// Concurrent rotations run one after the other; the last two secrets stay valid.
	var secrets [20]string
	race(w, len(secrets), func(i int) (err error) {
		_, secrets[i], err = s.RotateClient(ctx, ann, made.ID, time.Hour)
		return err
	})
	known = append([]string{""}, secrets[:]...)
	if left := works(); len(left) != 2 {
		w.Errorf("valid secrets = %v, want 2", left)
	}
}

// testNarrowClients removes scopes from a client whose tokens are in use.
func testNarrowClients(w *world) {
	_, ann := w.manage()
	ctx, s := w.Context(), w.oauth()
	auth := identity.NewAuthenticator(w.store.Identity(), w.now)
	auth.AcceptTokens(s)
	made, _, err := s.CreateClient(ctx, ann, oauth.ClientRequest{
		Name: "Reports", RedirectURIs: []string{"http://127.0.0.1/done"},
		Scopes: []string{"svc:tasks:read", "svc:a2a:write", "svc:admin:admin"},
	})
	w.must(err)
	other, _, err := s.CreateClient(ctx, ann, oauth.ClientRequest{
		Name: "Desk", RedirectURIs: []string{"http://127.0.0.1/done"},
	})
	w.must(err)
	grant := func(client, code string, scopes ...identity.Scope) oauth.Grant {
		w.Helper()
		now := w.now()
		g := oauth.Grant{
			ID: s.NewGrantID(), Principal: principal("user:ann"), ClientID: client, Scopes: scopes, CreatedAt: now,
			EndsAt: now.Add(time.Hour),
			Code:   identity.HashSecret(code), CodeExpires: now.Add(time.Minute), RedirectURI: "http://127.0.0.1:5/done",
		}
		w.must(s.Create(ctx, g))
		return g
	}
	issue := func(g oauth.Grant, scopes ...identity.Scope) string {
		w.Helper()
		text, now := identity.NewToken(), w.now()
		token := oauth.Token{GrantID: g.ID, Scopes: scopes, CreatedAt: now, ExpiresAt: now.Add(15 * time.Minute)}
		w.must(s.Issue(ctx, g, token, identity.HashSecret(text)))
		return text
	}
	g := grant(made.ID, "1", identity.TasksRead, identity.A2AWrite, identity.Admin)
	line := grant(oauth.CommandLine.ID, "2", identity.Admin)
	desk := grant(other.ID, "3", identity.TasksRead)
	tokens := map[string]string{
		"all": issue(g, g.Scopes...), "read": issue(g, identity.TasksRead), "agents": issue(g, identity.A2AWrite),
		"scout": issue(g, identity.A2AWrite, "agent:scout"),
		"line":  issue(line, identity.Admin), "desk": issue(desk, identity.TasksRead),
	}
	work := func() (out []string) {
		w.Helper()
		w.must(auth.Refresh(ctx))
		for name, text := range tokens {
			_, err := auth.Authenticate(ctx, text)
			if err == nil {
				out = append(out, name)
				continue
			}
			w.want(err, errs.Unauthenticated)
		}
		slices.Sort(out)
		return out
	}
	member, err := w.store.Identity().Member(ctx, g.Principal)
	w.must(err)
	for _, c := range []struct{ scopes, work, left string }{
		{
			"svc:tasks:read svc:a2a:write svc:admin:admin", "agents all desk line read scout",
			"svc:tasks:read svc:a2a:write svc:admin:admin",
		},
		{"svc:tasks:read svc:a2a:write", "agents desk line read scout", "svc:tasks:read svc:a2a:write"},
		{"svc:tasks:read svc:a2a:write agent:scout", "desk line read scout", "svc:tasks:read svc:a2a:write agent:scout"},
		{"svc:a2a:write agent:open", "desk line", "svc:a2a:write agent:open"},
		{"svc:tasks:write", "desk line", ""}, // never more than the user granted
		{"svc:tasks:read svc:tasks:write svc:a2a:write", "agents desk line read scout", "svc:tasks:read svc:a2a:write"},
	} {
		scopes := strings.Fields(c.scopes)
		_, err := s.UpdateClient(ctx, ann, made.ID, oauth.ClientEdit{Scopes: &scopes})
		w.must(err)
		if diff := cmp.Diff(strings.Fields(c.work), work()); diff != "" {
			w.Errorf("with %s: diff of the valid tokens (-want +got):\n%s", c.scopes, diff)
		}
		left, err := s.TokenScopes(ctx, g, member, nil)
		if c.left == "" {
			w.want(err, errs.Invalid)
		} else if err != nil || left.String() != c.left {
			w.Errorf("with %s: scopes of a refresh = %q, %v, want %q", c.scopes, left, err, c.left)
		}
		// The user's own page shows the remaining scopes.
		list, _, err := s.Programs(ctx, g.Principal)
		w.must(err)
		i := slices.IndexFunc(list, func(p oauth.Program) bool { return p.ID == g.ID })
		if i < 0 || list[i].Scopes.String() != c.left {
			w.Errorf("with %s: programs = %+v, want one with scopes %q", c.scopes, list, c.left)
		}
	}

	// A code that was sent to a removed redirect URI is refused.
	_, err = s.GrantByCode(ctx, g.Code)
	w.must(err)
	uris := []string{"http://127.0.0.1/elsewhere"}
	_, err = s.UpdateClient(ctx, ann, made.ID, oauth.ClientEdit{RedirectURIs: &uris})
	w.must(err)
	_, err = s.GrantByCode(ctx, g.Code)
	w.want(err, errs.NotFound)
	for _, code := range []string{"2", "3"} {
		_, err = s.GrantByCode(ctx, identity.HashSecret(code))
		w.must(err)
	}
}
