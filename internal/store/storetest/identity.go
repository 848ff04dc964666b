package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

func testOrgsAndMembers(w *world) {
	ctx := w.Context()
	acme, err := w.operator.CreateOrg(ctx, "acme", "Acme Ltd")
	w.must(err)
	_, err = w.operator.CreateOrg(ctx, "acme", "")
	w.want(err, errs.Conflict)
	_, err = w.operator.CreateOrg(ctx, "Acme", "")
	w.want(err, errs.Invalid)
	orgs, err := w.operator.Orgs(ctx)
	w.must(err)
	if diff := cmp.Diff([]identity.Org{acme}, orgs); diff != "" {
		w.Error(diff)
	}

	ann, err := w.operator.CreateMember(ctx, identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}, "Ann", true)
	w.must(err)
	crm, err := w.operator.CreateMember(ctx, identity.Principal{Org: "acme", Kind: identity.Service, ID: "crm"}, "", false)
	w.must(err)
	_, err = w.operator.CreateMember(ctx, ann.Principal, "", false)
	w.want(err, errs.Conflict)
	_, err = w.operator.CreateMember(ctx, identity.Principal{Org: "nowhere", Kind: identity.User, ID: "ann"}, "", false)
	w.want(err, errs.NotFound)

	all, err := w.operator.Members(ctx, "acme", "")
	w.must(err)
	if diff := cmp.Diff([]identity.Member{crm, ann}, all); diff != "" {
		w.Error(diff)
	}
	users, err := w.operator.Members(ctx, "acme", identity.User)
	w.must(err)
	if diff := cmp.Diff([]identity.Member{ann}, users); diff != "" {
		w.Error(diff)
	}
	got, err := w.store.Identity().Member(ctx, ann.Principal)
	w.must(err)
	if diff := cmp.Diff(ann, got); diff != "" {
		w.Error(diff)
	}
	_, err = w.store.Identity().Member(ctx, identity.Principal{Org: "acme", Kind: identity.User, ID: "bob"})
	w.want(err, errs.NotFound)
}

func testAgents(w *world) {
	ctx := w.Context()
	_, err := w.operator.CreateOrg(ctx, "acme", "")
	w.must(err)
	_, err = w.operator.CreateOrg(ctx, "other", "")
	w.must(err)
	scout, err := w.agents.Create(ctx, agent.Agent{
		ID: "scout", Org: "acme", Name: "Scout", Description: "Looks around.", Skills: []string{"search", "C++"},
		Public: true,
	})
	w.must(err)
	_, err = w.agents.Create(ctx, agent.Agent{ID: "scout", Org: "acme", Name: "Scout"})
	w.want(err, errs.Conflict)
	_, err = w.agents.Create(ctx, agent.Agent{ID: "drone", Org: "nowhere", Name: "Drone"})
	w.want(err, errs.NotFound)
	list, err := w.agents.List(ctx, "acme")
	w.must(err)
	if diff := cmp.Diff([]agent.Agent{scout}, list); diff != "" {
		w.Error(diff)
	}
	if list, err := w.agents.List(ctx, "other"); err != nil || len(list) != 0 {
		w.Errorf("agents of the other org = %v, %v, want none", list, err)
	}
	testProfiles(w)
	_, err = w.store.Identity().Member(ctx, identity.Principal{Org: "acme", Kind: identity.Agent, ID: "scout"})
	w.must(err)
}

// testProfiles: the profile for cards is stored separately from what lists and calls read.
func testProfiles(w *world) {
	ctx := w.Context()
	rich := agent.Agent{ID: "rich", Org: "acme", Name: "Rich", Profile: agent.Profile{
		Version: "1.2.0", DocumentationURL: "https://example.com/docs", IconURL: "https://example.com/i.png",
		Provider: agent.Provider{Organization: "Acme", URL: "https://acme.example"},
	}}
	rich.Describe([]agent.Skill{
		{
			ID: "t", Name: "Translate", Description: "To and fro.", Tags: []string{"nlp", "de"},
			Examples:   []string{"Wie geht's?"},
			InputModes: []string{"text/plain"}, OutputModes: []string{"application/json"},
		},
		agent.PlainSkill("chat"),
	})
	created, err := w.agents.Create(ctx, rich)
	w.must(err)
	profile := func() agent.Profile {
		w.Helper()
		p, err := w.agents.Profile(ctx, &created)
		w.must(err)
		return p
	}
	if diff := cmp.Diff(rich.Profile, profile()); diff != "" {
		w.Error(diff)
	}
	own, err := w.agents.Own(ctx, "acme", "rich")
	w.must(err)
	if diff := cmp.Diff([]string{"nlp", "de", "chat"}, own.Skills) + cmp.Diff(agent.Profile{}, own.Profile); diff != "" {
		w.Error(diff)
	}
	_, err = w.agents.Profile(ctx, &agent.Agent{Org: "other", ID: "rich"})
	w.want(err, errs.NotFound)
	name, version, none := "Richer", "1.3.0", ""
	changed, err := w.agents.Update(ctx, "acme", "rich", agent.Edit{
		Name: &name, Version: &version, IconURL: &none, Provider: &agent.Provider{},
	})
	w.must(err)
	want := rich.Profile
	want.Version, want.IconURL, want.Provider = version, "", agent.Provider{}
	if diff := cmp.Diff(want, profile()) + cmp.Diff(want, changed.Profile); diff != "" {
		w.Error(diff)
	}
	_, err = w.agents.Update(ctx, "acme", "rich", agent.Edit{
		Skills: &[]agent.Skill{agent.PlainSkill("chat")}, Version: &none, DocumentationURL: &none,
	})
	w.must(err)
	if diff := cmp.Diff(agent.Profile{}, profile()); diff != "" {
		w.Error(diff)
	}
}

func testKeys(w *world) {
	ctx := w.Context()
	_, err := w.operator.CreateOrg(ctx, "acme", "")
	w.must(err)
	ann := identity.Principal{Org: "acme", Kind: identity.User, ID: "ann"}
	request := identity.KeyRequest{
		Principal: ann, Name: "laptop", Scopes: []string{"svc:tasks:read", "agent:*"}, CreatedBy: "cli",
	}
	_, _, err = w.operator.CreateKey(ctx, request)
	w.want(err, errs.NotFound)
	_, err = w.operator.CreateMember(ctx, ann, "", false)
	w.must(err)
	request.ExpiresAt = w.clock.Add(time.Hour)
	key, secret, err := w.operator.CreateKey(ctx, request)
	w.must(err)

	got, err := w.store.Identity().KeyByHash(ctx, identity.HashSecret(secret))
	w.must(err)
	if diff := cmp.Diff(key, got); diff != "" {
		w.Error(diff)
	}
	_, err = w.store.Identity().KeyByHash(ctx, identity.HashSecret(identity.NewSecret()))
	w.want(err, errs.NotFound)

	auth := identity.NewAuthenticator(w.store.Identity(), w.now)
	w.must(auth.Refresh(ctx))
	caller, err := auth.Authenticate(ctx, secret)
	w.must(err)
	if caller.Principal != ann || caller.KeyID != key.ID || !caller.Scopes.Has("agent:*") {
		w.Errorf("caller = %+v, want %s with key %s and agent:*", caller, ann.Ref(), key.ID)
	}
	w.must(auth.Flush(ctx))
	keys, err := w.operator.Keys(ctx, "acme")
	w.must(err)
	if len(keys) != 1 || keys[0].LastUsedAt.IsZero() {
		w.Errorf("keys are %+v, want one with its last use", keys)
	}

	before, err := w.store.Identity().Epoch(ctx)
	w.must(err)
	w.want(w.operator.RevokeKey(ctx, "other", key.ID), errs.NotFound)
	w.must(w.operator.RevokeKey(ctx, "acme", key.ID))
	if after, err := w.store.Identity().Epoch(ctx); err != nil || after <= before {
		w.Errorf("epoch = %d, %v, want more than %d after a revocation", after, err, before)
	}
	if _, err := auth.Authenticate(ctx, secret); err != nil {
		w.Errorf("cached key before the refresh = %v, want no error", err)
	}
	w.must(auth.Refresh(ctx))
	_, err = auth.Authenticate(ctx, secret)
	w.want(err, errs.Unauthenticated)

	request.ExpiresAt = w.now().Add(time.Minute)
	_, brief, err := w.operator.CreateKey(ctx, request)
	w.must(err)
	_, err = auth.Authenticate(ctx, brief)
	w.must(err)
	w.advance(time.Hour)
	_, err = auth.Authenticate(ctx, brief)
	w.want(err, errs.Unauthenticated)
}

func testBootstrap(w *world) {
	ctx := w.Context()
	firsts := make([]*identity.First, 8)
	race(w, len(firsts), func(i int) error {
		first, err := w.operator.Bootstrap(ctx)
		firsts[i] = first
		return err
	})
	var made []*identity.First
	for _, f := range firsts {
		if f != nil {
			made = append(made, f)
		}
	}
	if len(made) != 1 {
		w.Fatalf("%d of %d made the first org, want 1", len(made), len(firsts))
	}
	key, err := w.store.Identity().KeyByHash(ctx, identity.HashSecret(made[0].Secret))
	w.must(err)
	if key.Principal.Org != "main" || key.Principal.Ref() != "user:admin" {
		w.Errorf("first key belongs to %+v, want user:admin of main", key.Principal)
	}
}
