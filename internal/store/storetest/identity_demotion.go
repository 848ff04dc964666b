package storetest

import (
	"slices"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// demotions are the ways in which a user stops being an admin: by another admin, by the
// operator, and by the identity provider at the next login.
var demotions = map[string]func(w *world, m orgAdmin, p identity.Principal) error{
	"admin": func(w *world, m orgAdmin, p identity.Principal) error {
		no := false
		_, err := m.UpdateMember(w.Context(), w.access("acme", "user:ann"), p, identity.MemberEdit{Admin: &no})
		return err
	},
	"operator": func(w *world, _ orgAdmin, p identity.Principal) error {
		_, err := w.operator.SetAdmin(w.Context(), p, false)
		return err
	},
	"provider": func(w *world, _ orgAdmin, p identity.Principal) error {
		who, no := arrival("s-"+p.ID, p.ID), false
		_, err := w.people().Arrive(w.Context(), who, account.Proof{User: p.ID}) // connects the two accounts
		w.must(err)
		who.Admin = &no
		_, err = w.people().Arrive(w.Context(), who, account.Proof{})
		return err
	},
}

func testDemotion(w *world) {
	m, ann := w.manage()
	ctx := w.Context()
	auth := identity.NewAuthenticator(w.store.Identity(), w.now)
	works := func(secret string) bool {
		w.must(auth.Refresh(ctx))
		_, err := auth.Authenticate(ctx, secret)
		return err == nil
	}
	for name, demote := range demotions {
		p := principal("user:" + name)
		_, err := w.operator.CreateMember(ctx, p, "", true)
		w.must(err)
		her := w.access("acme", p.Ref())
		key := func(owner string, scopes ...string) (identity.Key, string) {
			w.Helper()
			k, secret, err := m.CreateKey(ctx, her, identity.KeyRequest{Principal: principal(owner), Scopes: scopes})
			w.must(err)
			return k, secret
		}
		first, adminSecret := key(p.Ref(), "svc:admin:admin", "svc:tasks:read")
		second, secondSecret := key(p.Ref(), "svc:admin:admin")
		_, plainSecret := key(p.Ref(), "svc:tasks:read")
		_, agentSecret := key("agent:scout", "svc:admin:admin")
		grant := w.grantTo(p, identity.TasksRead, identity.Admin, "agent:scout")
		only := w.grantTo(p, identity.Admin)
		if !works(adminSecret) || !works(secondSecret) {
			w.Fatalf("%s: key works = false, want true", name)
		}

		w.must(demote(w, m, p))
		if works(adminSecret) || works(secondSecret) {
			w.Errorf("%s: admin key of a demoted admin works = true, want false", name)
		}
		if !works(plainSecret) || !works(agentSecret) {
			w.Errorf("%s: key without svc:admin:admin works = false, want true", name)
		}
		entries, _ := w.log(m, ann, identity.AuditFilter{Action: identity.KeyRevoke})
		for _, k := range []identity.Key{first, second} {
			if n := len(slices.DeleteFunc(slices.Clone(entries), func(e identity.AuditEntry) bool {
				return e.Target != k.ID
			})); n != 1 {
				w.Errorf("%s: %d entries of the revocation of %s, want 1", name, n, k.ID)
			}
		}
		g, err := w.store.OAuth().Grant(ctx, grant)
		w.must(err)
		if !g.RevokedAt.IsZero() || g.Scopes.String() != "svc:tasks:read agent:scout" {
			w.Errorf("%s: grant = %q, revoked %v, want svc:tasks:read agent:scout, not revoked", name, g.Scopes, g.RevokedAt)
		}
		if g, err = w.store.OAuth().Grant(ctx, only); err != nil || g.RevokedAt.IsZero() {
			w.Errorf("%s: grant of svc:admin:admin alone = %+v, %v, want it revoked", name, g, err)
		}

		// A demoted user gets no key with the admin scope, for any principal and in any way.
		denied := func(err error) {
			w.Helper()
			if errs.As(err).Code != "identity.not_an_admin" {
				w.Errorf("%s: %v, want identity.not_an_admin", name, err)
			}
		}
		for _, owner := range []string{p.Ref(), "agent:scout", "service:crm"} {
			_, _, err = m.CreateKey(ctx, her, identity.KeyRequest{
				Principal: principal(owner), Scopes: []string{"svc:admin:admin"},
			})
			denied(err)
		}
		made, _, err := w.operator.CreateKey(ctx, identity.KeyRequest{Principal: p, Scopes: []string{"svc:admin:admin"}})
		w.must(err) // the operator may
		_, _, err = m.RotateKey(ctx, her, made.ID, 0)
		denied(err)
		_, _, err = m.CreateKey(ctx, her, identity.KeyRequest{Principal: p, Scopes: []string{"svc:tasks:read"}})
		w.must(err)

		// Making the user an admin again does not restore the old rights.
		_, err = w.operator.SetAdmin(ctx, p, true)
		w.must(err)
		if works(adminSecret) || works(secondSecret) {
			w.Errorf("%s: revoked key works after the promotion = true, want false", name)
		}
	}
}

// testRacingDemotion: a key that is created or rotated during the demotion of its user is
// revoked with the others or refused; it never survives.
func testRacingDemotion(w *world) {
	m, _ := w.manage()
	ctx := w.Context()
	p := principal("user:eve")
	_, err := w.operator.CreateMember(ctx, p, "", true)
	w.must(err)
	her := w.access("acme", p.Ref())
	request := identity.KeyRequest{Principal: p, Scopes: []string{"svc:admin:admin"}}
	for round := range 30 {
		_, err := w.operator.SetAdmin(ctx, p, true)
		w.must(err)
		var old [5]identity.Key
		for i := range old {
			old[i], _, err = m.CreateKey(ctx, her, request)
			w.must(err)
		}
		var wg sync.WaitGroup
		for i := range old {
			wg.Go(func() {
				if round%2 == 0 {
					_, _, _ = m.RotateKey(ctx, her, old[i].ID, time.Hour)
				} else {
					_, _, _ = m.CreateKey(ctx, her, request)
				}
			})
		}
		wg.Go(func() {
			if _, err := w.operator.SetAdmin(ctx, p, false); err != nil {
				w.Error(err)
			}
		})
		wg.Wait()
		keys, err := w.store.Identity().Keys(ctx, "acme", identity.KeyFilter{
			Principal: p, State: identity.KeyLive, Now: w.now(),
		})
		w.must(err)
		if len(keys) > 0 {
			w.Fatalf("keys with svc:admin:admin after the demotion = %d, such as %s, want 0", len(keys), keys[0].ID)
		}
	}
}

// grantTo stores a grant of a user to a program, and returns its id.
func (w *world) grantTo(p identity.Principal, scopes ...identity.Scope) string {
	w.Helper()
	id := w.newID("grant-")
	w.must(w.store.OAuth().CreateGrant(w.Context(), oauth.Grant{
		ID: id, Principal: p, ClientID: oauth.CommandLine.ID, Scopes: scopes, CreatedAt: w.now(),
		EndsAt: w.now().Add(time.Hour), Version: 1,
	}))
	return id
}

// testRevokedAtOnce: rights that this process revokes are refused without a poll.
func testRevokedAtOnce(w *world) {
	m, ann := w.manage()
	ctx, s := w.Context(), w.oauth()
	auth := identity.NewAuthenticator(w.store.Identity(), w.now)
	auth.AcceptTokens(s)
	var told []string
	w.store.OnRevoke(func(org string) {
		told = append(told, org)
		auth.Revoked(org)
	})
	works := func(secret string) bool {
		w.Helper()
		_, err := auth.Authenticate(ctx, secret)
		return err == nil
	}
	yes, no := true, false
	_, other, err := w.operator.CreateKey(ctx, identity.KeyRequest{
		Principal: identity.Principal{Org: "other", Kind: identity.User, ID: "ann"}, Scopes: []string{"svc:tasks:read"},
	})
	w.must(err)
	for name, revoke := range map[string]func(k identity.Key) error{
		"revoke": func(k identity.Key) error { _, err := m.RevokeKey(ctx, ann, k.ID); return err },
		"rotate": func(k identity.Key) error { _, _, err := m.RotateKey(ctx, ann, k.ID, 0); return err },
		"disable": func(k identity.Key) error {
			_, err := m.UpdateMember(ctx, ann, k.Principal, identity.MemberEdit{Disabled: &yes})
			return err
		},
	} {
		k, secret, err := m.CreateKey(ctx, ann, identity.KeyRequest{
			Principal: principal("service:crm"), Scopes: []string{"svc:tasks:read"},
		})
		w.must(err)
		if !works(secret) || !works(other) {
			w.Fatalf("%s: key works = false, want true", name)
		}
		told = nil
		w.must(revoke(k))
		if works(secret) {
			w.Errorf("%s: key works right after the call = true, want false", name)
		}
		if !slices.Equal(told, []string{"acme"}) || !works(other) {
			w.Errorf("%s: revoked in %q, want acme, and the other key to work", name, told)
		}
		_, err = m.UpdateMember(ctx, ann, k.Principal, identity.MemberEdit{Disabled: &no})
		w.must(err)
	}

	token := func() (oauth.Grant, string, identity.Hash) {
		g := w.allowed(s, w.newID("code-"), identity.TasksRead)
		secret := identity.NewToken()
		h := identity.HashSecret(secret)
		token := oauth.Token{
			GrantID: g.ID, Scopes: g.Scopes, CreatedAt: w.now(), ExpiresAt: w.now().Add(time.Hour),
		}
		w.must(s.Issue(ctx, g, token, h))
		if !works(secret) {
			w.Fatal("token works = false, want true")
		}
		return g, secret, h
	}
	_, secret, h := token()
	st, err := s.Token(ctx, h)
	w.must(err)
	w.must(s.RevokeToken(ctx, st, h))
	if works(secret) {
		w.Error("revoked token works right after the call = true, want false")
	}
	g, secret, _ := token()
	w.must(s.Revoke(ctx, g))
	if works(secret) {
		w.Error("token of a revoked grant works right after the call = true, want false")
	}
	_, secret, _ = token()
	w.must(w.people().LogoutEverywhere(ctx, principal("user:ann")))
	if works(secret) {
		w.Error("token works after signing out everywhere = true, want false")
	}
}
