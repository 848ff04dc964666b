package rest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/identity"
)

// endpoint is an operation; {org}, {prop} and the like are placeholders.
type endpoint struct {
	method, path, body string
	scopes             []identity.Scope // one of them suffices
	members            bool
}

var endpoints = []endpoint{
	{"GET", "/api/v1/orgs/{org}/proposals", "", []identity.Scope{identity.TasksRead}, false},
	{"POST", "/api/v1/orgs/{org}/proposals", submission, []identity.Scope{identity.TasksWrite}, true},
	{"GET", "/api/v1/orgs/{org}/proposals/{prop}", "", []identity.Scope{identity.TasksRead}, false},
	{
		"PATCH", "/api/v1/orgs/{org}/proposals/{prop}", `{"title":"x"}`,
		[]identity.Scope{identity.Admin, identity.TasksWrite},
		false,
	},
	{"PATCH", "/api/v1/orgs/{org}/proposals/{prop}", `{"status":"approved"}`, []identity.Scope{identity.Admin}, false},
	{"POST", "/api/v1/orgs/{org}/proposals/{prop}/vote", `{"vote":"for"}`, []identity.Scope{identity.TasksWrite}, true},
	{"DELETE", "/api/v1/orgs/{org}/proposals/{prop}/vote", "", []identity.Scope{identity.TasksWrite}, true},
	{"GET", "/api/v1/orgs/{org}/proposals/{prop}/votes", "", []identity.Scope{identity.TasksRead}, false},
	{"GET", "/api/v1/orgs/{org}/proposals/{prop}/history", "", []identity.Scope{identity.TasksRead}, false},
	{"GET", "/api/v1/orgs/{org}/proposals/{prop}/similar", "", []identity.Scope{identity.TasksRead}, false},
	{"GET", "/api/v1/orgs/{org}/proposals/counts", "", []identity.Scope{identity.TasksRead}, false},
	{"GET", "/api/v1/orgs/{org}/proposals/groups", "", []identity.Scope{identity.TasksRead}, false},
	{"GET", "/api/v1/orgs/{org}/proposals/similar", "", []identity.Scope{identity.TasksRead}, false},
	{"POST", "/api/v1/orgs/{org}/proposals/decisions", `{"status":"approved","items":[]}`, onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/notes", "", onlyAdmins, false},
	{"POST", "/api/v1/orgs/{org}/notes", `{"title":"x","text":"x"}`, onlyAdmins, false},
	{"DELETE", "/api/v1/orgs/{org}/notes/{note}", "", onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/followups", "", []identity.Scope{identity.TasksRead}, false},
	{"POST", "/api/v1/orgs/{org}/followups", `{"title":"x"}`, []identity.Scope{identity.TasksWrite}, false},
	{"GET", "/api/v1/orgs/{org}/followups/{followup}", "", []identity.Scope{identity.TasksRead}, false},
	{"PATCH", "/api/v1/orgs/{org}/followups/{followup}", `{"title":"x"}`, []identity.Scope{identity.TasksWrite}, false},
	{"POST", "/api/v1/orgs/{org}/friction", frictionBody, []identity.Scope{identity.TasksWrite}, true},
	{"GET", "/api/v1/orgs/{org}/friction", "", []identity.Scope{identity.TasksRead}, false},
	{"GET", "/api/v1/orgs/{org}/friction/{fingerprint}", "", []identity.Scope{identity.TasksRead}, false},
	{"GET", "/api/v1/orgs/{org}/settings/friction", "", []identity.Scope{identity.TasksRead}, false},
	{"PUT", "/api/v1/orgs/{org}/settings/friction", `{"threshold":3}`, []identity.Scope{identity.Admin}, false},
	{"GET", "/api/v1/orgs/{org}/agents", "", readAgents, false},
	{"POST", "/api/v1/orgs/{org}/agents", `{"id":"new","name":"New"}`, []identity.Scope{identity.Admin}, false},
	{"GET", "/api/v1/orgs/{org}/agents/{agent}", "", readAgents, false},
	{"PATCH", "/api/v1/orgs/{org}/agents/{agent}", `{"name":"x"}`, []identity.Scope{identity.Admin}, false},
	{"GET", "/api/v1/orgs/{org}/agents/{agent}/connection", "", onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/agents/{agent}/usage", "", onlyAdmins, false},
	{"POST", "/api/v1/orgs/{org}/agents/{agent}/refresh", "", onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/a2a/tasks", "", []identity.Scope{identity.Admin}, false},
	{"GET", "/api/v1/orgs/{org}/a2a/tasks/{uid}", "", []identity.Scope{identity.Admin}, false},
	{"GET", "/api/v1/orgs/{org}/a2a/tasks/{uid}/push", "", []identity.Scope{identity.Admin}, false},
	{"POST", "/api/v1/orgs/{org}/a2a/tasks/{uid}/rerun", "", []identity.Scope{identity.Admin}, false},
	{"POST", "/api/v1/orgs/{org}/a2a/tasks/{uid}/push/{push}/retry", "", []identity.Scope{identity.Admin}, false},
	{"GET", "/api/v1/orgs/{org}/a2a/push", "", []identity.Scope{identity.Admin}, false},
	{"GET", "/api/v1/orgs/{org}/keys", "", onlyAdmins, false},
	{"POST", "/api/v1/orgs/{org}/keys", `{"principal":"agent:fixer","scopes":["svc:tasks:read"]}`, onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/keys/{key}", "", onlyAdmins, false},
	{"DELETE", "/api/v1/orgs/{org}/keys/{key}", "", onlyAdmins, false},
	{"POST", "/api/v1/orgs/{org}/keys/{key}/rotate", `{"overlap_seconds":0}`, onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/members", "", onlyAdmins, false},
	{"POST", "/api/v1/orgs/{org}/members", `{"kind":"user","id":"new"}`, onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/members/{ref}", "", onlyAdmins, false},
	{"PATCH", "/api/v1/orgs/{org}/members/{ref}", `{"name":"x"}`, onlyAdmins, false},
	{"DELETE", "/api/v1/orgs/{org}/members/{ref}", "", onlyAdmins, false},
	{"POST", "/api/v1/orgs/{org}/members/{ref}/link", `{"expires_in_seconds":60}`, onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/invitations", "", onlyAdmins, false},
	{"POST", "/api/v1/orgs/{org}/invitations", `{"user":"new"}`, onlyAdmins, false},
	{"DELETE", "/api/v1/orgs/{org}/invitations/{inv}", "", onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/clients", "", onlyAdmins, false},
	{"POST", "/api/v1/orgs/{org}/clients", clientBody, onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/clients/{client}", "", onlyAdmins, false},
	{"PATCH", "/api/v1/orgs/{org}/clients/{client}", `{"name":"x"}`, onlyAdmins, false},
	{"DELETE", "/api/v1/orgs/{org}/clients/{client}", "", onlyAdmins, false},
	{"POST", "/api/v1/orgs/{org}/clients/{client}/rotate", `{"overlap_seconds":0}`, onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/webhooks", "", onlyAdmins, false},
	{"POST", "/api/v1/orgs/{org}/webhooks", webhookBody, onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/webhooks/{hook}", "", onlyAdmins, false},
	{"PATCH", "/api/v1/orgs/{org}/webhooks/{hook}", `{"state":"paused"}`, onlyAdmins, false},
	{"DELETE", "/api/v1/orgs/{org}/webhooks/{hook}", "", onlyAdmins, false},
	{"POST", "/api/v1/orgs/{org}/webhooks/{hook}/rotate", `{"overlap_seconds":0}`, onlyAdmins, false},
	{"POST", "/api/v1/orgs/{org}/webhooks/{hook}/ping", "", onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/webhooks/{hook}/deliveries", "", onlyAdmins, false},
	{"POST", "/api/v1/orgs/{org}/webhooks/{hook}/redeliver", `{"event_id":"evt-1"}`, onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/audit", "", onlyAdmins, false},
	{"GET", "/api/v1/orgs/{org}/events", "", []identity.Scope{identity.TasksRead}, false},
}

var onlyAdmins = []identity.Scope{identity.Admin}

var readAgents = []identity.Scope{identity.TasksRead, identity.A2AWrite, identity.Admin}

// senderEndpoints have no org in their path; TestReruns tests them.
var senderEndpoints = []string{"POST /api/v1/agents/{agent}/tasks/{id}/rerun"}

// workerEndpoints have no org in their path; workers_test.go tests them.
var workerEndpoints = []string{
	"POST /api/v1/agents/{agent}/claim", "POST /api/v1/agents/{agent}/work", "POST /api/v1/agents/{agent}/leases/{lease}",
	"DELETE /api/v1/agents/{agent}/leases/{lease}",
}

// selfEndpoints have no org in their path; TestAnyCredentialMayAskWhoItIs, TestOwnKeys and TestCatalogue test
// them.
var selfEndpoints = []string{
	"GET /api/v1/me", "GET /api/v1/me/keys", "POST /api/v1/me/keys", "GET /api/v1/me/keys/{id}",
	"DELETE /api/v1/me/keys/{id}",
	"POST /api/v1/me/keys/{id}/rotate",
	"GET /api/v1/me/usage", "GET /api/v1/agents",
}

func (e endpoint) at(org, prop, followup string) string {
	return strings.NewReplacer("{org}", org, "{prop}", prop, "{followup}", followup, "{agent}", "fixer", "{push}",
		"push-1", "{key}", "key-1", "{inv}", "inv-1", "{client}", "client-1", "{note}", "note-1", "{hook}", "hook-1", "{ref}", "user:ada",
		"{uid}", strings.TrimPrefix(followup, "fup-")).Replace(e.path)
}

// placeholders are the ids in the paths above, which the document calls {id}.
var placeholders = strings.NewReplacer("{prop}", "{id}", "{followup}", "{id}", "{agent}", "{id}", "{uid}", "{id}",
	"{key}", "{id}", "{inv}", "{id}", "{client}", "{id}", "{note}", "{id}", "{hook}", "{id}")

// Fails if an operation is missing in the tables above.
func TestEveryOperationIsInTheAccessTables(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, e := range slices.Concat(selfEndpoints, workerEndpoints, senderEndpoints) {
		known[e] = true
	}
	for _, e := range endpoints {
		known[e.method+" "+placeholders.Replace(e.path)] = true
	}
	for path, item := range document(Options{}).Paths {
		if !strings.HasPrefix(path, "/api/") {
			continue
		}
		for method, op := range operationsOf(item) {
			if !known[method+" "+path] {
				t.Errorf("%s %s (%s) is not tested for access", method, path, op.OperationID)
			}
		}
	}
}

func TestAnotherOrgsResourcesLookLikeNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, eve := w.admin("acme", "user:ada"), w.admin("globex", "user:eve")
	prop := w.submit(ada, "acme").ID
	var followup Followup
	w.do(ada, "POST", "/api/v1/orgs/acme/followups", `{"title":"x"}`).want(201).into(&followup)
	noProp, noFollowup := newID("prop-"), newID("fup-")
	const id = "isolation-test"
	for _, e := range endpoints {
		want := w.do(eve, e.method, e.at("no-such-org", noProp, noFollowup), e.body, "X-Request-Id", id).want(404)
		targets := []string{
			e.at("acme", prop, followup.ID), // exists, but in another org
			e.at("acme", noProp, noFollowup),
			e.at("ACME", prop, followup.ID),
			e.at("%61cme", prop, followup.ID),
			e.at("acme%2Fx", prop, followup.ID),
		}
		if strings.Contains(e.path, "{prop}") || strings.Contains(e.path, "{followup}") {
			targets = append(targets,
				e.at("globex", prop, followup.ID), // through her own org
				e.at("globex", noProp, noFollowup),
				e.at("globex", "prop-1", "fup-1"),
				e.at("globex", "%00", "%ff"),
				e.at("globex", strings.ToUpper(prop), strings.ToUpper(followup.ID)),
				e.at("globex", followup.ID, prop))
		}
		for _, target := range targets {
			got := w.do(eve, e.method, target, e.body, "X-Request-Id", id)
			if got.Status != 404 || got.Body != want.Body {
				t.Errorf("%s %s: %d %s, want %s", e.method, target, got.Status, got.Body, want.Body)
			}
		}
		// Validation does not reveal a difference either.
		bad := w.do(eve, e.method, e.at("acme", prop, followup.ID)+"?x=1", `{"x":`, "X-Request-Id", id)
		if bad.Status != 404 || bad.Body != want.Body {
			t.Errorf("%s %s with a bad body: got %d %s, want 404 %s", e.method, e.path, bad.Status, bad.Body, want.Body)
		}
	}
	// A malformed id is rejected before the request is validated.
	w.do(eve, "POST", "/api/v1/orgs/globex/proposals/prop-1/vote?x=1", `{"x":`).want(404)
	w.do(eve, "PATCH", "/api/v1/orgs/globex/followups/"+prop, `{"x":`).want(404)
	var after Proposal
	w.do(ada, "GET", "/api/v1/orgs/acme/proposals/"+prop, "").want(200).into(&after)
	if after.VotesFor != 0 || after.Title != "Retry webhooks" || after.Status != "open" {
		t.Errorf("it was changed: got %+v, want VotesFor 0, Title Retry webhooks, Status open", after)
	}
}

func TestADraftLooksLikeNoneToOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scout, bob, ada := w.member("acme", "user:scout"), w.member("acme", "user:bob"), w.admin("acme", "user:ada")
	var draft Proposal
	w.do(scout, "POST", proposals, strings.Replace(submission, "{", `{"status":"draft",`, 1)).want(201).into(&draft)
	const id = "draft-test"
	for _, c := range []struct{ method, path, body string }{
		{"GET", "", ""},
		{"PATCH", "", `{"title":"x"}`},
		{"POST", "/vote", `{"vote":"for"}`},
		{"DELETE", "/vote", ""},
		{"GET", "/votes", ""},
		{"GET", "/history", ""},
		{"GET", "/similar", ""},
	} {
		got := w.do(bob, c.method, proposals+"/"+draft.ID+c.path, c.body, "X-Request-Id", id).want(404)
		want := w.do(bob, c.method, proposals+"/"+newID("prop-")+c.path, c.body, "X-Request-Id", id).want(404)
		if got.Body != want.Body {
			t.Errorf("%s %s: got %s, want %s", c.method, c.path, got.Body, want.Body)
		}
	}
	for secret, total := range map[string]string{scout: `"total":1`, ada: `"total":1`, bob: `"total":0`} {
		if res := w.do(secret, "GET", proposals+"?status=draft", "").want(200); !strings.Contains(res.Body, total) {
			t.Errorf("drafts: %s, want %s", res.Body, total)
		}
	}
}

func TestAMissingScopeIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	prop := w.submit(w.admin("acme", "user:ada"), "acme").ID
	for _, e := range endpoints {
		var others []identity.Scope
		for _, s := range identity.AllScopes {
			if !contains(e.scopes, s) {
				others = append(others, s)
			}
		}
		key := w.key("acme", "user:ada", others...)
		// The body is invalid, too: the scope is checked first.
		body := e.body
		if body != "" {
			body = strings.Replace(body, "{", `{"unknown":1,`, 1)
		}
		res := w.do(key, e.method, e.at("acme", prop, newID("fup-")), body).want(403)
		p := res.problem()
		want := make([]string, len(e.scopes))
		for i, s := range e.scopes {
			want[i] = string(s)
		}
		if p.Code != "auth.scope_missing" || p.Scope != strings.Join(want, " ") || !strings.Contains(p.Detail, want[0]) {
			t.Errorf("%s %s: got %+v, want Code auth.scope_missing, Scope %v", e.method, e.path, p, want)
		}
		if h := res.Header.Get("WWW-Authenticate"); !strings.Contains(h, `error="insufficient_scope"`) ||
			!strings.Contains(h, want[0]) {
			t.Errorf("%s %s: WWW-Authenticate = %q, want insufficient_scope and %s", e.method, e.path, h, want[0])
		}
		if e.members {
			service := w.key("acme", "service:ci", identity.AllScopes...)
			if p := w.do(service, e.method, e.at("acme", prop, newID("fup-")), e.body).want(403).
				problem(); p.Code != "auth.not_a_member" {
				t.Errorf("%s %s as a service: got %+v, want Code auth.not_a_member", e.method, e.path, p)
			}
		}
	}
}

func contains(list []identity.Scope, s identity.Scope) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func TestOnlyTheSubmitterOrAnAdminEdits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scout, bob := w.member("acme", "user:scout"), w.member("acme", "user:bob")
	path := proposals + "/" + w.submit(scout, "acme").ID
	if p := w.do(bob, "PATCH", path, `{"title":"x"}`).want(403).problem(); p.Code != "proposal.not_yours" {
		t.Errorf("got %+v, want Code proposal.not_yours", p)
	}
	w.do(scout, "PATCH", path, `{"title":"x"}`).want(200)
	w.do(w.key("acme", "user:boss", identity.Admin), "PATCH", path, `{"title":"y"}`).want(200)
	if p := w.do(scout, "PATCH", path, `{"status":"approved"}`).want(403).problem(); p.Scope != "svc:admin:admin" {
		t.Errorf("got %+v, want Scope svc:admin:admin", p)
	}
}

func TestBadCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := w.member("acme", "user:ada")
	for _, e := range endpoints {
		target := e.at("acme", newID("prop-"), newID("fup-"))
		res := w.do("", e.method, target, e.body).want(401)
		if p := res.problem(); p.Code != "auth.missing" || res.Header.Get("WWW-Authenticate") != `Bearer realm="parley"` {
			t.Errorf("%s: got %+v %q, want Code auth.missing, WWW-Authenticate Bearer realm=\"parley\"", target, p,
				res.Header.Get("WWW-Authenticate"))
		}
	}
	for _, header := range []string{
		"Bearer", "Bearer ", "Basic YWRhOnBhc3M=", "bearer x", "Bearer " + good + "x", "Bearer " + good[:len(good)-1],
		"Bearer " + identity.NewSecret(), good, "Bearer " + good + " " + good, "Bearer \x01",
	} {
		res := w.do("", "GET", proposals, "", "Authorization", header).want(401)
		if p := res.problem(); p.Code != "auth.invalid" ||
			!strings.Contains(res.Header.Get("WWW-Authenticate"), `error="invalid_token"`) {
			t.Errorf("%q: got %+v, want Code auth.invalid, containing error=\"invalid_token\"", header, p)
		}
		if strings.Contains(res.Body, good) {
			t.Errorf("the response shows the secret: %s", res.Body)
		}
	}
	w.do("", "GET", proposals, "", "Authorization", "Bearer "+good, "Authorization", "Bearer "+good).want(401)
	w.do("", "GET", proposals, "", "Authorization", "bEARER  "+good).want(200)
}

func TestARevokedKeyGetsNothingNotEvenACachedPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	key := w.member("acme", "user:ada")
	w.do(key, "GET", proposals, "").want(200)
	w.do(key, "GET", proposals, "").want(200)
	caller, err := w.auth.Authenticate(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.operator.RevokeKey(ctx, "acme", caller.KeyID); err != nil {
		t.Fatal(err)
	}
	if err := w.auth.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	w.do(key, "GET", proposals, "").want(http.StatusUnauthorized)
}
