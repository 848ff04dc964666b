package e2e

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var authTable = table{"5 authentication", []row{
	{
		rule: "5 no key", as: "-", call: "GET /proposals", status: 401, want: `{"code":"auth.missing"}`,
		header: []string{"Www-Authenticate: Bearer.*", `Content-Type: application/problem\+json`},
	},
	{
		rule: "5 another scheme", as: "-", call: "GET /proposals", with: []string{"Authorization: Basic YTpi"}, status: 401,
		header: []string{"Www-Authenticate: Bearer.*"},
	},
	{
		rule: "5 no such key", as: "-", call: "GET /proposals",
		with: []string{"Authorization: Bearer parley_000000000000000000000000000000000000"}, status: 401,
		want: `{"code":"auth.invalid"}`,
	},
	{
		rule: "5 not even a key", as: "-", call: "GET /proposals", with: []string{"Authorization: Bearer x"}, status: 401,
		want: `{"code":"auth.invalid"}`,
	},
	{rule: "5 no key at an org that does not exist", as: "-", call: "GET ~/api/v1/orgs/nowhere/proposals", status: 401},
	{
		rule: "5 an org that the caller is not in", as: "ann", call: "GET ~/api/v1/orgs/main/proposals", status: 404,
		want: `{"code":"resource.not_found"}`,
	},
	{
		rule: "5 an org that does not exist", as: "ann", call: "GET ~/api/v1/orgs/nowhere/proposals", status: 404,
		want: `{"code":"resource.not_found"}`,
	},
	{
		rule: "1 a service does not submit", as: "partner", call: "POST /proposals", body: good, status: 403,
		want: `{"code":"auth.not_a_member"}`,
	},
	{rule: "4.2 a member does", as: "ann", call: "POST /proposals", body: good, status: 201, save: "p"},
	{
		rule: "1 a service does not vote", as: "partner", call: "POST /proposals/{p}/vote", body: `{"vote":"for"}`,
		status: 403, want: `{"code":"auth.not_a_member"}`,
	},
	{
		rule: "1 nor withdraw", as: "partner", call: "DELETE /proposals/{p}/vote", status: 403,
		want: `{"code":"auth.not_a_member"}`,
	},
	{rule: "1 a service reads if its key says so", as: "partner", call: "GET /proposals/{p}", status: 200},
	{rule: "no key needed: /healthz", as: "-", call: "GET ~/healthz", status: 200},
	{rule: "no key needed: /readyz", as: "-", call: "GET ~/readyz", status: 200},
	{rule: "no key needed: /metrics, without org names", as: "-", call: "GET ~/metrics", status: 200, absent: "{org}"},
	{
		rule: "no key needed: /openapi.json", as: "-", call: "GET ~/openapi.json", status: 200,
		want: `{"openapi":"<string>","paths":"<any>"}`,
	},
	{rule: "no key needed: /openapi.yaml", as: "-", call: "GET ~/openapi.yaml", status: 200},
	{
		rule: "no key needed: /docs, from this server alone", as: "-", call: "GET ~/docs", status: 200,
		absent: "https://unpkg",
	},
}}

// endpoints lists every call of the API, on a proposal {p} and a task {t}, with the scope it
// needs. The callers of the scope test lack just that scope.
var endpoints = []struct {
	call, body string
	scope      string // what a 403 names
	without    string // the member of the cast whose key lacks it
}{
	{"GET /proposals", "", "svc:tasks:read", "writer"},
	{"POST /proposals", good, "svc:tasks:write", "reader"},
	{"GET /proposals/{p}", "", "svc:tasks:read", "writer"},
	{"PATCH /proposals/{p}", `{"title":"x"}`, "svc:tasks:write", "reader"},
	{"PATCH /proposals/{p}", `{"status":"approved"}`, "svc:admin:admin", "ann"},
	{"PATCH /proposals/{p}", `{"status":"rejected","resolution_note":"no"}`, "svc:admin:admin", "writer"},
	{"POST /proposals/{p}/vote", `{"vote":"for"}`, "svc:tasks:write", "reader"},
	{"DELETE /proposals/{p}/vote", "", "svc:tasks:write", "reader"},
	{"GET /proposals/{p}/votes", "", "svc:tasks:read", "writer"},
	{"GET /proposals/{p}/history", "", "svc:tasks:read", "writer"},
	{"GET /followups", "", "svc:tasks:read", "writer"},
	{"POST /followups", `{"title":"x"}`, "svc:tasks:write", "reader"},
	{"GET /followups/{t}", "", "svc:tasks:read", "writer"},
	{"PATCH /followups/{t}", `{"title":"x"}`, "svc:tasks:write", "reader"},
}

// testScopes makes every call with a key that lacks the one scope, and checks that keys expire and
// can be revoked.
func testScopes(t *testing.T, s *server) {
	w := newWorld(t, s, "scopes")
	w.names["p"] = w.must(t, "ann", "POST /proposals", good).str("id")
	w.names["t"] = w.must(t, "ann", "POST /followups", `{"title":"x"}`).str("id")
	for _, e := range endpoints {
		for _, as := range []string{e.without, "admin"} {
			if as == "admin" && e.scope == "svc:admin:admin" {
				continue // the key has the scope
			}
			if as == "admin" && strings.HasPrefix(e.call, "PATCH /proposals") {
				continue // an admin may edit too
			}
			a := w.call(t, as, e.call, e.body)
			var problem struct{ Code, Scope, Detail string }
			_ = json.Unmarshal(a.body, &problem)
			if a.status != 403 || problem.Code != "auth.scope_missing" ||
				!strings.Contains(problem.Scope, e.scope) || !strings.Contains(problem.Detail, e.scope) {
				t.Errorf("5 %s as %s: got %d %s, want 403 that names %s", e.call, as, a.status, a.body, e.scope)
			}
		}
	}
	if p := w.must(t, "ann", "GET /proposals/{p}", ""); p.str("status") != "open" ||
		p.str("title") != "Retry failed uploads" {
		t.Errorf("5 after a refused call: got %s, want the proposal unchanged", p.body)
	}

	t.Run("5 two keys of one principal are one voter", func(t *testing.T) {
		w.keys["second"] = s.newKey(t, w.org, "user:ann", "svc:tasks:write", "svc:tasks:read")
		w.must(t, "ann", "POST /proposals/{p}/vote", `{"vote":"for"}`)
		w.check(t, row{
			rule: "8", as: "second", call: "POST /proposals/{p}/vote", body: `{"vote":"against"}`, status: 200,
			want: `{"votes_for":0,"votes_against":1,"replaced":true}`,
		})
	})
	t.Run("5 a revoked key ends within seconds", func(t *testing.T) {
		w.keys["gone"] = s.newKey(t, w.org, "user:ann", "svc:tasks:read")
		w.must(t, "gone", "GET /proposals", "")
		s.revoke(t, w.org, w.keys["gone"])
		eventually(t, soon, "it is refused", func() bool { return w.call(t, "gone", "GET /proposals", "").status == 401 })
	})
}

// revoke revokes a key on the command line.
func (s *server) revoke(t *testing.T, org, secret string) {
	t.Helper()
	s.cli(t, "key", "revoke", s.keyID(t, org, secret), "--org", org)
}

// keyID finds a key by the prefix that lists show.
func (s *server) keyID(t *testing.T, org, secret string) string {
	t.Helper()
	for _, line := range strings.Split(s.cli(t, "key", "list", "--org", org), "\n") {
		for _, field := range strings.Fields(line) {
			if shown := strings.TrimRight(field, "….*"); len(shown) > len("parley_") && strings.HasPrefix(secret, shown) {
				return strings.Fields(line)[0]
			}
		}
	}
	t.Fatal("key list lacks the key, want it listed")
	return ""
}

// testTenants accesses one org with the keys of another: an id that exists there and one that
// exists nowhere get the same response.
func testTenants(t *testing.T, s *server) {
	const secret = "xylophone"
	home, away := newWorld(t, s, "home"), newWorld(t, s, "away")
	prop := home.must(t, "ann", "POST /proposals", but(`title:"`+secret+`"`)).str("id")
	approved := home.must(t, "ann", "POST /proposals", but(`title:"`+secret+`"`)).str("id")
	task := home.must(t, "root", "PATCH /proposals/"+approved, `{"status":"approved"}`).str("followup_id")
	home.must(t, "ann", "POST /proposals/"+prop+"/vote", `{"vote":"for"}`)
	before := home.must(t, "root", "GET /proposals/"+prop, "").body

	for _, as := range []string{"root", "ann", "partner"} {
		for _, e := range endpoints {
			if as == "partner" && !strings.HasPrefix(e.call, "GET") {
				continue // refused before any look-up
			}
			method, path, _ := strings.Cut(e.call, " ")
			// In the other org's path, and with its ids in the caller's own path.
			for _, org := range []string{"home", "away", "nowhere"} {
				ask := func(p, task string) answer {
					away.names["p"], away.names["t"] = p, task
					return away.call(t, as, method+" ~/api/v1/orgs/"+org+path, e.body)
				}
				exists, unknown := ask(prop, task), ask(away.names["none"], away.names["nofollowup"])
				if org == "away" && !strings.Contains(path, "{") {
					continue // the caller's own list, checked below
				}
				if e.scope == "svc:admin:admin" && as != "root" && org == "away" {
					if exists.status != unknown.status || !bytes.Equal(sameBody(exists), sameBody(unknown)) {
						t.Errorf("5 %s as %s: got %d %s, want %d %s", e.call, as, exists.status, exists.body, unknown.status,
							unknown.body)
					}
					continue
				}
				if exists.status != 404 || unknown.status != 404 {
					t.Errorf("5 %s in %s as %s: got %d and %d, want 404 for both\n%s", e.call, org, as, exists.status, unknown.status,
						exists.body)
				}
				if d := cmp.Diff(string(sameBody(exists)), string(sameBody(unknown))); d != "" {
					t.Errorf("5 %s in %s as %s: response for an existing id differs from an unknown one (-existing +unknown):\n%s",
						e.call, org, as, d)
				}
				if bytes.Contains(exists.body, []byte(secret)) {
					t.Errorf("5 %s in %s as %s: got a foreign row, want none: %s", e.call, org, as, exists.body)
				}
			}
		}
	}
	own := away.list(t, "/proposals?status=all&limit=100")
	for _, p := range own.Proposals {
		if p.ID == prop || p.ID == approved {
			t.Errorf("5 got the foreign row %s in the list, want none", p.ID)
		}
	}
	if own.Total != len(own.Proposals) {
		t.Errorf("5 total = %d, want %d, the number of rows", own.Total, len(own.Proposals))
	}
	for _, query := range []string{
		"q=" + secret, "submitted_by=user:ann&q=" + secret,
		"category=reliability&q=" + secret,
	} {
		if l := away.list(t, "/proposals?status=all&"+query); l.Total != 0 || len(l.Proposals) != 0 {
			t.Errorf("5 %s finds %d foreign rows, want 0", query, l.Total)
		}
	}
	if a := away.must(t, "root", "GET /followups?proposal_id="+approved, ""); mismatch(`{"followups":[],"total":0}`,
		a.body) != "" {
		t.Errorf("5 got a foreign follow-up, want none: %s", a.body)
	}
	if after := home.must(t, "root", "GET /proposals/"+prop, "").body; !bytes.Equal(before, after) {
		t.Errorf("5 the other org changed a proposal: got\n%s\nwant\n%s", after, before)
	}
}

// sameBody returns the body of an error without what differs between any two requests.
func sameBody(a answer) []byte {
	var m map[string]any
	if json.Unmarshal(a.body, &m) != nil {
		return a.body
	}
	delete(m, "request_id")
	b, _ := json.Marshal(m) // a map that was JSON a moment ago
	return b
}
