package app

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/parley-dev/parley/internal/identity"
)

const (
	adminPassword = "four words of mine"
	callback      = "http://127.0.0.1:8123/done"
)

// running is a server that ends with the test.
func running(t *testing.T) *Server {
	t.Helper()
	s := startServer(t, testConfig(t))
	t.Cleanup(func() { _ = s.Shutdown() })
	return s
}

// browser is a person with cookies, who stops where a client would take over.
type browser struct {
	*testing.T
	http *http.Client
	base string
}

func newBrowser(t *testing.T, s *Server) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Port() == "8123" || r.URL.Port() == "5" || !strings.HasPrefix(r.URL.Scheme, "http") {
			return http.ErrUseLastResponse
		}
		return nil
	}}, s.URL()}
}

func (b *browser) do(method, addr string, form url.Values) (*http.Response, string) {
	b.Helper()
	if strings.HasPrefix(addr, "/") {
		addr = b.base + addr
	}
	r, err := http.NewRequestWithContext(b.Context(), method, addr, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := b.http.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return res, string(body)
}

// admin is the first admin, signed in.
func (s *Server) admin(t *testing.T) *browser {
	t.Helper()
	b := newBrowser(t, s)
	if res, body := b.do("POST", s.Link(), url.Values{
		"password": {adminPassword},
		"repeat":   {adminPassword},
	}); res.StatusCode != 200 ||
		!strings.Contains(body, "user:admin") {
		t.Fatal(res.Status, body)
	}
	return b
}

var answerPath = regexp.MustCompile(`action="(/oauth/authorize/[0-9a-z]+)"`)

// consent opens the address, allows the scopes, and returns what the client is told.
func (b *browser) consent(addr string, decision string, scopes ...string) url.Values {
	b.Helper()
	res, body := b.do("GET", addr, nil)
	if res.StatusCode == http.StatusSeeOther {
		return redirected(b.T, res)
	}
	m := answerPath.FindStringSubmatch(body)
	if m == nil {
		b.Fatal(res.Status, body)
	}
	res, body = b.do("POST", m[1], url.Values{"decision": {decision}, "scope": scopes})
	if res.StatusCode != http.StatusSeeOther {
		b.Fatal(res.Status, body)
	}
	return redirected(b.T, res)
}

func redirected(t *testing.T, res *http.Response) url.Values {
	t.Helper()
	u, err := res.Location()
	if err != nil {
		t.Fatal(err)
	}
	if q := u.Query(); len(q) > 0 {
		return q
	}
	q, err := url.ParseQuery(u.Fragment)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// registered is a client that registered itself.
func registered(t *testing.T, s *Server, extra string) (*oauth2.Config, map[string]any) {
	t.Helper()
	code, body := post(t, s.URL()+"/oauth/register", "", `{"client_name":"Editor","redirect_uris":["`+callback+`"]`+extra+`}`)
	var m map[string]any
	if err := json.Unmarshal([]byte(body), &m); err != nil || code != 201 {
		t.Fatal(code, body, err)
	}
	id, _ := m["client_id"].(string)
	secret, _ := m["client_secret"].(string)
	style := oauth2.AuthStyleInParams
	if m["token_endpoint_auth_method"] == "client_secret_basic" {
		style = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{ClientID: id, ClientSecret: secret, RedirectURL: callback, Endpoint: oauth2.Endpoint{
		AuthURL: s.URL() + "/oauth/authorize", TokenURL: s.URL() + "/oauth/token", AuthStyle: style,
	}}, m
}

func post(t *testing.T, addr, key, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", addr, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(b)
}

// token goes the whole way of a client: question, code, token.
func (b *browser) token(c *oauth2.Config, extra []oauth2.AuthCodeOption, scopes ...string) *oauth2.Token {
	b.Helper()
	verifier := oauth2.GenerateVerifier()
	q := b.consent(c.AuthCodeURL("state-1", append(extra, oauth2.S256ChallengeOption(verifier))...), "allow", scopes...)
	if q.Get("state") != "state-1" || q.Get("iss") != b.base || q.Get("code") == "" {
		b.Fatalf("the client was told %v", q)
	}
	tok, err := c.Exchange(b.Context(), q.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		b.Fatal(err)
	}
	return tok
}

const list = "/api/v1/orgs/main/proposals"

func TestACodeIsTradedForTokensThatWorkEverywhere(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	for _, method := range []string{"none", "client_secret_basic", "client_secret_post"} {
		c, meta := registered(t, s, `,"token_endpoint_auth_method":"`+method+`"`)
		if (meta["client_secret"] == nil) != (method == "none") {
			t.Error(meta)
		}
		tok := b.token(c, nil, "svc:tasks:read", "svc:a2a:write")
		if !strings.HasPrefix(tok.AccessToken, identity.TokenPrefix) || tok.Type() != "Bearer" || tok.RefreshToken == "" ||
			time.Until(tok.Expiry) > 15*time.Minute || tok.Extra("scope") != "svc:tasks:read svc:a2a:write" {
			t.Errorf("%s: token %+v %v", method, tok, tok.Extra("scope"))
		}
		if code, body := get(t, s.URL()+list, tok.AccessToken); code != 200 {
			t.Error(code, body)
		}
		// The person took svc:tasks:write away.
		if code, body := post(t, s.URL()+list, tok.AccessToken, `{}`); code != 403 {
			t.Error(code, body)
		}
		if code, body := post(t, s.URL()+"/a2a/echo", tok.AccessToken,
			`{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"t-`+method+`",`+
				`"message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}}`,
		); code != 200 || !strings.Contains(body, `"result"`) {
			t.Error(code, body)
		}
		if code, body := mcpList(t, s, tok.AccessToken); code != 200 {
			t.Error(code, body)
		}
		// x/oauth2 refreshes by itself what has expired.
		old := tok.RefreshToken
		tok.Expiry = time.Now().Add(-time.Second)
		fresh, err := c.TokenSource(t.Context(), tok).Token()
		if err != nil || fresh.AccessToken == tok.AccessToken || fresh.RefreshToken == old || fresh.RefreshToken == "" {
			t.Fatal(fresh, err)
		}
		if code, _ := get(t, s.URL()+list, fresh.AccessToken); code != 200 {
			t.Error(code)
		}
	}
}

func mcpList(t *testing.T, s *Server, token string) (int, string) {
	return post(t, s.URL()+"/mcp", token, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`)
}

func TestATokenForOneResourceWorksThereOnly(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	c, _ := registered(t, s, "")
	tok := b.token(c, []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("resource", s.URL()+"/mcp")}, "svc:tasks:read")
	if code, body := mcpList(t, s, tok.AccessToken); code != 200 {
		t.Error(code, body)
	}
	if code, body := get(t, s.URL()+list, tok.AccessToken); code != 401 || !strings.Contains(body, "auth.audience") {
		t.Error(code, body)
	}
	// A refresh cannot shake it off.
	form := url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {tok.RefreshToken}, "client_id": {c.ClientID},
		"resource": {s.URL()},
	}
	if res, body := b.do("POST", "/oauth/token", form); res.StatusCode != 400 || !strings.Contains(body, "invalid_target") {
		t.Error(res.Status, body)
	}
	form.Del("resource")
	res, body := b.do("POST", "/oauth/token", form)
	var fresh oauth2.Token
	if err := json.Unmarshal([]byte(body), &fresh); err != nil || res.StatusCode != 200 {
		t.Fatal(res.Status, body)
	}
	if code, _ := get(t, s.URL()+list, fresh.AccessToken); code != 401 {
		t.Error(code)
	}
	if q := b.consent(c.AuthCodeURL("s", oauth2.S256ChallengeOption("x"),
		oauth2.SetAuthURLParam("resource", "https://other.example")), "allow"); q.Get("error") != "invalid_target" {
		t.Error(q)
	}
}

func TestAKeyOfAServiceIsAClientOfItsOwn(t *testing.T) {
	t.Parallel()
	s := running(t)
	ctx, op := t.Context(), identity.NewOperator(s.store.IdentityStores(), Now, newIDs(Now).next)
	p := identity.Principal{Org: "main", Kind: identity.Service, ID: "crm"}
	if _, err := op.CreateMember(ctx, p, "", false); err != nil {
		t.Fatal(err)
	}
	k, secret, err := op.CreateKey(ctx, identity.KeyRequest{
		Principal: p,
		Scopes:    []string{"svc:tasks:read", "svc:a2a:write", "agent:nobody"},
	})
	if err != nil {
		t.Fatal(err)
	}
	conf := clientcredentials.Config{ClientID: k.ID, ClientSecret: secret, TokenURL: s.URL() + "/oauth/token"}
	for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleInHeader, oauth2.AuthStyleInParams} {
		conf.AuthStyle = style
		tok, err := conf.Token(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if tok.RefreshToken != "" || tok.Extra("scope") != "svc:tasks:read svc:a2a:write agent:nobody" {
			t.Error(tok, tok.Extra("scope"))
		}
		if code, body := get(t, s.URL()+list, tok.AccessToken); code != 200 {
			t.Error(code, body)
		}
	}
	conf.Scopes = []string{"svc:a2a:write"} // the restriction to an agent stays
	tok, err := conf.Token(ctx)
	if err != nil || tok.Extra("scope") != "svc:a2a:write agent:nobody" {
		t.Error(tok, err)
	}
	if code, body := post(t, s.URL()+"/a2a/echo", tok.AccessToken,
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"x"}}`); code != 403 {
		t.Error(code, body)
	}
	for _, scope := range []string{"svc:admin:admin", "svc:tasks:write", "agent:*", "svc:a2a:write agent:echo"} {
		conf.Scopes = strings.Fields(scope)
		if tok, err := conf.Token(ctx); err == nil {
			t.Errorf("%s: %v", scope, tok.Extra("scope"))
		}
	}
	conf.Scopes, conf.ClientSecret = nil, s.First().Secret
	if _, err := conf.Token(ctx); err == nil || !strings.Contains(err.Error(), "invalid_client") {
		t.Error(err)
	}
	// A user's key is no client.
	keys, err := op.Keys(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		conf.ClientID = k.ID
		if _, err := conf.Token(ctx); err == nil {
			t.Error("the first admin's key got a token of its own", k.ID)
		}
	}
}

// Seen in a trial of the library: whoever registers gets client_credentials, and with
// it any scope.
func TestRegistrationYieldsNothingByItself(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	for _, body := range []string{
		`{"redirect_uris":["` + callback + `"],"grant_types":["client_credentials"]}`,
		`{"redirect_uris":["` + callback + `"],"grant_types":["authorization_code","client_credentials"]}`,
		`{"redirect_uris":["` + callback + `"],"scope":"svc:admin:admin"}`,
		`{"redirect_uris":["` + callback + `"],"scope":"svc:a2a:serve"}`,
		`{"redirect_uris":["http://evil.example/"]}`,
		`{"redirect_uris":[]}`, `{}`, `[]`, `x`,
	} {
		if code, answer := post(t, s.URL()+"/oauth/register", "", body); code != 400 ||
			!strings.Contains(answer, `"error":"invalid_`) {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	for _, method := range []string{"none", "client_secret_post"} {
		c, _ := registered(t, s, `,"token_endpoint_auth_method":"`+method+`"`)
		form := url.Values{
			"grant_type": {"client_credentials"}, "client_id": {c.ClientID}, "client_secret": {c.ClientSecret},
			"scope": {"svc:admin:admin"},
		}
		if res, body := b.do("POST", "/oauth/token", form); res.StatusCode != 400 ||
			!strings.Contains(body, "unauthorized_client") {
			t.Error(res.Status, body)
		}
		// Not even the admin can give it what it must not have.
		res, body := b.do("GET", c.AuthCodeURL("s", oauth2.S256ChallengeOption("x"),
			oauth2.SetAuthURLParam("scope", "svc:admin:admin")), nil)
		if res.StatusCode != 400 || !strings.Contains(body, "none of the scopes can be given") &&
			!strings.Contains(body, "scope") {
			t.Error(res.Status, body)
		}
		tok := b.token(c, nil, "svc:tasks:read", "svc:admin:admin", "svc:a2a:serve")
		if tok.Extra("scope") != "svc:tasks:read" {
			t.Error(tok.Extra("scope"))
		}
		// Agents out of reach are none that one could be restricted to.
		tok = b.token(c, []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("scope", "svc:tasks:read svc:a2a:write agent:hidden")},
			"svc:tasks:read", "svc:a2a:write", "agent:hidden")
		if tok.Extra("scope") != "svc:tasks:read" {
			t.Error(tok.Extra("scope"))
		}
		tok = b.token(c, []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("scope", "svc:tasks:read svc:a2a:write agent:echo")},
			"svc:tasks:read", "svc:a2a:write")
		if tok.Extra("scope") != "svc:tasks:read svc:a2a:write agent:echo" {
			t.Error(tok.Extra("scope"))
		}
		// A refresh for one scope keeps its restriction.
		form = url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {tok.RefreshToken}, "client_id": {c.ClientID},
			"client_secret": {c.ClientSecret},
			"scope":         {"svc:a2a:write"},
		}
		if res, body := b.do("POST", "/oauth/token", form); res.StatusCode != 200 ||
			!strings.Contains(body, `"svc:a2a:write agent:echo"`) {
			t.Error(res.Status, body)
		}
	}
}

// Seen in a trial: one code redeemed ten times at once, and no end of the family when
// an old refresh token comes back.
func TestCodesAndRefreshTokensWorkOnce(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	c, _ := registered(t, s, "")
	race := func(form url.Values) (int64, string) {
		var won atomic.Int64
		var token atomic.Value
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				res, err := http.PostForm(s.URL()+"/oauth/token", form)
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				body, _ := io.ReadAll(res.Body)
				switch {
				case res.StatusCode == 200:
					won.Add(1)
					token.Store(string(body))
				case res.StatusCode != 400 || !strings.Contains(string(body), "invalid_grant"):
					t.Error(res.Status, string(body))
				}
			})
		}
		wg.Wait()
		body, _ := token.Load().(string)
		return won.Load(), body
	}
	verifier := oauth2.GenerateVerifier()
	q := b.consent(c.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)), "allow", "svc:tasks:read")
	n, body := race(url.Values{
		"grant_type": {"authorization_code"}, "code": {q.Get("code")}, "client_id": {c.ClientID}, "redirect_uri": {callback},
		"code_verifier": {verifier},
	})
	if n != 1 {
		t.Errorf("one code was redeemed %d times", n)
	}
	var tok oauth2.Token
	if err := json.Unmarshal([]byte(body), &tok); err != nil {
		t.Fatal(err)
	}
	if !ends(t, s, tok.AccessToken) {
		t.Error("the token of a code that was used twice still works")
	}

	first := b.token(c, nil, "svc:tasks:read")
	if n, body = race(url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {first.RefreshToken},
		"client_id": {c.ClientID},
	}); n != 1 {
		t.Errorf("one refresh token was used %d times", n)
	}
	if err := json.Unmarshal([]byte(body), &tok); err != nil {
		t.Fatal(err)
	}
	if !ends(t, s, first.AccessToken) || !ends(t, s, tok.AccessToken) {
		t.Error("a refresh token that was used twice did not end the family")
	}

	// One after the other, too.
	first = b.token(c, nil, "svc:tasks:read")
	src := func(refresh string) (*oauth2.Token, error) {
		return c.TokenSource(context.Background(), &oauth2.Token{RefreshToken: refresh}).Token()
	}
	second, err := src(first.RefreshToken)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src(first.RefreshToken); err == nil {
		t.Error("an old refresh token works")
	}
	if _, err := src(second.RefreshToken); err == nil {
		t.Error("the family lives on")
	}
	if !ends(t, s, second.AccessToken) {
		t.Error("a token of the family lives on")
	}
}

// ends waits until a token is refused, which takes seconds; the limit has room for a
// busy machine.
func ends(t *testing.T, s *Server, token string) bool {
	t.Helper()
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if code, _ := get(t, s.URL()+list, token); code == 401 {
			return true
		}
	}
	return false
}
