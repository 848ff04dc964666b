package oauth

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/errs/errstest"
	"github.com/parley-dev/parley/internal/identity"
)

var ruleNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// Each thing that ends a token, alone, of each kind of principal.
func TestWhatEndsAToken(t *testing.T) {
	t.Parallel()
	past := ruleNow.Add(-time.Second)
	keyed := []identity.Kind{identity.Agent, identity.Service}
	for _, c := range []struct {
		name  string
		kinds []identity.Kind // for which it ends the token
		edit  func(*TokenState)
	}{
		{"nothing", nil, func(*TokenState) {}},
		{"the token was revoked", identity.Kinds, func(s *TokenState) { s.RevokedAt = past }},
		{"the grant was revoked", identity.Kinds, func(s *TokenState) { s.Grant.RevokedAt = past }},
		{"the token expired", identity.Kinds, func(s *TokenState) { s.ExpiresAt = ruleNow }},
		{"the principal was disabled", identity.Kinds, func(s *TokenState) { s.Member.Disabled = true }},
		{"it carries nothing", identity.Kinds, func(s *TokenState) { s.Scopes = nil }},
		{"it carries the admin's right", identity.Kinds, func(s *TokenState) { s.Scopes = append(s.Scopes, identity.Admin) }},
		{"it carries the admin's right, and the user is one", keyed, func(s *TokenState) {
			s.Scopes, s.Member.Admin = append(s.Scopes, identity.Admin), true
			s.ClientScopes = append(s.ClientScopes, identity.Admin)
		}},
		{
			"the client was narrowed",
			[]identity.Kind{identity.User},
			func(s *TokenState) { s.ClientScopes = identity.Scopes{identity.TasksWrite} },
		},
		{"the client is not kept", nil, func(s *TokenState) { s.ClientScopes = nil }},
		{"the key is gone", keyed, func(s *TokenState) { s.Key = nil }},
		{"the key was revoked", keyed, func(s *TokenState) { s.Key.RevokedAt = past }},
		{"the key expired", keyed, func(s *TokenState) { s.Key.ExpiresAt = ruleNow }},
		{"the key has less", keyed, func(s *TokenState) { s.Key.Scopes = identity.Scopes{identity.TasksWrite} }},
		{"the key is restricted to an agent", keyed, func(s *TokenState) { s.Key.Scopes = append(s.Key.Scopes, "agent:a") }},
	} {
		for _, kind := range identity.Kinds {
			p := identity.Principal{Org: "acme", Kind: kind, ID: "x"}
			scopes := identity.Scopes{identity.TasksRead, identity.A2AWrite}
			st := TokenState{
				Token: Token{
					Scopes:    slices.Clone(scopes),
					ExpiresAt: ruleNow.Add(1),
				}, Grant: Grant{Principal: p}, Member: identity.Member{Principal: p},
				Key: &identity.Key{Scopes: slices.Clone(scopes)}, ClientScopes: slices.Clone(scopes),
			}
			c.edit(&st)
			s := New(Options{Now: func() time.Time { return ruleNow }})
			if got, want := s.Works(&st), !slices.Contains(c.kinds, kind); got != want {
				t.Errorf("%s, of a %s: works: got %v, want %v", c.name, kind, got, want)
			}
		}
	}
}

// Every set of fields that one edit of a client can have.
func TestEverySetOfEditedFields(t *testing.T) {
	t.Parallel()
	old := Client{
		ID: "client-1", Name: "App", RedirectURIs: []string{"https://a.example/x"},
		Scopes: identity.Scopes{identity.TasksRead}, Version: 7,
	}
	scopes := identity.Scopes{identity.TasksWrite}
	edits := []struct {
		ask  func(*ClientEdit)
		done func(*Client)
		says string
	}{
		{func(e *ClientEdit) { e.Name = ptr(" Tool ") }, func(c *Client) { c.Name = "Tool" }, `name "Tool" instead of "App"`},
		{
			func(e *ClientEdit) { e.Scopes = &[]string{"svc:tasks:write"} }, func(c *Client) { c.Scopes = scopes },
			"scopes svc:tasks:write instead of svc:tasks:read",
		},
		{
			func(e *ClientEdit) { e.RedirectURIs = &[]string{"https://a.example/y"} },
			func(c *Client) { c.RedirectURIs = []string{"https://a.example/y"} },
			"redirect_uris https://a.example/y instead of https://a.example/x",
		},
		{func(e *ClientEdit) { e.IfVersion = ptr(int64(7)) }, func(*Client) {}, ""},
	}
	for set := range 1 << len(edits) {
		var e ClientEdit
		want, says := old, []string(nil)
		for i, f := range edits {
			if set&(1<<i) != 0 {
				f.ask(&e)
				f.done(&want)
				if f.says != "" {
					says = append(says, f.says)
				}
			}
		}
		got, changes, err := decideClient(old, e, scopes)
		if diff := cmp.Diff(want, got) + cmp.Diff(says, changes); diff != "" || err != nil {
			t.Errorf("set %04b: %v (-want +got)\n%s", set, err, diff)
		}
		if _, changes, err := decideClient(got, e, scopes); len(changes) > 0 || err != nil {
			t.Errorf("set %04b again: got %q, %v; want no change", set, changes, err)
		}
	}
	for _, version := range []int64{0, 6, 8} {
		if _, _, err := decideClient(old, ClientEdit{Name: ptr("x"), IfVersion: &version},
			nil); errs.KindOf(err) != errs.Stale {
			t.Errorf("version %d of 7: got %v, want stale", version, err)
		}
	}
}

// A new client and an edit are held to the same rules.
func TestEveryFieldOfAClient(t *testing.T) {
	t.Parallel()
	ok := []string{"https://a.example/x"}
	for _, c := range []struct {
		name string
		r    ClientRequest
		want []string
	}{
		{"as little as can be", ClientRequest{Name: "App", RedirectURIs: ok}, nil},
		{"every method", ClientRequest{Name: "App", RedirectURIs: ok, Method: SecretPost}, nil},
		{"an unknown method", ClientRequest{Name: "App", RedirectURIs: ok, Method: "private_key_jwt"}, []string{"method"}},
		{"no name", ClientRequest{RedirectURIs: ok}, []string{"name"}},
		{"a blank name", ClientRequest{Name: " ", RedirectURIs: ok}, []string{"name"}},
		{"a deceptive name", ClientRequest{Name: "a\u202eb", RedirectURIs: ok}, []string{"name"}},
		{"no address", ClientRequest{Name: "App"}, []string{"redirect_uris"}},
		{"as many addresses as can be", ClientRequest{Name: "App", RedirectURIs: slices.Repeat(ok, MaxRedirects)}, nil},
		{
			"too many addresses",
			ClientRequest{Name: "App", RedirectURIs: slices.Repeat(ok, MaxRedirects+1)},
			[]string{"redirect_uris"},
		},
		{
			"a bad address",
			ClientRequest{Name: "App", RedirectURIs: []string{ok[0], "http://a.example"}},
			[]string{"redirect_uris[1]"},
		},
		{
			"the admin's right",
			ClientRequest{Name: "App", RedirectURIs: ok, Scopes: []string{"svc:admin:admin", "agent:a"}},
			nil,
		},
		{
			"an unknown scope",
			ClientRequest{Name: "App", RedirectURIs: ok, Scopes: []string{"svc:tasks:read", "openid"}},
			[]string{"scopes[1]"},
		},
		{
			"the workers' right",
			ClientRequest{Name: "App", RedirectURIs: ok, Scopes: []string{"svc:a2a:serve"}},
			[]string{"scopes[0]"},
		},
		{
			"too many scopes",
			ClientRequest{Name: "App", RedirectURIs: ok, Scopes: slices.Repeat([]string{"agent:a"}, identity.MaxScopes+1)},
			[]string{"scopes"},
		},
		{
			"all wrong",
			ClientRequest{Method: "x", Scopes: []string{"x"}},
			[]string{"name", "redirect_uris", "scopes[0]", "method"},
		},
	} {
		if diff := cmp.Diff(c.want, errstest.Fields(c.r.Validate())); diff != "" {
			t.Errorf("%s: broken fields (-want +got)\n%s", c.name, diff)
		}
		e := ClientEdit{Name: &c.r.Name, RedirectURIs: &c.r.RedirectURIs}
		if c.r.Scopes != nil {
			e.Scopes = &c.r.Scopes
		}
		want := slices.DeleteFunc(slices.Clone(c.want), func(s string) bool { return s == "method" }) // which no edit changes
		if diff := cmp.Diff(want, errstest.Fields(e.Validate())); len(want)+len(errstest.Fields(e.Validate())) > 0 && diff != "" {
			t.Errorf("%s, as an edit: broken fields (-want +got)\n%s", c.name, diff)
		}
	}
	if err := (&ClientEdit{}).Validate(); errs.KindOf(err) != errs.Invalid {
		t.Errorf("an edit of nothing: got %v, want a refusal", err)
	}
	if diff := cmp.Diff([]string{"scopes"}, errstest.Fields((&ClientEdit{Scopes: &[]string{}}).Validate())); diff != "" {
		t.Errorf("an edit to no scopes: broken fields (-want +got)\n%s", diff)
	}
}

func TestIDsOfClients(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"client-a": true, "client-0z": true, "client-" + strings.Repeat("a", 57): true, "client-" + strings.Repeat("a",
			58): false,
		"client-": false, "client-A": false, "client-a-b": false, "key-a": false, "": false, CommandLine.ID: false,
	} {
		if got := ValidClientID(id); got != want {
			t.Errorf("%q: got %v, want %v", id, got, want)
		}
	}
}

// Every set of rights × every state of a person.
func TestWhatAPersonMayStillGive(t *testing.T) {
	t.Parallel()
	for set := range 1 << len(identity.AllScopes) {
		var scopes identity.Scopes
		for i, s := range identity.AllScopes {
			if set&(1<<i) != 0 {
				scopes = append(scopes, s)
			}
		}
		for state := range 4 {
			m := identity.Member{
				Principal: identity.Principal{Kind: identity.User}, Admin: state&1 != 0, Disabled: state&2 != 0,
			}
			var want identity.Scopes
			for _, s := range scopes {
				if !m.Disabled && s != identity.A2AServe && (s != identity.Admin || m.Admin) {
					want = append(want, s)
				}
			}
			if len(want) > 0 {
				want = append(want, "agent:a")
			}
			got := Within(m, append(slices.Clone(scopes), "agent:a"))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s of a user, admin %v, disabled %v (-want +got)\n%s", scopes, m.Admin, m.Disabled, diff)
			}
		}
	}
}

func TestWhatAKeyGetsForItself(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ has, wants, gets string }{ // gets "-": a refusal
		{"svc:tasks:read svc:a2a:write agent:a", "", "svc:tasks:read svc:a2a:write agent:a"},
		{"svc:tasks:read svc:a2a:write", "svc:tasks:read", "svc:tasks:read"},
		{"svc:tasks:read", "svc:tasks:write", "-"},
		{"svc:tasks:read", "svc:tasks:read svc:tasks:write", "-"},
		{"svc:a2a:write agent:a", "svc:a2a:write", "svc:a2a:write agent:a"},
		{"svc:a2a:write agent:a", "svc:a2a:write agent:b", "-"},
		{"svc:a2a:write agent:a agent:b", "svc:a2a:write agent:b", "svc:a2a:write agent:b"},
		{"svc:a2a:write", "agent:a", "-"},
	} {
		got, err := SelfGrant(identity.Key{Scopes: identity.SplitScopes(c.has)}, identity.SplitScopes(c.wants))
		if (err != nil) != (c.gets == "-") || err == nil && got.String() != c.gets {
			t.Errorf("%q of %q: got %q, %v; want %q", c.wants, c.has, got, err, c.gets)
		}
	}
}

// The secret before a rotation works until its overlap ends.
func TestWhichSecretsWork(t *testing.T) {
	t.Parallel()
	current, old := identity.HashSecret("new"), identity.HashSecret("old")
	for expires, want := range map[time.Time][]identity.Hash{
		{}: {current}, ruleNow: {current}, ruleNow.Add(-1): {current}, ruleNow.Add(1): {current, old},
	} {
		s := New(Options{Now: func() time.Time { return ruleNow }})
		if got := s.Secrets(Client{OldSecret: old, OldSecretExpires: expires}, current); !slices.Equal(got, want) {
			t.Errorf("the old one ends at %v: got %s, want %s", expires, fmt.Sprintf("%x", got), fmt.Sprintf("%x", want))
		}
	}
}
