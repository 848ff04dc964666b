package rest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzHTTP sends arbitrary requests. No response may be a 5xx, and every error must be a problem
// document. The handler is the whole server on a real SQLite file.
func FuzzHTTP(f *testing.F) {
	w := newWorld(f)
	ada := w.admin("acme", "user:ada")
	open, decided := w.submit(ada, "acme").ID, w.submit(ada, "acme").ID
	var p Proposal
	w.do(ada, "PATCH", proposals+"/"+decided, `{"status":"approved"}`).want(200).into(&p)
	followup := *p.FollowupID
	worker := w.worker()
	sent := w.send("ada", "t-1", "hello")
	lease := w.claim(worker, `{}`).Tasks[0].Lease
	client := w.newClient(ada, `,"method":"client_secret_basic"`).ID
	w.tasks.Stop() // an empty claim does not wait
	// Inputs must be the same in every run, so ids are placeholders.
	fill := strings.NewReplacer("{open}", open, "{decided}", decided, "{followup}", followup, "{uid}", sent.UID,
		"{lease}", lease, "{client}", client)

	type seed struct{ method, path, query, header, body string }
	seeds := []seed{
		{"GET", proposals, "status=all&limit=2", "", ""},
		{"GET", proposals, "cursor=AQAAAAABAAA&page=1", "", ""},
		{"GET", proposals, "q=%F0%9F%92%A9&sort=votes", "", ""},
		{"GET", proposals, "page=92233720368547758&limit=100", "", ""},
		{"POST", proposals, "", "k", submission},
		{"POST", proposals, "", "", `{"title":"\u0000","category":1}`},
		{"GET", proposals + "/{open}", "", `"v1-x"`, ""},
		{"PATCH", proposals + "/{open}", "", `"v1-x"`, `{"title":"x"}`},
		{"PATCH", proposals + "/{open}", "", "*", `{"status":"rejected","resolution_note":"x"}`},
		{"PATCH", proposals + "/{decided}", "", "", `{"status":"open"}`},
		{"POST", proposals + "/{open}/vote", "", "k", `{"vote":"for","comment":"ok"}`},
		{"DELETE", proposals + "/{open}/vote", "", "", ""},
		{"GET", proposals + "/{open}/votes", "page=2", "", ""},
		{"GET", proposals + "/{open}/history", "limit=1", "", ""},
		{"GET", "/api/v1/orgs/acme/followups", "assignee=none&proposal_id={decided}", "", ""},
		{"POST", "/api/v1/orgs/acme/followups", "", "", `{"title":"x","assignee":"agent:fixer"}`},
		{"PATCH", "/api/v1/orgs/acme/followups/{followup}", "", "", `{"status":"done","assignee":""}`},
		{"GET", "/api/v1/orgs/acme/followups/%2e%2e", "", "", ""},
		{"OPTIONS", "/api/v1/../orgs//acme", "a=1;b=2", "", ""},
		{"POST", agents, "", "", `{"id":"scout","name":"Scout","skills":["a"],"public":true}`},
		{"PATCH", agents + "/fixer", "", "", `{"status":null,"name":"x","skills":[],"disabled":false}`},
		{"GET", "/api/v1/orgs/acme/a2a/tasks", "agent=fixer&state=working&limit=1&cursor={uid}&context_id=x", "", ""},
		{"GET", "/api/v1/orgs/acme/a2a/tasks/{uid}", "", "", ""},
		{
			"POST", "/api/v1/agents/fixer/claim", "", "",
			`{"worker":"w","max":2,"wait_seconds":1,"lease_seconds":5,"capacity":3,"ack":["msg-1"]}`,
		},
		{
			"POST", "/api/v1/agents/fixer/leases/{lease}", "", "",
			`{"status":"working","message":{"parts":[{"text":"x"}]},"extend_seconds":5,"seen":1,` +
				`"artifacts":[{"artifact_id":"a","append":true,"last_chunk":true,` +
				`"parts":[{"data":{"a":[1]}},{"type":"file","file":{"bytes":"aGk=","name":"n"}}]}]}`,
		},
		{"DELETE", "/api/v1/agents/fixer/leases/{lease}", "", "", ""},
		{
			"POST", clients, "", "",
			`{"name":"x","redirect_uris":["http://127.0.0.1/"],"scopes":["svc:admin:admin","agent:*"],"method":"none"}`,
		},
		{"GET", clients, "limit=1&cursor=client-1", "", ""},
		{"DELETE", clients + "/client-parley-cli", "", "", ""},
		{"GET", clients + "/{client}", "", `"v1-x"`, ""},
		{
			"PATCH", clients + "/{client}", "", `"v1-x"`,
			`{"name":"y","redirect_uris":["cursor://x/y"],"scopes":["svc:tasks:read"]}`,
		},
		{"POST", clients + "/{client}/rotate", "", "", `{"overlap_seconds":60}`},
		{"GET", "/api/v1/me", "x=1", "", ""},
		{"GET", "/openapi.json", "", "", ""},
		{"GET", "/docs", "", "", ""},
		{"FOO BAR", "/", "", "", ""},
		{"CONNECT", "", "", "", ""},
	}
	for _, s := range seeds {
		f.Add(s.method, s.path, s.query, s.header, s.body)
	}
	f.Fuzz(func(t *testing.T, method, path, query, header, body string) {
		// net/http never passes an invalid request line to a handler.
		u, err := url.ParseRequestURI("/" + strings.TrimPrefix(fill.Replace(path), "/") + "?" + fill.Replace(query))
		if err != nil || method == "" || strings.ContainsFunc(method, notToken) {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(fill.Replace(body)))
		r.Method, r.URL, r.RequestURI = method, u, u.RequestURI()
		r.Header.Set("Authorization", "Bearer "+ada)
		if strings.HasPrefix(u.Path, "/api/v1/agents/") {
			r.Header.Set("Authorization", "Bearer "+worker)
		}
		r.Header.Set("Content-Type", "application/json")
		if header != "" && !strings.ContainsFunc(header, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			for _, name := range []string{"Idempotency-Key", "If-Match", "If-None-Match", "Accept", "X-Request-Id"} {
				r.Header.Set(name, header)
			}
		}
		rec := httptest.NewRecorder()
		w.handler.ServeHTTP(rec, r)
		if rec.Code >= 500 {
			t.Fatalf("%s %s: %d %s\n%s", method, u, rec.Code, rec.Body, w.logs)
		}
		if ct := rec.Header().Get("Content-Type"); rec.Code >= 400 && ct != "application/problem+json" {
			t.Fatalf("%s %s: %d as %q", method, u, rec.Code, ct)
		}
		if rec.Code >= 300 && rec.Code < 400 && rec.Code != 304 && path != "/" && path != "" {
			t.Fatalf("%s %s: redirected to %s", method, u, rec.Header().Get("Location"))
		}
	})
}

// notToken reports whether a method cannot contain the character.
func notToken(r rune) bool {
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}
