package app

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/event"
)

// call sends JSON as a page in the browser would, with its cookie and no key.
func (b *browser) call(method, path, body string, headers ...string) (int, string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := b.http.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return res.StatusCode, string(out)
}

const aProposal = `{"title":"By a session","category":"process","problem":"Only keys.","suggested_fix":"Cookies."}`

// TestASessionFollowsEvents: an EventSource of a page sends its cookie, but no headers of its own.
func TestASessionFollowsEvents(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	r, err := http.NewRequestWithContext(b.Context(), "GET", b.base+"/api/v1/orgs/main/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := b.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || got != "text/event-stream" {
		t.Fatalf("got %d %s, want a stream", res.StatusCode, got)
	}
	happened := event.New("main", event.ProposalVoted, Now(), "proposal:1", "user:admin", event.Admins, []byte("{}"))
	if err := s.store.Events().Append(t.Context(), happened); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(res.Body); ; {
		if !lines.Scan() {
			t.Fatal("the stream ended without the event", lines.Err())
		}
		if strings.Contains(lines.Text(), happened.ID) {
			return
		}
	}
}

func TestASessionCallsTheInterface(t *testing.T) {
	t.Parallel()
	s := running(t)
	if code, body := newBrowser(t, s).call("GET", list, ""); code != 401 {
		t.Error("nobody is signed in:", code, body)
	}
	b := s.admin(t)
	if code, body := b.call("POST", list, aProposal, "Sec-Fetch-Site", "same-origin"); code != 201 ||
		!strings.Contains(body, `"submitted_by":"user:admin"`) {
		t.Fatal(code, body)
	}
	if code, body := b.call("GET", list, ""); code != 200 || !strings.Contains(body, "By a session") {
		t.Error(code, body)
	}
	// An admin who is signed in administers, and the log names the session.
	if code, body := b.call("PUT", "/api/v1/orgs/main/settings/friction", `{"threshold":5}`); code != 200 {
		t.Error(code, body)
	}
	if _, body := b.call("GET", "/api/v1/orgs/main/audit?action=friction.threshold",
		""); !strings.Contains(body, `"actor":"user:admin"`) ||
		!strings.Contains(body, `"session-`) {
		t.Error(body)
	}
	if code, body := b.call("GET", "/api/v1/me", ""); code != 200 || !strings.Contains(body, `"principal":"user:admin"`) {
		t.Error(code, body)
	}
	// Where pages ask for the password again, a session alone does not do.
	for _, c := range [][2]string{
		{"/api/v1/orgs/main/keys", `{"principal":"user:admin","scopes":["svc:admin:admin"]}`},
		{"/api/v1/me/keys", `{"scopes":["svc:tasks:read","svc:admin:admin"]}`},
	} {
		if code, body := b.call("POST", c[0], c[1]); code != 403 || !strings.Contains(body, "auth.confirm") {
			t.Error(c[0], code, body)
		}
	}
	if code, body := b.call("POST", "/api/v1/me/keys", `{"scopes":["svc:tasks:read"]}`); code != 201 {
		t.Error(code, body)
	}
	if code, body := b.call("POST", "/api/v1/orgs/main/members/user:admin/link", `{}`); code != 409 ||
		!strings.Contains(body, "account.own_link") {
		t.Error(code, body)
	}
	// Another org's paths are as unknown as with a key.
	if code, _ := b.call("GET", "/api/v1/orgs/other/proposals", ""); code != 404 {
		t.Error(code)
	}
	// A key that was sent counts, good or bad, whoever is signed in.
	if code, _ := b.call("GET", list, "", "Authorization", "Bearer wrong"); code != 401 {
		t.Error("a bad key passed by the session's grace:", code)
	}
	// Programs' protocols take no cookie.
	for _, path := range []string{"/mcp", "/a2a/echo"} {
		if code, body := b.call("POST", path, `{"jsonrpc":"2.0","id":1,"method":"tasks/list","params":{}}`); code == 200 &&
			!strings.Contains(body, "error") {
			t.Error(path, code, body)
		}
	}
	if code, _ := b.call("GET", "/api/v1/agents/echo/tasks", ""); code != 401 && code != 404 && code != 405 {
		t.Error("a worker by session:", code)
	}

	b.do("POST", "/logout", map[string][]string{})
	if code, _ := b.call("GET", list, ""); code != 401 {
		t.Error("a session that was ended:", code)
	}
}

func TestOtherSitesCannotUseASession(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
	} {
		code, body := b.call("POST", list, aProposal, headers...)
		if code != 403 || !strings.Contains(body, "auth.other_site") {
			t.Error(headers, code, body)
		}
	}
	if _, body := b.call("GET", list, ""); strings.Contains(body, "By a session") {
		t.Error("another site filed a proposal", body)
	}
	// With a key the page of another site acts for itself.
	if code, body := b.call("POST", list, aProposal, "Origin", "https://tool.example", "Authorization",
		"Bearer "+s.First().Secret); code != 201 {
		t.Error(code, body)
	}
}

// Behind a proxy browsers know the server by another name.
func TestASessionBehindAProxy(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.PublicURL = "https://parley.example"
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	send := func(path, contentType, body, cookie string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Origin", "https://parley.example")
		r.Header.Set("Cookie", cookie)
		rec := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(rec, r)
		return rec
	}
	form := "password=four+words+of+mine&repeat=four+words+of+mine"
	res := send(strings.TrimPrefix(s.Link(), "https://parley.example"), "application/x-www-form-urlencoded", form, "").Result()
	if res.StatusCode != 303 || len(res.Cookies()) != 1 {
		t.Fatal(res.Status, res.Cookies())
	}
	cookie := res.Cookies()[0].Name + "=" + res.Cookies()[0].Value
	if rec := send(list, "application/json", aProposal, cookie); rec.Code != 201 {
		t.Error(rec.Code, rec.Body)
	}
	// Without the prefix any host of the domain could have set it.
	if rec := send(list, "application/json", aProposal, strings.TrimPrefix(cookie, "__Host-")); rec.Code != 401 {
		t.Error(rec.Code, rec.Body)
	}
}

// A session outlives a role. What it was shown while it had more rights is not shown
// again from memory.
func TestASessionLosesItsRightsAtOnce(t *testing.T) {
	t.Parallel()
	s := running(t)
	key := s.First().Secret
	draft := strings.Replace(aProposal, "{", `{"status":"draft",`, 1)
	if code, body := post(t, s.URL()+list, key, draft); code != 201 {
		t.Fatal(code, body)
	}
	_, body := post(t, s.URL()+"/api/v1/orgs/main/invitations", key, `{"user":"ada","admin":true}`)
	var inv struct{ URL string }
	if err := json.Unmarshal([]byte(body), &inv); err != nil || inv.URL == "" {
		t.Fatal(body, err)
	}
	ada := newBrowser(t, s)
	ada.do("POST", inv.URL, url.Values{"password": {adminPassword}, "repeat": {adminPassword}})
	for range 2 { // the second comes from memory
		if code, body := ada.call("GET", list+"?status=draft", ""); code != 200 || !strings.Contains(body, "By a session") {
			t.Fatal(code, body)
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), "PATCH", s.URL()+"/api/v1/orgs/main/members/user:ada",
		strings.NewReader(`{"admin":false}`))
	r.Header.Set("Authorization", "Bearer "+key)
	if res, err := http.DefaultClient.Do(r); err != nil || res.StatusCode != 200 {
		t.Fatal(res, err)
	}
	if code, body := ada.call("GET", list+"?status=draft", ""); code != 200 || !strings.Contains(body, `"total":0`) {
		t.Error("another's draft is shown:", code, body)
	}
}
