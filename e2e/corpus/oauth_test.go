package corpus

import (
	"encoding/base64"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/oauth2"
)

var (
	setupLink = regexp.MustCompile(`/setup/\S+`)
	question  = regexp.MustCompile(`action="/oauth/authorize/([0-9a-z]+)"`)
)

// oauth covers the authorization server: documents, registration, tokens, and the consent of a
// person.
func oauth(s *session) {
	s.cast()
	s.names.set("base-escaped", url.QueryEscape(s.base))
	s.do("the authorization server", "", "GET /.well-known/oauth-authorization-server", "")
	s.do("the resource", "", "GET /.well-known/oauth-protected-resource", "")
	s.do("the tools as a resource", "", "GET /.well-known/oauth-protected-resource/mcp", "")
	s.do("no such resource", "", "GET /.well-known/oauth-protected-resource/nope", "")

	s.do("register", "", "POST /oauth/register", `{"client_name":"Editor","redirect_uris":["http://127.0.0.1:1/done"]}`)
	s.do("register with a secret", "", "POST /oauth/register",
		`{"client_name":"Site","redirect_uris":["https://site.example/done"],`+
			`"token_endpoint_auth_method":"client_secret_basic","scope":"svc:tasks:read"}`)
	s.do("register nothing", "", "POST /oauth/register", `{}`)
	s.do("register an insecure address", "", "POST /oauth/register",
		`{"client_name":"X","redirect_uris":["http://evil.example/"]}`)
	s.do("register an admin", "", "POST /oauth/register",
		`{"client_name":"X","redirect_uris":["https://x.example/"],"scope":"svc:admin:admin"}`)
	s.do("register a machine", "", "POST /oauth/register",
		`{"client_name":"X","redirect_uris":["https://x.example/"],"grant_types":["client_credentials"]}`)
	s.do("not JSON", "", "POST /oauth/register", `{`)

	r := s.quiet("root", "POST /api/v1/orgs/oauth/keys", `{"principal":"service:partner","scopes":["svc:tasks:read",`+
		`"svc:a2a:write"]}`)
	s.names.set("crm", r.member("id"))
	s.names.set("crm-secret", r.member("secret"))
	s.names.set("basic", base64.StdEncoding.EncodeToString([]byte(r.member("id")+":"+r.member("secret"))))
	const basic, token = "Authorization: Basic <basic>", "POST /oauth/token"
	s.form("client credentials", token, "grant_type=client_credentials&scope=svc:tasks:read", basic)
	s.form("in the form", token, "grant_type=client_credentials&client_id=<crm>&client_secret=<crm-secret>")
	s.form("for the tools", token, "grant_type=client_credentials&resource=<base>/mcp", basic)
	s.form("for something else", token, "grant_type=client_credentials&resource=https://other.example", basic)
	s.form("more than the key has", token, "grant_type=client_credentials&scope=svc:admin:admin", basic)
	s.form("another secret", token, "grant_type=client_credentials&client_id=<crm>&client_secret=nope")
	s.form("an unknown client", token, "grant_type=client_credentials&client_id=nope&client_secret=nope")
	s.form("an unknown grant", token, "grant_type=password", basic)
	s.form("no grant", token, "scope=x", basic)
	s.do("JSON instead of a form", "", token, `{"grant_type":"client_credentials"}`, basic)
	s.do("another method", "", "GET /oauth/token", "")
	s.do("use it", "access-1", "GET /api/v1/me", "")
	s.do("use it for more", "access-1", "POST /api/v1/orgs/oauth/proposals", `{}`)
	s.do("use one for the tools elsewhere", "access-3", "GET /api/v1/me", "")
	s.form("introspect", "POST /oauth/introspect", "token=<access-1>", basic)
	s.form("introspect nothing", "POST /oauth/introspect", "token=nope", basic)
	s.form("introspect without a client", "POST /oauth/introspect", "token=<access-1>")
	s.form("revoke", "POST /oauth/revoke", "token=<access-1>", basic)
	s.form("revoke nothing", "POST /oauth/revoke", "token=nope", basic)
	s.form("revoke without a client", "POST /oauth/revoke", "token=<access-2>")
	s.form("introspect what was revoked", "POST /oauth/introspect", "token=<access-1>", basic)
	eventually(s.T, "the revoked token is refused", func() error {
		if r := s.quiet("access-1", "GET /api/v1/me", ""); r.status == http.StatusOK {
			return errStill(r.body)
		}
		return nil
	})
	s.do("use what was revoked", "access-1", "GET /api/v1/me", "")
	person(s)
}

// person signs in, and grants access to a client that registered itself.
func person(s *session) {
	const verifier = "a-verifier-of-at-least-forty-three-characters"
	ask := "GET /oauth/authorize?response_type=code&client_id=<client-1>&redirect_uri=http://127.0.0.1:1/done" +
		"&state=st&scope=svc:tasks:read&code_challenge_method=S256&code_challenge=" +
		oauth2.S256ChallengeFromVerifier(verifier)
	s.do("asked without a session", "", ask, "")
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.Fatal(err)
	}
	s.client = &http.Client{Jar: jar, Timeout: patience, CheckRedirect: httpClient.CheckRedirect}
	link := setupLink.FindString(s.cli(s.T, "admin", "link", "--org", s.org, "--user", "ann", "--public-url", s.base))
	s.names.set("setup", link)
	s.form("choose a password", "POST <setup>", "password=four+words+of+mine&repeat=four+words+of+mine")
	answer := func(title, decision string) {
		s.Helper()
		r := s.do(title, "", ask, "")
		m := question.FindStringSubmatch(r.body)
		if m == nil {
			s.Fatalf("got no consent form, want one: %s", r.body)
		}
		s.names.set("question", m[1])
		s.form(decision, "POST /oauth/authorize/<question>", "decision="+decision+"&scope=svc:tasks:read")
	}
	answer("asked", "deny")
	answer("asked again", "allow")
	const token = "POST /oauth/token"
	trade := "grant_type=authorization_code&client_id=<client-1>&code=<code-1>" +
		"&redirect_uri=http://127.0.0.1:1/done&code_verifier="
	s.form("another verifier", token, trade+strings.Repeat("x", 43))
	answer("asked once more", "allow")
	trade = strings.Replace(trade, "<code-1>", "<code-2>", 1)
	s.form("trade the code", token, trade+verifier)
	s.do("use it", "access-4", "GET /api/v1/me", "")
	s.form("refresh", token, "grant_type=refresh_token&client_id=<client-1>&refresh_token=<refresh-1>")
	s.form("a refresh token twice", token, "grant_type=refresh_token&client_id=<client-1>&refresh_token=<refresh-1>")
	s.form("which ends the grant", token, "grant_type=refresh_token&client_id=<client-1>&refresh_token=<refresh-2>")
	s.form("the code twice", token, trade+verifier)
	s.do("an unknown client asks", "", strings.Replace(ask, "<client-1>", "client-nope", 1), "")
	s.do("another address", "", strings.Replace(ask, "127.0.0.1:1/done", "evil.example/", 1), "")
	s.do("without PKCE", "", strings.Split(ask, "&code_challenge_method")[0], "")
	s.do("an own program with the session", "", "GET /api/v1/me", "")
}
