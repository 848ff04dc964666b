package app

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/identity"
)

// call sends a request with a key.
func call(t *testing.T, method, url, key, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", method+url)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// traces does a little of everything as the user ada, who has several names.
func traces(t *testing.T, s *Server, admin string) (key string) {
	t.Helper()
	org := s.URL() + "/api/v1/orgs/main"
	must := func(method, path, key, body string) (answer struct{ ID string }) {
		t.Helper()
		code, text := call(t, method, org+path, key, body)
		if code/100 != 2 {
			t.Fatal(method, path, code, text)
		}
		_ = json.Unmarshal([]byte(text), &answer)
		return answer
	}
	must("PATCH", "/members/user:ada", admin, `{"name":"Zaphod Beeblebrox","admin":true}`)
	key = keyOf(t, s, "main", "user:ada")
	p := must("POST", "/proposals", key, `{"title":"By a person","category":"process","problem":"It stays.",
		"suggested_fix":"Keep it."}`)
	must("POST", "/proposals/"+p.ID+"/vote", key, `{"vote":"for","comment":"My own."}`)
	must("PATCH", "/proposals/"+p.ID, key, `{"status":"approved","resolution_note":"Yes."}`)
	f := must("POST", "/followups", key, `{"title":"For her","description":"Something."}`)
	must("PATCH", "/followups/"+f.ID, key, `{"assignee":"user:ada"}`)
	must("POST", "/friction", key, `{"fingerprint":"hers:1","title":"Slow","category":"process","problem":"It is slow.",
		"evidence":"some","occurrence":"run-1"}`)
	must("POST", "/notes", key, `{"title":"Hers","text":"A text."}`)
	must("POST", "/keys", key, `{"principal":"service:crm","name":"for the crm","scopes":["svc:tasks:read"]}`)
	must("POST", "/invitations", key, `{"user":"eve","name":"Eve"}`)
	must("POST", "/webhooks", key, `{"url":"https://hooks.example/1"}`)
	must("POST", "/clients", key, `{"name":"Program","redirect_uris":["http://127.0.0.1/cb"],"scopes":["svc:tasks:read"]}`)
	sendTask(t, s, key, "helper", "hers")
	if code, body := post(t, s.URL()+"/api/v1/orgs/other/agents", keyOf(t, s, "other", "user:admin"),
		`{"id":"abroad","name":"Abroad","description":"Of another org.","skills":["help"],"public":true}`); code != 201 {
		t.Fatal(code, body)
	}
	sendTask(t, s, key, "abroad", "hers")
	if code, _ := call(t, "PATCH", org+"/members/user:ada", admin, `{"admin":true,"name":""}`); code != 422 {
		t.Fatal(code)
	}
	return key
}

// TestEraseMember: after a user is erased, no table names the user, and all that the user did is there.
func TestEraseMember(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s, cfg := filledServer(t, engine)
			admin := s.First().Secret
			key := traces(t, s, admin)
			org := s.URL() + "/api/v1/orgs/main"
			before, _ := exported(t, cfg, "main", true)

			code, body := call(t, http.MethodDelete, org+"/members/user:ada", admin, "")
			var m struct {
				Ref, Name string
				Disabled  bool
			}
			if err := json.Unmarshal([]byte(body), &m); err != nil || code != 200 || !m.Disabled ||
				!strings.HasPrefix(m.Ref, "user:former-") || !strings.HasPrefix(m.Name, "Former member ") {
				t.Fatal(code, body)
			}
			if code, _ := get(t, org+"/proposals", key); code != 401 {
				t.Errorf("the key of an erased user: %d, want 401", code)
			}
			for method, path := range map[string]string{
				http.MethodGet: "/members/user:ada", http.MethodDelete: "/members/user:ada",
			} {
				if code, body := call(t, method, org+path, admin, ""); code != 404 {
					t.Errorf("%s: %d %s, want 404", method, code, body)
				}
			}
			for path, want := range map[string]string{
				"/proposals?status=all&submitted_by=" + m.Ref: `"total":1`,
				"/followups?assignee=" + m.Ref:                `"total":1`,
				"/audit?action=member.erase":                  m.Ref,
				"/events?types=member.erased":                 m.Ref,
				"/events?subject=member:" + m.Ref:             "member.created",
				"/audit?actor=" + m.Ref:                       "note.create",
			} {
				if code, body := get(t, org+path, admin); code != 200 || !strings.Contains(body, want) {
					t.Errorf("%s: %d, want %s in %.500s", path, code, want, body)
				}
			}
			if err := s.Shutdown(); err != nil {
				t.Fatal(err)
			}
			namedNowhere(t, cfg)
			inOrder(t, cfg)
			after, _ := exported(t, cfg, "main", true)
			sameRows(t, before, after)
		})
	}
}

// namedNowhere searches all tables for the names of the user.
func namedNowhere(t *testing.T, cfg config.Config) {
	t.Helper()
	data, _ := backedUp(t, cfg)
	for _, row := range rowsOf(t, data) {
		text := row
		if strings.HasPrefix(row, `{"table":"sessions"`) {
			for part := range strings.SplitSeq(row, `"`) {
				if plain, err := base64.StdEncoding.DecodeString(part); err == nil {
					text += string(plain)
				}
			}
			if strings.Contains(text, "\x03ada") {
				t.Errorf("a session is left: %q", text)
			}
		}
		for _, name := range []string{"Zaphod", "Beeblebrox", "Lovelace", "ada@acme.example", "user:ada", `"ada"`, `"s-1"`} {
			if strings.Contains(text, name) || strings.Contains(text, strings.ReplaceAll(name, `"`, `\"`)) {
				t.Errorf("%s is still in %.700s", name, text)
			}
		}
	}
}

// sameRows compares how many rows the tables have that no erasure makes fewer.
func sameRows(t *testing.T, before, after []byte) {
	t.Helper()
	count := func(data []byte) map[string]int {
		out := map[string]int{}
		for _, row := range rowsOf(t, data) {
			if name, ok := strings.CutPrefix(row, `{"table":"`); ok && strings.Contains(row, "}[") {
				table, _, _ := strings.Cut(name, `"`)
				out[table]++
			}
		}
		return out
	}
	was, is := count(before), count(after)
	for _, table := range []string{
		"proposals", "votes", "history", "followups", "friction", "friction_reports", "saved_notes", "tasks", "task_events",
		"principals", "webhooks", "oauth_clients",
	} {
		if was[table] == 0 || is[table] != was[table] {
			t.Errorf("%s has %d rows, want %d", table, is[table], was[table])
		}
	}
}

// TestEraseRefusals: who cannot be erased.
func TestEraseRefusals(t *testing.T) {
	t.Parallel()
	s := startServer(t, testConfig(t))
	defer func() { _ = s.Shutdown() }()
	admin := s.First().Secret
	org := s.URL() + "/api/v1/orgs/main"
	for _, body := range []string{`{"kind":"user","id":"bob"}`, `{"kind":"service","id":"crm"}`} {
		if code, text := post(t, org+"/members", admin, body); code != 201 {
			t.Fatal(code, text)
		}
	}
	service := keyOf(t, s, "main", "service:crm")
	member := keyOf(t, s, "main", "user:bob")
	for _, c := range []struct {
		key, ref, code string
		status         int
	}{
		{admin, "user:admin", "identity.not_oneself", 409},
		{service, "user:admin", "identity.last_admin", 409},
		{admin, "service:crm", "identity.only_users_are_erased", 409},
		{admin, "user:nobody", "resource.not_found", 404},
	} {
		status, body := call(t, http.MethodDelete, org+"/members/"+c.ref, c.key, "")
		if status != c.status || !strings.Contains(body, c.code) {
			t.Errorf("%s: %d %s, want %d %s", c.ref, status, body, c.status, c.code)
		}
	}
	p := identity.Principal{Org: "main", Kind: identity.User, ID: "bob"}
	operator := identity.NewOperator(s.store.IdentityStores(), Now, newIDs(Now).next)
	m, err := operator.EraseMember(t.Context(), p)
	if err != nil || m.ID == "bob" {
		t.Errorf("the operator erased %+v, %v", m, err)
	}
	if code, _ := get(t, org+"/proposals", member); code != 401 {
		t.Errorf("the key of an erased user: %d, want 401", code)
	}
	members, err := operator.Members(t.Context(), "main", identity.User)
	if err != nil || len(members) != 2 || !slices.ContainsFunc(members, func(x identity.Member) bool { return x == m }) {
		t.Errorf("the members are %+v, %v", members, err)
	}
}
