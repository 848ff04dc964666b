package app

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/parley-dev/parley/internal/identity"
)

func TestTheFirstLinkSetsThePasswordOnce(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := newBrowser(t, s)
	if !strings.HasPrefix(s.Link(), s.URL()+"/setup/") {
		t.Fatal(s.Link())
	}
	res, body := b.do("GET", s.Link(), nil)
	csp := res.Header.Get("Content-Security-Policy")
	if res.StatusCode != 200 || !strings.Contains(csp, "default-src 'none'") ||
		!strings.Contains(csp, "frame-ancestors 'none'") ||
		strings.Contains(csp, "unsafe") || strings.Contains(body, "<script") || res.Header.Get("Cache-Control") != "no-store" {
		t.Error(res.Status, res.Header, body)
	}
	for _, bad := range []string{"short", "aaaaaaaaaaaaaaa", "admin12345678", "password12345", "123456789012"} {
		if res, _ := b.do("POST", s.Link(), url.Values{"password": {bad}, "repeat": {bad}}); res.StatusCode != 422 {
			t.Errorf("the password %q: %s", bad, res.Status)
		}
	}
	if res, _ := b.do("POST", s.Link(), url.Values{
		"password": {adminPassword},
		"repeat":   {adminPassword + "x"},
	}); res.StatusCode != 422 {
		t.Error(res.Status)
	}
	if res, _ := b.do("POST", s.Link(), url.Values{
		"password": {adminPassword},
		"repeat":   {adminPassword},
	}); res.StatusCode != 200 {
		t.Error(res.Status)
	}
	other := newBrowser(t, s)
	if res, _ := other.do("POST", s.Link(), url.Values{
		"password": {"another password"},
		"repeat":   {"another password"},
	}); res.StatusCode != 404 {
		t.Error("a link worked twice:", res.Status)
	}
}

func signIn(b *browser, org, user, password string) (*http.Response, string) {
	b.Helper()
	return b.do("POST", "/login", url.Values{"org": {org}, "user": {user}, "password": {password}})
}

func TestSigningInAndOut(t *testing.T) {
	t.Parallel()
	s := running(t)
	first := s.admin(t)
	b := newBrowser(t, s)
	if res, body := signIn(b, "main", "admin", adminPassword); res.StatusCode != 200 || !strings.Contains(body, "user:admin") {
		t.Fatal(res.Status, body)
	}
	u, _ := url.Parse(s.URL())
	cookies := b.http.Jar.Cookies(u)
	if len(cookies) != 1 {
		t.Fatal(cookies)
	}
	// The token is nowhere in the store, only its hash.
	assertNotStored(t, s, cookies[0].Value)

	res, _ := b.do("POST", "/logout", url.Values{})
	if res.Request.URL.Path != "/login" {
		t.Error(res.Request.URL)
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/account", nil)
	r.AddCookie(cookies[0])
	if res, err := http.DefaultTransport.RoundTrip(r); err != nil || res.StatusCode != http.StatusSeeOther {
		t.Error("a session outlived its end", res, err)
	}
	if res, _ := first.do("GET", "/account", nil); res.Request.URL.Path != "/account" {
		t.Error("one's sign-out ended another session")
	}

	signIn(b, "main", "admin", adminPassword)
	before := b.http.Jar.Cookies(u)[0].Value
	signIn(b, "main", "admin", adminPassword)
	if before == b.http.Jar.Cookies(u)[0].Value {
		t.Error("signing in kept the session's token")
	}
	b.do("POST", "/logout/everywhere", url.Values{})
	if res, _ := first.do("GET", "/account", nil); res.Request.URL.Path != "/login" {
		t.Error("a session is left after signing out everywhere")
	}

	signIn(b, "main", "admin", adminPassword)
	signIn(first, "main", "admin", adminPassword)
	change := url.Values{"old": {adminPassword}, "password": {"six other words of mine"}, "repeat": {"six other words of mine"}}
	if res, body := b.do("POST", "/account/password", change); res.StatusCode != 200 || !strings.Contains(body, "was changed") {
		t.Error(res.Status, body)
	}
	if res, _ := b.do("GET", "/account", nil); res.Request.URL.Path != "/account" {
		t.Error("who changes the password is out")
	}
	if res, _ := first.do("GET", "/account", nil); res.Request.URL.Path != "/login" {
		t.Error("a session outlived its password")
	}
	if res, _ := b.do("POST", "/account/password", change); res.StatusCode != 422 {
		t.Error("the old password is good for a change:", res.Status)
	}
	if res, _ := signIn(newBrowser(t, s), "main", "admin", adminPassword); res.StatusCode != 401 {
		t.Error(res.Status)
	}
	_, body := get(t, s.URL()+"/api/v1/orgs/main/audit?limit=50", s.First().Secret)
	for _, action := range []string{
		`"login"`, `"logout"`, `"logout.everywhere"`, `"password.change"`, `"login.failed"`,
		`"login.link"`,
	} {
		if !strings.Contains(body, `"action":`+action) {
			t.Errorf("the audit log lacks %s: %s", action, body)
		}
	}
}

func TestNobodyLearnsWhoHasAnAccount(t *testing.T) {
	t.Parallel()
	s := running(t)
	s.admin(t)
	b := newBrowser(t, s)
	_, wrong := signIn(b, "main", "admin", "not my password")
	for _, who := range [][2]string{{"main", "nobody"}, {"none", "admin"}, {"Main", "ADMIN"}, {"<b>", "' OR 1=1"}} {
		res, body := signIn(b, who[0], who[1], "not my password")
		if res.StatusCode != 401 || strings.Contains(body, "<b>\"") {
			t.Error(res.Status)
		}
		if !strings.Contains(body, "is wrong.") || !strings.Contains(wrong, "is wrong.") {
			t.Error(body)
		}
	}
	// Guessing is slow, for the account as for the address.
	limited := 0
	for range 30 {
		if res, _ := signIn(b, "main", "admin", "not my password"); res.StatusCode == 429 {
			limited++
		}
	}
	if limited == 0 {
		t.Error("thirty guesses and no limit")
	}
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	for path, headers := range map[string]map[string]string{
		"/logout":           {"Sec-Fetch-Site": "cross-site"},
		"/account/password": {"Origin": "https://evil.example"},
		"/login":            {"Origin": "null"},
	} {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL()+path, strings.NewReader(""))
		for k, v := range headers {
			r.Header.Set(k, v)
		}
		res, err := b.http.Do(r)
		if err != nil || res.StatusCode != 403 {
			t.Error(path, res, err)
		}
	}
	if res, _ := b.do("GET", "/account", nil); res.Request.URL.Path != "/account" {
		t.Error("a form of another site ended the session")
	}
	for _, path := range []string{"/logout", "/logout/everywhere", "/account/password"} {
		if res, _ := b.do("GET", path, nil); res.StatusCode != 405 {
			t.Error("a GET changes something:", path, res.Status)
		}
	}
	for _, next := range []string{
		"https://evil.example", "//evil.example", "/\\evil.example", "/oauth/authorize@evil",
		"javascript:x", "/logout",
	} {
		res, _ := b.do("GET", "/login?next="+url.QueryEscape(next), nil)
		if res.Request.URL.Path != "/orgs/main/start" {
			t.Errorf("next %q leads to %s", next, res.Request.URL)
		}
	}
}

func TestCookiesOfHTTPS(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.PublicURL = "https://parley.example"
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	path := strings.TrimPrefix(s.Link(), "https://parley.example")
	r := httptest.NewRequest("POST", path, strings.NewReader(url.Values{
		"password": {adminPassword},
		"repeat":   {adminPassword},
	}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://parley.example") // a proxy has changed the host
	rec := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(rec, r)
	c := rec.Header().Get("Set-Cookie")
	if rec.Code != 303 || !strings.HasPrefix(c, "__Host-") || !strings.Contains(c, "Secure") ||
		!strings.Contains(c, "HttpOnly") ||
		!strings.Contains(c, "SameSite=Lax") || !strings.Contains(c, "Path=/") || strings.Contains(c, "Domain") {
		t.Error(rec.Code, c)
	}
}

func TestAnInvitationIsAcceptedInABrowser(t *testing.T) {
	t.Parallel()
	s := running(t)
	code, body := post(t, s.URL()+"/api/v1/orgs/main/invitations", s.First().Secret, `{"user":"ada"}`)
	var inv struct{ URL string }
	if err := json.Unmarshal([]byte(body), &inv); err != nil || code != 201 || inv.URL == "" {
		t.Fatal(code, body, err)
	}
	b := newBrowser(t, s)
	if res, body := b.do("GET", inv.URL, nil); res.StatusCode != 200 || !strings.Contains(body, "user:admin") {
		t.Error(res.Status, body)
	}
	if res, _ := b.do("POST", inv.URL, url.Values{"password": {"short"}, "repeat": {"short"}}); res.StatusCode != 422 {
		t.Error(res.Status)
	}
	if res, body := b.do("POST", inv.URL, url.Values{
		"password": {adminPassword},
		"repeat":   {adminPassword},
	}); !strings.HasPrefix(res.Request.URL.Path, "/orgs/main") {
		t.Error(res.Status, body)
	}
	if res, _ := newBrowser(t, s).do("POST", inv.URL,
		url.Values{"password": {adminPassword}, "repeat": {adminPassword}}); res.StatusCode != 404 {
		t.Error(res.Status)
	}

	// A member who is no admin cannot give an admin's rights away.
	c, _ := registered(t, s, "")
	tok := b.token(c, nil, "svc:tasks:read", "svc:tasks:write", "svc:admin:admin")
	if tok.Extra("scope") != "svc:tasks:read svc:tasks:write" {
		t.Error(tok.Extra("scope"))
	}

	// Whatever the credential, a person has one vote.
	p, secret := identity.Principal{Org: "main", Kind: identity.User, ID: "ada"}, ""
	_, secret, err := identity.NewOperator(s.store.IdentityStores(), Now, newIDs(Now).next).CreateKey(t.Context(),
		identity.KeyRequest{Principal: p, Scopes: []string{"svc:tasks:read", "svc:tasks:write"}})
	if err != nil {
		t.Fatal(err)
	}
	_, body = post(t, s.URL()+list, secret, `{"title":"One vote","category":"process","problem":"Two keys.","suggested_fix":"One person."}`)
	var prop struct{ ID string }
	if err := json.Unmarshal([]byte(body), &prop); err != nil || prop.ID == "" {
		t.Fatal(body, err)
	}
	for _, cred := range []string{secret, tok.AccessToken, secret} {
		if code, body := post(t, s.URL()+list+"/"+prop.ID+"/vote", cred, `{"vote":"for"}`); code/100 != 2 ||
			!strings.Contains(body, `"votes_for":1`) {
			t.Error(code, body)
		}
	}
	if code, body := b.call("POST", list+"/"+prop.ID+"/vote", `{"vote":"for"}`); code/100 != 2 ||
		!strings.Contains(body, `"votes_for":1`) {
		t.Error("by the session:", code, body)
	}

	// Disabling the member ends session, token and refresh token.
	req, _ := http.NewRequestWithContext(t.Context(), "PATCH", s.URL()+"/api/v1/orgs/main/members/user:ada",
		strings.NewReader(`{"disabled":true}`))
	req.Header.Set("Authorization", "Bearer "+s.First().Secret)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != 200 {
		t.Fatal(res, err)
	}
	if res, _ := b.do("GET", "/account", nil); res.Request.URL.Path != "/login" {
		t.Error("a disabled member is signed in")
	}
	if code, _ := b.call("GET", list, ""); code != 401 {
		t.Error("a disabled member's session calls the interface:", code)
	}
	if !ends(t, s, tok.AccessToken) {
		t.Error("a disabled member's token works")
	}
	if _, err := c.TokenSource(t.Context(), &oauth2.Token{RefreshToken: tok.RefreshToken}).Token(); err == nil {
		t.Error("a disabled member's refresh token works")
	}
}

// assertNotStored looks for a secret in the files of the store.
func assertNotStored(t *testing.T, s *Server, secrets ...string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.cfg.Data, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			if secret == "" || bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s holds a secret in clear", filepath.Base(f))
			}
		}
	}
}
