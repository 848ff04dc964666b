package rest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

const ownKeys = "/api/v1/me/keys"

func TestOwnKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bob, eve := w.member("acme", "user:bob"), w.member("globex", "user:bob")
	w.do("", "GET", ownKeys, "").want(401)
	res := w.do(bob, "POST", ownKeys, `{"scopes":["svc:tasks:read"],"name":"laptop","expires_at":"2126-01-01T00:00:00Z"}`,
		"Idempotency-Key", "one").want(201)
	var made, again KeyWithSecret
	res.into(&made)
	if made.Principal != "user:bob" || made.Name != "laptop" || res.Header.Get("Location") != ownKeys+"/"+made.ID ||
		res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %+v %v, want Principal user:bob, Name laptop, Location %v, Cache-Control no-store", made, res.Header,
			ownKeys+"/"+made.ID)
	}
	w.do(bob, "POST", ownKeys, `{"scopes":["svc:tasks:read"],"name":"laptop","expires_at":"2126-01-01T00:00:00Z"}`,
		"Idempotency-Key", "one").want(201).into(&again)
	if again.Secret != made.Secret {
		t.Error("a repeated request shows another secret")
	}
	w.do(made.Secret, "GET", proposals, "").want(200)
	if p := w.do(made.Secret, "POST", ownKeys, `{"scopes":["svc:tasks:write"]}`).want(403).
		problem(); p.Code != "identity.scope_not_held" {
		t.Errorf("got %+v, want Code identity.scope_not_held", p)
	}
	if p := w.do(made.Secret, "POST", ownKeys, `{"scopes":["svc:tasks:read"],"expires_at":"2127-01-01T00:00:00Z"}`).
		want(422).problem(); strings.Join(at(p), " ") != "/expires_at" {
		t.Errorf("got %+v, want strings.Join(at(p), \" \") /expires_at", p)
	}
	if p := w.do(bob, "POST", ownKeys, `{"principal":"user:ada","scopes":["x"],"name":""}`).want(422).
		problem(); len(p.Errors) != 3 {
		t.Errorf("got %+v, want len(Errors) 3", p)
	}
	var list KeyList
	w.do(made.Secret, "GET", ownKeys, "").want(200).into(&list)
	if len(list.Keys) != 2 || list.Keys[0].ID != made.ID {
		t.Errorf("got %+v, want len(Keys) 2, list.Keys[0].ID %v", list, made.ID)
	}
	for query, n := range map[string]int{
		"?state=revoked": 0, "?never_used=true&state=live": 2, "?never_used=false": 2, "?scope=svc:tasks:write": 1,
		"?ends_within=30": 0, "?limit=1": 1,
	} {
		w.do(bob, "GET", ownKeys+query, "").want(200).into(&list)
		if len(list.Keys) != n {
			t.Errorf("%s: %d keys; want %d", query, len(list.Keys), n)
		}
	}
	for _, query := range []string{
		"?state=x", "?never_used=yes", "?scope=x", "?ends_within=0", "?ends_within=x",
		"?cursor=x", "?principal=user:bob",
	} {
		w.do(bob, "GET", ownKeys+query, "").want(422)
	}
	var next KeyWithSecret
	w.do(made.Secret, "POST", ownKeys+"/"+made.ID+"/rotate", `{"overlap_seconds":60}`).want(201).into(&next)
	if deref(next.Replaces) != made.ID {
		t.Errorf("got %+v, want Replaces %v", next, made.ID)
	}
	var got Key
	w.do(bob, "GET", ownKeys+"/"+next.ID, "").want(200).into(&got)
	if deref(got.Replaces) != made.ID || got.ReplacedBy != nil {
		t.Errorf("got %+v, want Replaces %v, ReplacedBy nil", got, made.ID)
	}
	for _, c := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/rotate"}} {
		w.do(eve, c[0], ownKeys+"/"+next.ID+c[1], "").want(404)
		w.do(bob, c[0], ownKeys+"/x"+c[1], "").want(404)
	}
	w.do(bob, "DELETE", ownKeys+"/"+next.ID, "").want(200).into(&got)
	if got.State != "revoked" {
		t.Errorf("got %+v, want State revoked", got)
	}
	w.refresh()
	w.do(next.Secret, "GET", ownKeys, "").want(401)
	ada := w.admin("acme", "user:ada")
	if lines := strings.Join(w.audited(ada, "?action=key.create"), "\n"); !strings.Contains(lines,
		"user:bob key.create user:bob refused identity.scope_not_held") {
		t.Errorf("got %v, want containing user:bob key.create user:bob refused identity.scope_not_held", lines)
	}
}

func TestALinkForAMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *httpx.Options, o *Options) { o.PublicURL = "https://parley.test" })
	ada := w.admin("acme", "user:ada")
	w.member("acme", "user:bob")
	var first, again MemberLink
	w.do(ada, "POST", members+"/user:bob/link", "", "Idempotency-Key", "one").want(201).into(&first)
	res := w.do(ada, "POST", members+"/user:bob/link", "", "Idempotency-Key", "one").want(201)
	res.into(&again)
	if !strings.HasPrefix(first.URL, "https://parley.test/setup/") || first.ExpiresAt == "" || again != first ||
		res.Header.Get("Cache-Control") != "no-store" ||
		res.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%+v, %+v %v", first, again, res.Header)
	}
	for _, ref := range []string{"agent:fixer", "service:crm"} {
		if p := w.do(ada, "POST", members+"/"+ref+"/link", "").want(409).problem(); p.Code != "account.not_a_user" {
			t.Errorf("got %+v, want Code account.not_a_user", p)
		}
	}
	w.do(ada, "POST", members+"/user:nobody/link", "").want(404)
	w.do(ada, "POST", members+"/bob/link", "").want(404)
	for _, body := range []string{
		`{"expires_in_seconds":0}`, `{"expires_in_seconds":604801}`,
		`{"expires_in_seconds":"x"}`, `{"x":1}`,
	} {
		w.do(ada, "POST", members+"/user:bob/link", body).want(422)
	}
	w.do(ada, "PATCH", members+"/user:bob", `{"disabled":true}`).want(200)
	w.do(ada, "POST", members+"/user:bob/link", "{}").want(409)
	lines := strings.Join(w.audited(ada, "?action=login.link"), "\n")
	if !strings.Contains(lines, "user:ada login.link user:bob done") ||
		!strings.Contains(lines, "user:ada login.link user:bob refused identity.principal_disabled") {
		t.Errorf("got %v, want login.link of user:bob as done and as refused", lines)
	}
}

func TestWhyAnAgentHasNoWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.admin("acme", "user:ada")
	const connection = "/api/v1/orgs/acme/agents/fixer/connection"
	look := func(state string) (c AgentConnection) {
		t.Helper()
		w.do(ada, "GET", connection, "").want(200).into(&c)
		if c.State != state || c.Message == "" {
			t.Errorf("%+v; want %s", c, state)
		}
		return c
	}
	look("no_key")
	reader := w.key("acme", "agent:fixer", identity.TasksRead)
	look("wrong_scope")
	worker := w.worker()
	look("key_never_used")
	w.do(reader, "POST", claim, `{"wait_seconds":0}`).want(403)
	if c := look("wrong_scope"); len(c.Refusals) != 1 || c.Refusals[0].Principal != "agent:fixer" ||
		c.Refusals[0].Reason != "wrong_scope" {
		t.Errorf("got %+v, want len(Refusals) 1, c.Refusals[0].Principal agent:fixer, c.Refusals[0].Reason wrong_scope", c)
	}
	w.do(worker, "POST", claim, `{"wait_seconds":0,"worker":"one"}`).want(200)
	if c := look("connected"); len(c.Workers) != 1 || c.Workers[0].Name != "one" || c.LastSeenAt == nil {
		t.Errorf("got %+v, want len(Workers) 1, c.Workers[0].Name one, LastSeenAt not nil", c)
	}
	w.do(ada, "PATCH", "/api/v1/orgs/acme/agents/fixer", `{"status":"offline"}`).want(200)
	look("status_pinned")
	w.do(ada, "PATCH", "/api/v1/orgs/acme/agents/fixer", `{"disabled":true}`).want(200)
	look("agent_disabled")
	w.do(ada, "GET", "/api/v1/orgs/acme/agents/nobody/connection", "").want(404)
}

// Only the operations that pages need accept a session.
func TestSessionsReachOwnKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.member("acme", "user:bob")
	rt, ok := w.handler.(*httpx.Router)
	if !ok {
		t.Fatal("the handler is no router")
	}
	p := identity.Principal{Org: "acme", Kind: identity.User, ID: "bob"}
	rt.AcceptSessions(sessionOf{&identity.Caller{
		Principal: p, KeyID: "session-1",
		Scopes: (&identity.Member{Principal: p}).Entitled(),
	}})
	w.do("", "GET", ownKeys, "", "Cookie", "x=y").want(200)
	w.do("", "POST", ownKeys, `{"scopes":["svc:tasks:read"]}`, "Cookie", "x=y").want(201)
	if p := w.do("", "POST", ownKeys, `{"scopes":["svc:admin:admin"]}`, "Cookie", "x=y").want(403).
		problem(); p.Code != "identity.scope_not_held" {
		t.Errorf("got %+v, want Code identity.scope_not_held", p)
	}
	w.do("", "POST", claim, "{}", "Cookie", "x=y").want(401)
}

// sessionOf is a session of a caller.
type sessionOf struct{ caller *identity.Caller }

func (s sessionOf) CallerBySession(*http.Request) (*identity.Caller, error) { return s.caller, nil }
