package rest

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

func sortStrings(less func(a, b string) bool) cmp.Option { return cmpopts.SortSlices(less) }

func refs(list MemberList) string {
	out := []string{}
	for _, m := range list.Members {
		out = append(out, m.Ref)
	}
	return strings.Join(out, " ")
}

func TestMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.operator.CreateMember(context.Background(),
		identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}, "", true); err != nil {
		t.Fatal(err)
	}
	ada := w.admin("acme", "user:ada")
	res := w.do(ada, "POST", members, `{"kind":"user","id":"bob","name":"Bob","admin":true}`).want(201)
	var bob, got Member
	res.into(&bob)
	if bob.Ref != "user:bob" || !bob.Admin || bob.Disabled || res.Header.Get("Location") != members+"/user:bob" {
		t.Errorf("got %+v %v, want Ref user:bob, Admin true, Disabled false, Location %v", bob, res.Header,
			members+"/user:bob")
	}
	w.do(ada, "POST", members, `{"kind":"service","id":"ci"}`).want(201)
	w.do(ada, "GET", members+"/user:bob", "").want(200).into(&got)
	if diff := cmp.Diff(bob, got); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
	bobs := w.member("acme", "user:bob")
	w.do(ada, "PATCH", members+"/user:bob", `{"name":"Bobby","disabled":true}`).want(200).into(&got)
	if !got.Disabled || got.Name != "Bobby" || !got.Admin {
		t.Errorf("got %+v, want Disabled true, Name Bobby, Admin true", got)
	}
	w.refresh()
	w.do(bobs, "GET", proposals, "").want(401)
	var list MemberList
	for query, want := range map[string]string{
		"":                             "agent:fixer service:ci user:ada user:bob",
		"?kind=user":                   "user:ada user:bob",
		"?state=disabled":              "user:bob",
		"?state=enabled&kind=all":      "agent:fixer service:ci user:ada",
		"?limit=2":                     "agent:fixer service:ci",
		"?limit=2&cursor=service:ci":   "user:ada user:bob",
		"?kind=user&cursor=service:ci": "user:ada user:bob",
	} {
		w.do(ada, "GET", members+query, "").want(200).into(&list)
		if refs(list) != want {
			t.Errorf("%s: got %s, want refs(list) %v", query, refs(list), want)
		}
	}
	w.do(ada, "PATCH", members+"/user:bob", `{"disabled":false}`).want(200)
	w.refresh()
	w.do(bobs, "GET", proposals, "").want(200)
	if diff := cmp.Diff([]string{
		"user:ada member.enable user:bob done", "user:ada member.disable user:bob done",
		"user:ada member.update user:bob done",
	}, w.audited(ada, "?limit=3"), cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Error(diff)
	}

	// An agent that is disabled under …/agents is disabled here.
	w.do(ada, "PATCH", "/api/v1/orgs/acme/agents/fixer", `{"disabled":true}`).want(200)
	w.do(ada, "GET", members+"/agent:fixer", "").want(200).into(&got)
	if !got.Disabled {
		t.Errorf("got %+v, want Disabled true", got)
	}
	if p := w.do(ada, "POST", keys, `{"principal":"agent:fixer","scopes":["agent:*"]}`).want(409).
		problem(); p.Code != "identity.principal_disabled" {
		t.Errorf("got %+v, want Code identity.principal_disabled", p)
	}
}

func TestMembersAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	if _, err := w.operator.CreateMember(ctx, identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}, "",
		true); err != nil {
		t.Fatal(err)
	}
	ada := w.admin("acme", "user:ada")
	w.member("acme", "service:ci")
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string // pointers, or the code
	}{
		{"POST", members, `{"kind":"agent","id":"x"}`, 422, "/kind"},
		{"POST", members, `{"kind":"robot","id":"X","name":""}`, 422, "/name /kind /id"},
		{"POST", members, `{}`, 422, "/kind /id"},
		{"POST", members, `{"kind":"service","id":"x","admin":true}`, 422, "/admin"},
		{"POST", members, `{"kind":"user","id":"x","disabled":true}`, 422, "/disabled"},
		{"POST", members, `{"kind":"user","id":"ada"}`, 409, "identity.principal_exists"},
		{"PATCH", members + "/user:ada", `{}`, 422, ""},
		{"PATCH", members + "/user:ada", `{"name":"","admin":1}`, 422, "/admin /name"},
		{"PATCH", members + "/service:ci", `{"admin":true}`, 422, "/admin"},
		{"PATCH", members + "/user:ada", `{"disabled":true}`, 409, "identity.not_oneself"},
		{"PATCH", members + "/user:ada", `{"admin":false}`, 409, "identity.last_admin"},
		{"PATCH", members + "/user:nobody", `{"name":"x"}`, 404, "resource.not_found"},
		{"PATCH", members + "/nobody", `{"name":"x"}`, 404, "resource.not_found"},
		{"GET", members + "/user:nobody", "", 404, "resource.not_found"},
		{"GET", members + "?kind=robot", "", 422, "query:kind"},
		{"GET", members + "?cursor=x", "", 422, "query:cursor"},
		{"POST", invites, `{"user":"Ada","name":"","expires_in_seconds":0}`, 422, "/name /user /expires_in_seconds"},
		{"POST", invites, `{"user":"x","expires_in_seconds":2592001}`, 422, "/expires_in_seconds"},
		{"POST", invites, `{"user":"x","expires_in_seconds":99999999999999}`, 422, "/expires_in_seconds"},
		{"POST", invites, `{"user":"ada"}`, 409, "identity.principal_exists"},
		{"DELETE", invites + "/inv-none", "", 404, "resource.not_found"},
		{"GET", invites + "?cursor=x", "", 422, "query:cursor"},
	} {
		p := w.do(ada, c.method, c.path, c.body).want(c.status).problem()
		got := p.Code
		if c.status == 422 {
			got = strings.Join(at(p), " ")
		}
		if got != c.want {
			t.Errorf("%s %s %s: %q, want %q", c.method, c.path, c.body, got, c.want)
		}
	}
	robot := w.key("acme", "agent:fixer", identity.Admin)
	for _, path := range []string{members + "/agent:fixer", "/api/v1/orgs/acme/agents/fixer"} {
		if p := w.do(robot, "PATCH", path, `{"disabled":true}`).want(409).problem(); p.Code != "identity.not_oneself" {
			t.Errorf("got %+v, want Code identity.not_oneself", p)
		}
	}
}

func TestInvitations(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "https://parley.example"} {
		var admin *identity.OrgAdmin
		w := newWorld(t, func(_ *httpx.Options, o *Options) { admin, o.PublicURL = o.OrgAdmin, base })
		ada, eve := w.admin("acme", "user:ada"), w.admin("globex", "user:eve")
		var made InvitationWithURL
		res := w.do(ada, "POST", invites, `{"user":"zoe","admin":true}`).want(201)
		res.into(&made)
		token, ok := strings.CutPrefix(made.URL, base+"/join/")
		if !ok || len(token) != 43 || made.State != "open" || res.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("got %+v, want ok true, len(token) 43, State open, Cache-Control no-store", made)
		}
		var list InvitationList
		page := w.do(ada, "GET", invites, "").want(200)
		page.into(&list)
		if len(list.Invitations) != 1 || list.Invitations[0] != made.Invitation {
			t.Errorf("got %+v, want len(Invitations) 1, list.Invitations[0] %v", list, made.Invitation)
		}
		w.do(eve, "DELETE", "/api/v1/orgs/globex/invitations/"+made.ID, "").want(404)
		if m, err := admin.Accept(context.Background(), token, ""); err != nil || m.Ref() != "user:zoe" || !m.Admin {
			t.Errorf("got %+v %v, want no error, Ref user:zoe, Admin true", m, err)
		}
		if p := w.do(ada, "DELETE", invites+"/"+made.ID, "").want(409).problem(); p.Code != "identity.invitation_accepted" {
			t.Errorf("got %+v, want Code identity.invitation_accepted", p)
		}
		var gone InvitationWithURL
		w.do(ada, "POST", invites, `{"user":"max","expires_in_seconds":60}`).want(201).into(&gone)
		for range 2 {
			w.do(ada, "DELETE", invites+"/"+gone.ID, "").want(200)
		}
		if _, err := admin.Accept(context.Background(), strings.TrimPrefix(gone.URL, base+"/join/"), ""); err == nil {
			t.Error("a revoked invitation was accepted")
		}
		for _, path := range []string{invites, log} {
			if body := w.do(ada, "GET", path, "").want(200).Body; strings.Contains(body, token) ||
				strings.Contains(body, "/join/") {
				t.Errorf("%s shows the token: %s", path, body)
			}
		}
	}
}
