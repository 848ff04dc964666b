package app

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/parley-dev/parley/internal/identity"
)

// Seen in a trial: refresh tokens reached storage in clear.
func TestNothingSecretIsStored(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	c, _ := registered(t, s, `,"token_endpoint_auth_method":"client_secret_post"`)
	verifier := oauth2.GenerateVerifier()
	q := b.consent(c.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)), "allow", "svc:tasks:read")
	assertNotStored(t, s, q.Get("code"), c.ClientSecret, adminPassword)
	tok, err := c.Exchange(t.Context(), q.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.TokenSource(t.Context(), &oauth2.Token{RefreshToken: tok.RefreshToken}).Token()
	if err != nil {
		t.Fatal(err)
	}
	assertNotStored(t, s, tok.AccessToken, tok.RefreshToken, second.AccessToken, second.RefreshToken, verifier)
}

// Seen in a trial: a revocation that did nothing.
func TestRevokedTokensEnd(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	c, _ := registered(t, s, "")
	other, _ := registered(t, s, "")
	tok := b.token(c, nil, "svc:tasks:read")
	if res, body := b.do("POST", "/oauth/revoke", url.Values{
		"token":     {tok.AccessToken},
		"client_id": {other.ClientID},
	}); res.StatusCode != 403 {
		t.Error("another client's token:", res.Status, body)
	}
	// The first look at the epoch empties the memory in any case.
	if err := s.auth.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, _ := get(t, s.URL()+list, tok.AccessToken); code != 200 {
		t.Error(code)
	}
	if res, body := b.do("POST", "/oauth/revoke", url.Values{
		"token":     {tok.AccessToken},
		"client_id": {c.ClientID},
	}); res.StatusCode != 200 {
		t.Error(res.Status, body)
	}
	if !ends(t, s, tok.AccessToken) {
		t.Error("a revoked token works")
	}
	// The rest of the grant goes on, until its refresh token is revoked.
	fresh, err := c.TokenSource(t.Context(), &oauth2.Token{RefreshToken: tok.RefreshToken}).Token()
	if err != nil {
		t.Fatal(err)
	}
	if res, body := b.do("POST", "/oauth/revoke", url.Values{
		"token":     {fresh.RefreshToken},
		"client_id": {c.ClientID},
	}); res.StatusCode != 200 {
		t.Error(res.Status, body)
	}
	if !ends(t, s, fresh.AccessToken) {
		t.Error("a token of a revoked grant works")
	}
	for _, unknown := range []string{"x", identity.NewToken(), "a.b.c", "eyJhbGciOiJub25lIn0.e30."} {
		if res, body := b.do("POST", "/oauth/revoke",
			url.Values{"token": {unknown}, "client_id": {c.ClientID}}); res.StatusCode != 200 {
			t.Error(unknown, res.Status, body)
		}
	}
}

func TestIntrospection(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	c, _ := registered(t, s, `,"token_endpoint_auth_method":"client_secret_post"`)
	other, _ := registered(t, s, `,"token_endpoint_auth_method":"client_secret_post"`)
	public, _ := registered(t, s, "")
	tok := b.token(c, nil, "svc:tasks:read")
	ask := func(id, secret, token string) map[string]any {
		t.Helper()
		res, body := b.do("POST", "/oauth/introspect", url.Values{"token": {token}, "client_id": {id}, "client_secret": {secret}})
		var m map[string]any
		if err := json.Unmarshal([]byte(body), &m); err != nil || res.StatusCode != 200 {
			t.Fatal(res.Status, body)
		}
		return m
	}
	m := ask(c.ClientID, c.ClientSecret, tok.AccessToken)
	if m["active"] != true || m["scope"] != "svc:tasks:read" || m["sub"] != "main/user:admin" ||
		m["principal"] != "user:admin" || m["client_id"] != c.ClientID {
		t.Error(m)
	}
	if m := ask(c.ClientID, c.ClientSecret, tok.RefreshToken); m["active"] != true {
		t.Error(m)
	}
	if m := ask(other.ClientID, other.ClientSecret, tok.AccessToken); len(m) != 1 || m["active"] != false {
		t.Error("another client learns", m)
	}
	if m := ask(public.ClientID, "", tok.AccessToken); m["active"] != false {
		t.Error("a public client learns", m)
	}
	if res, _ := b.do("POST", "/oauth/introspect", url.Values{"token": {tok.AccessToken}}); res.StatusCode != 401 {
		t.Error("anybody learns", res.Status)
	}
	fresh, err := c.TokenSource(t.Context(), &oauth2.Token{RefreshToken: tok.RefreshToken}).Token()
	if err != nil {
		t.Fatal(err)
	}
	if m := ask(c.ClientID, c.ClientSecret, tok.RefreshToken); m["active"] != false {
		t.Error("a used refresh token is active", m)
	}
	if m := ask(c.ClientID, c.ClientSecret, fresh.AccessToken); m["active"] != true {
		t.Error("asking about an old refresh token ended the family", m)
	}
}

// Seen in a trial: the library matches the ports of native clients wrongly.
func TestNativeClientsComeBackToAnyPort(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	c, _ := registered(t, s, `,"application_type":"native"`)
	for _, uri := range []string{callback, "http://127.0.0.1:5/done"} {
		c.RedirectURL = uri
		if tok := b.token(c, nil, "svc:tasks:read"); tok.AccessToken == "" {
			t.Error(uri)
		}
	}
	for _, uri := range []string{
		"http://127.0.0.1:5/other", "http://evil.example:8123/done",
		"http://127.0.0.1:5@evil.example/done", "http://localhost:8123/done", "",
	} {
		c.RedirectURL = uri
		res, body := b.do("GET", c.AuthCodeURL("s", oauth2.S256ChallengeOption("x")), nil)
		if res.StatusCode != 400 || !strings.Contains(body, "Nothing was allowed") {
			t.Errorf("%q: %s", uri, res.Status)
		}
	}
}

func TestWhatTheAuthorizationEndpointRefuses(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	c, _ := registered(t, s, "")
	for name, opts := range map[string][]oauth2.AuthCodeOption{
		"no PKCE": nil,
		"plain PKCE": {
			oauth2.SetAuthURLParam("code_challenge", strings.Repeat("x", 43)),
			oauth2.SetAuthURLParam("code_challenge_method", "plain"),
		},
		"implicit": {oauth2.SetAuthURLParam("response_type", "token"), oauth2.S256ChallengeOption("x")},
		"openid":   {oauth2.SetAuthURLParam("scope", "openid"), oauth2.S256ChallengeOption("x")},
	} {
		// Nobody has allowed the client anything, so the person sees it, and the client
		// does not get the person.
		res, body := b.do("GET", c.AuthCodeURL("s", opts...), nil)
		if res.StatusCode != 400 || res.Header.Get("Location") != "" ||
			!strings.Contains(body, "nothing was sent to the program") {
			t.Error(name, res.Status, res.Header.Get("Location"), body)
		}
	}
	if q := b.consent(c.AuthCodeURL("s", oauth2.S256ChallengeOption("x")), "refuse"); q.Get("error") != "access_denied" {
		t.Error(q)
	}
	// A wrong verifier ends the code.
	verifier := oauth2.GenerateVerifier()
	q := b.consent(c.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)), "allow", "svc:tasks:read")
	for _, v := range []string{oauth2.GenerateVerifier(), verifier} {
		if _, err := c.Exchange(t.Context(), q.Get("code"), oauth2.VerifierOption(v)); err == nil {
			t.Error("a code worked")
		}
	}

	// One question has one answer, and only from whom it was put to.
	_, body := b.do("GET", c.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)), nil)
	answer := answerPath.FindStringSubmatch(body)[1]
	if res, _ := newBrowser(t, s).do("POST", answer,
		url.Values{"decision": {"allow"}, "scope": {"svc:tasks:read"}}); res.StatusCode != 400 ||
		res.Header.Get("Location") != "" {
		t.Error("a stranger answered:", res.Status, res.Header)
	}
	_, body = b.do("GET", c.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)), nil)
	answer = answerPath.FindStringSubmatch(body)[1]
	if res, _ := b.do("POST", answer, url.Values{"decision": {"allow"}}); res.StatusCode != 422 {
		t.Error("nothing was chosen:", res.Status)
	}
	if res, _ := b.do("GET", answer, nil); res.StatusCode != 405 {
		t.Error(res.Status)
	}
	if res, _ := b.do("POST", answer, url.Values{
		"decision": {"allow"},
		"scope":    {"svc:tasks:read"},
	}); redirected(t, res).Get("code") == "" {
		t.Error("no code")
	}
	if res, _ := b.do("POST", answer, url.Values{"decision": {"allow"}, "scope": {"svc:tasks:read"}}); res.StatusCode != 400 {
		t.Error("a second answer:", res.Status)
	}
	// Who is not signed in signs in first, and comes back.
	stranger := newBrowser(t, s)
	res, _ := stranger.do("GET", c.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)), nil)
	if res.Request.URL.Path != "/login" {
		t.Fatal(res.Request.URL)
	}
	res, body = stranger.do("POST", "/login", url.Values{
		"org": {"main"}, "user": {"admin"}, "password": {adminPassword}, "next": {res.Request.URL.Query().Get("next")},
	})
	if !answerPath.MatchString(body) || !strings.Contains(res.Header.Get("Content-Security-Policy"),
		"form-action 'self' http://127.0.0.1:8123;") {
		t.Error(res.Status, res.Header, body)
	}
}

func TestTheDocumentsOfTheAuthorizationServer(t *testing.T) {
	t.Parallel()
	s := running(t)
	doc := func(path string) map[string]any {
		t.Helper()
		code, body := get(t, s.URL()+path, "")
		var m map[string]any
		if err := json.Unmarshal([]byte(body), &m); err != nil || code != 200 {
			t.Fatal(path, code, body)
		}
		return m
	}
	m := doc("/.well-known/oauth-authorization-server")
	for member, want := range map[string]string{
		"issuer":                                         `"` + s.URL() + `"`,
		"authorization_endpoint":                         `"` + s.URL() + `/oauth/authorize"`,
		"token_endpoint":                                 `"` + s.URL() + `/oauth/token"`,
		"introspection_endpoint":                         `"` + s.URL() + `/oauth/introspect"`,
		"revocation_endpoint":                            `"` + s.URL() + `/oauth/revoke"`,
		"registration_endpoint":                          `"` + s.URL() + `/oauth/register"`,
		"service_documentation":                          `"` + s.URL() + `/docs"`,
		"scopes_supported":                               `["svc:tasks:read","svc:tasks:write","svc:a2a:write"]`,
		"response_types_supported":                       `["code"]`,
		"response_modes_supported":                       `["query"]`,
		"grant_types_supported":                          `["authorization_code","refresh_token","client_credentials"]`,
		"code_challenge_methods_supported":               `["S256"]`,
		"token_endpoint_auth_methods_supported":          `["none","client_secret_basic","client_secret_post"]`,
		"revocation_endpoint_auth_methods_supported":     `["none","client_secret_basic","client_secret_post"]`,
		"introspection_endpoint_auth_methods_supported":  `["client_secret_basic","client_secret_post"]`,
		"authorization_response_iss_parameter_supported": `true`,
		"client_id_metadata_document_supported":          `true`,
	} {
		if b, _ := json.Marshal(m[member]); string(b) != want {
			t.Errorf("%s is %s; want %s", member, b, want)
		}
		delete(m, member)
	}
	if len(m) > 0 {
		t.Error("members that nobody expects:", m)
	}
	if m := doc("/.well-known/oauth-protected-resource"); m["resource"] != s.URL() {
		t.Error(m)
	}
	if m := doc("/.well-known/oauth-protected-resource/mcp"); m["resource"] != s.URL()+"/mcp" {
		t.Error(m)
	}
	// The library's own endpoints that we do not want are not there.
	for _, path := range []string{"/.well-known/openid-configuration", "/oauth/userinfo", "/oauth/jwks", "/userinfo"} {
		if code, _ := get(t, s.URL()+path, ""); code != 404 {
			t.Error(path, code)
		}
	}
	res, err := http.Post(s.URL()+"/mcp", "application/json", strings.NewReader("{}"))
	if err != nil || res.StatusCode != 401 || !strings.Contains(res.Header.Get("WWW-Authenticate"),
		s.URL()+"/.well-known/oauth-protected-resource/mcp") {
		t.Error(res, err)
	}
	for _, path := range []string{"/a2a/echo", "/a2a/echo/message:send", "/api/v1/me"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if path == "/api/v1/me" {
			req.Method = http.MethodGet
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil || res.StatusCode != 401 || !strings.HasSuffix(res.Header.Get("WWW-Authenticate"),
			`"`+s.URL()+`/.well-known/oauth-protected-resource"`) {
			t.Error(path, res, err)
		}
	}
	// Cards name endpoints that exist.
	m = doc("/.well-known/oauth-authorization-server")
	_, card := get(t, s.URL()+"/a2a/echo/.well-known/agent-card.json", "")
	for _, member := range []string{"authorization_endpoint", "token_endpoint"} {
		if !strings.Contains(card, `"`+m[member].(string)+`"`) {
			t.Errorf("the card lacks the %s: %s", member, card)
		}
	}
}

// Anybody can register a client, so an error must not turn this server into a way to
// send people to any address; a client that the person knows gets its errors.
func TestAnErrorBeforeConsentReachesOnlyClientsThatAreVouchedFor(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	wrong := oauth2.SetAuthURLParam("scope", "openid")
	failing := func(c *oauth2.Config) *http.Response {
		t.Helper()
		res, _ := b.do("GET", c.AuthCodeURL("s", wrong, oauth2.S256ChallengeOption("x")), nil)
		return res
	}
	stranger, _ := registered(t, s, "")
	if res := failing(stranger); res.StatusCode != 400 || res.Header.Get("Location") != "" {
		t.Error("a client that nobody allowed anything:", res.Status, res.Header.Get("Location"))
	}
	known, _ := registered(t, s, "")
	b.token(known, nil, "svc:tasks:read")
	if res := failing(known); res.StatusCode != http.StatusSeeOther || redirected(t, res).Get("error") != "invalid_scope" {
		t.Error("a client that the person allowed something:", res.Status)
	}
	// What was taken back counts no more.
	b.do("POST", "/logout/everywhere", url.Values{})
	signIn(b, "main", "admin", adminPassword)
	if res := failing(known); res.StatusCode != 400 {
		t.Error("a client that is allowed nothing any more:", res.Status)
	}
	// An admin of the org stands for this one.
	_, body := post(t, s.URL()+"/api/v1/orgs/main/clients", s.First().Secret,
		`{"name":"Reports","redirect_uris":["`+callback+`"]}`)
	var made struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(body), &made); err != nil || made.ID == "" {
		t.Fatal(err, body)
	}
	own := *stranger
	own.ClientID = made.ID
	if res := failing(&own); res.StatusCode != http.StatusSeeOther {
		t.Error("a client of the org:", res.Status)
	}
}
