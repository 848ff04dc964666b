package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

func testPrograms(w *world) {
	m, ann := w.manage()
	ctx, s := w.Context(), w.oauth()
	_, err := m.CreateMember(ctx, ann, identity.User, "bob", "", false)
	w.must(err)
	made, _, err := s.CreateClient(ctx, ann, oauth.ClientRequest{
		Name: "Reports", RedirectURIs: []string{"http://127.0.0.1/done"},
	})
	w.must(err)
	grant := func(p identity.Principal, client string, used bool) oauth.Grant {
		w.Helper()
		now := w.now().Truncate(time.Microsecond)
		g := oauth.Grant{
			ID: s.NewGrantID(), Principal: p, ClientID: client, Scopes: identity.Scopes{identity.TasksRead, "agent:scout"},
			Audience: "/mcp", CreatedAt: now, EndsAt: now.Add(oauth.DefaultRefresh),
			Code: identity.HashSecret(w.newID("code-")), CodeExpires: now.Add(time.Minute),
			RefreshExpires: now.Add(oauth.DefaultRefresh), Version: 1,
		}
		w.must(s.Create(ctx, g))
		if used {
			g.CodeUsedAt, g.Refresh = now, identity.HashSecret(g.ID)
			w.must(s.Use(ctx, g))
			g.Version++
		}
		return g
	}
	me, bob := principal("user:ann"), principal("user:bob")
	eve := identity.Principal{Org: "other", Kind: identity.User, ID: "ann"} // the same name in another org
	of := func(p identity.Principal) (ids []string) {
		w.Helper()
		list, more, err := s.Programs(ctx, p)
		w.must(err)
		if more {
			w.Error("more = true, want false")
		}
		for _, g := range list {
			ids = append(ids, g.ID+" "+g.Name)
		}
		return ids
	}
	org, line := grant(me, made.ID, true), grant(me, oauth.CommandLine.ID, true)
	bobs, eves := grant(bob, made.ID, true), grant(eve, oauth.CommandLine.ID, true)
	open := grant(me, made.ID, false)
	want := []string{open.ID + " Reports", line.ID + " Parley command line", org.ID + " Reports"}
	if diff := cmp.Diff(want, of(me)); diff != "" {
		w.Error(diff)
	}
	// Expired, unredeemed codes are omitted.
	w.advance(2 * time.Minute)
	list, _, err := s.Programs(ctx, me)
	w.must(err)
	if diff := cmp.Diff([]oauth.Program{
		{Grant: line, Name: "Parley command line", UsedAt: line.CreatedAt, ClientScopes: identity.Scopes{}},
		{Grant: org, Name: "Reports", UsedAt: org.CreatedAt, ClientScopes: oauth.Registrable},
	}, list); diff != "" {
		w.Error(diff)
	}
	// A refresh counts as a use.
	org.Refresh = identity.HashSecret("next")
	org.RefreshExpires = w.now().Truncate(time.Microsecond).Add(oauth.DefaultRefresh)
	w.must(s.Use(ctx, org))
	list, _, err = s.Programs(ctx, me)
	w.must(err)
	if at := list[1].UsedAt; !at.After(org.CreatedAt.Add(time.Minute)) {
		w.Errorf("last used at %s, want a minute after %s or later", at, org.CreatedAt)
	}

	// Users can end only their own grants, and only once.
	for _, id := range []string{bobs.ID, eves.ID, "grant-none", "", "key-1"} {
		w.want(s.EndProgram(ctx, me, id), errs.NotFound)
	}
	if n := w.race(func() error { return s.EndProgram(ctx, me, org.ID) }); n != 1 {
		w.Errorf("ended one grant %d times, want 1", n)
	}
	if diff := cmp.Diff([]string{line.ID + " Parley command line"}, of(me)); diff != "" {
		w.Error(diff)
	}
	if len(of(bob)) != 1 || len(of(eve)) != 1 {
		w.Errorf("grants of others = %d and %d, want 1 and 1", len(of(bob)), len(of(eve)))
	}
	entries, _ := w.log(m, ann, identity.AuditFilter{Action: oauth.GrantRevoke})
	if len(entries) != 1 || entries[0].Actor != "user:ann" || entries[0].Target != org.ID {
		w.Errorf("log = %+v, want one entry of user:ann about %s", entries, org.ID)
	}

	for range oauth.MaxPrograms {
		grant(me, made.ID, true)
	}
	if list, more, err := s.Programs(ctx, me); err != nil || !more || len(list) != oauth.MaxPrograms {
		w.Errorf("programs = %d, more = %t, %v, want %d and more", len(list), more, err, oauth.MaxPrograms)
	}
}
