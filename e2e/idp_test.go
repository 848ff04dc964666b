package e2e

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/parley-dev/parley/internal/servertest"
)

// idp is a certified OpenID provider in its own process.
type idp struct{ base string }

func newIDP(t *testing.T) *idp {
	t.Helper()
	dir := nodePackages(t, "idp")
	cmd, said := exec.Command("node", "provider.mjs"), &servertest.Output{}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the provider said:\n%s", said)
		}
	})
	eventually(t, time.Minute, "the provider says where it is",
		func() bool { return addressPattern.MatchString(said.String()) })
	return &idp{addressPattern.FindString(said.String())}
}

// set restarts the provider with a new key.
func (p *idp) set(t *testing.T, server string, groups object) {
	t.Helper()
	res := must(post(t.Context(), p.base+"/test", "",
		object{"callback": server + "/login/sso/acme/callback", "groups": groups}))(t)
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatalf("status = %s, want 200", res.Status)
	}
}

const idpAudience = "https://parley.example"

// trusting starts a server that trusts the provider.
func (p *idp) trusting(t *testing.T, e engine, settings string) *server {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"secret": "s3cret\n", "issuers.json": fmt.Sprintf(`{"issuers": [{
		"name": "acme", "title": "Acme", "issuer": %q, "org": "main",
		"sign_in": {"client_id": "parley", "client_secret_file": "secret", "scopes": ["openid", "profile", "email", "groups"]%s},
		"tokens": {"audience": %q, "users": true,
			"principals": [{"claim": "sub", "value": "crm-backend", "principal": "service:crm"}],
			"scopes": [{"claim": "scope", "value": "parley.read", "grants": ["svc:tasks:read"]}]}}]}`, p.base, settings, idpAudience)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, e, "--issuers", filepath.Join(dir, "issuers.json"))
	p.set(t, s.base, object{"id-cy": []string{"staff", "parley-admins"}, "id-ada": []string{"staff"}})
	return s
}

// guest is a browser of a person who has another name at the provider.
type guest struct {
	*testing.T
	*person
	id string // at the provider
}

func newGuest(t *testing.T, s *server, id string) *guest {
	t.Helper()
	return &guest{t, &person{base: s.base, http: &http.Client{
		Jar: must(cookiejar.New(nil))(t),
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if r.URL.Port() == "5" {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}}, id}
}

func (p *guest) do(method, addr string, form url.Values) (*http.Response, string) {
	p.Helper()
	if strings.HasPrefix(addr, "/") {
		addr = p.base + addr
	}
	return p.person.do(p.T, method, addr, form)
}

var (
	interaction = regexp.MustCompile(`(?s)<form[^>]* action="([^"]*/interaction/[^"]+)".*?name="prompt" value="(\w+)"`)
	leadsTo     = regexp.MustCompile(`^0;url=(.+)$`)
)

// press submits a form that leads to the provider.
func (p *guest) press(path string) (*http.Response, string) {
	p.Helper()
	res, body := p.do("POST", path, url.Values{})
	m := leadsTo.FindStringSubmatch(res.Header.Get("Refresh"))
	if m == nil {
		p.Fatalf("got %s without a form, want one: %s", res.Status, body)
	}
	return p.follow(m[1])
}

// follow goes to the provider, logs in there, and returns.
func (p *guest) follow(addr string) (*http.Response, string) {
	p.Helper()
	res, body := p.do("GET", addr, nil)
	for range 4 {
		m := interaction.FindStringSubmatch(body)
		if m == nil {
			break
		}
		res, body = p.do("POST", html.UnescapeString(m[1]),
			url.Values{"prompt": {m[2]}, "login": {p.id}, "password": {"any"}})
	}
	if strings.HasPrefix(res.Request.URL.Path, "/orgs/") { // signed in
		return p.do("GET", "/account", nil)
	}
	return res, body
}

// isIn reports whether a page is the account page of the user.
func isIn(res *http.Response, body, user string) bool {
	return res.StatusCode == 200 && res.Request.URL.Path == "/account" &&
		strings.Contains(body, "<code>user:"+user+"</code>")
}

// TestSignInWithARealProvider signs in to an org with a certified provider in every way.
func TestSignInWithARealProvider(t *testing.T) {
	t.Parallel()
	op := newIDP(t)
	eachEngine(t, func(t *testing.T, e engine) {
		s := op.trusting(t, e, "")
		api := func(path string, body object) string {
			t.Helper()
			res := must(post(t.Context(), s.base+path, s.key, body))(t)
			defer res.Body.Close()
			text := string(must(io.ReadAll(res.Body))(t))
			if res.StatusCode != 201 {
				t.Fatalf("status = %s, want 201: %s", res.Status, text)
			}
			return text
		}
		var invitation struct {
			URL string `json:"url"`
		}
		if err := json.Unmarshal([]byte(api("/api/v1/orgs/main/invitations", object{"user": "dot"})),
			&invitation); err != nil {
			t.Fatal(err)
		}
		api("/api/v1/orgs/main/members", object{"kind": "user", "id": "ada"})

		invited := newGuest(t, s, "id-somebody")
		join := must(url.Parse(invitation.URL))(t).Path
		if res, body := invited.press(join + "/sso/acme"); !isIn(res, body, "dot") {
			t.Fatalf("by an invitation: got %s at %s, want dot signed in: %s", res.Status, res.Request.URL, body)
		}
		ada := newGuest(t, s, "id-ada")
		if res, body := ada.press("/login/sso/acme"); !isIn(res, body, "ada") ||
			!strings.Contains(body, "id-ada@acme.example") {
			t.Errorf("a user without a password: got %s, want ada signed in: %s", res.Status, body)
		}
		if res, body := newGuest(t, s, "ada").press("/login/sso/acme"); res.StatusCode != 409 {
			t.Errorf("another subject with that name: status = %s, want 409: %s", res.Status, body)
		}
		if res, body := newGuest(t, s, "id-eve").press("/login/sso/acme"); res.StatusCode != 403 ||
			!strings.Contains(body, "invite you") {
			t.Errorf("an unknown name: status = %s, want 403: %s", res.Status, body)
		}

		// A user with a password connects on the account page.
		admin := newGuest(t, s, "id-admin")
		link := setupLink.FindString(s.Said.String())
		if res, body := admin.do("POST", link, url.Values{
			"password": {password},
			"repeat":   {password},
		}); res.Request.URL.Path != "/orgs/main/start" {
			t.Fatalf("got %s at %s, want the start page: %s", res.Status, res.Request.URL, body)
		}
		if res, body := newGuest(t, s, "id-admin").press("/login/sso/acme"); res.StatusCode != 409 ||
			!strings.Contains(body, "sign in with it first") {
			t.Errorf("a user with a password: status = %s, want 409: %s", res.Status, body)
		}
		if res, body := admin.press("/account/sso/acme"); !isIn(res, body, "admin") ||
			!strings.Contains(body, "Disconnect Acme") {
			t.Errorf("connect: got %s, want admin connected to Acme: %s", res.Status, body)
		}
		if res, body := newGuest(t, s, "id-admin").press("/login/sso/acme"); !isIn(res, body, "admin") {
			t.Errorf("login after connecting: got %s, want admin signed in: %s", res.Status, body)
		}

		// A disabled user is signed out and cannot sign in again.
		r := must(http.NewRequestWithContext(t.Context(), "PATCH", s.base+"/api/v1/orgs/main/members/user:ada",
			strings.NewReader(`{"disabled":true}`)))(t)
		r.Header.Set("Authorization", "Bearer "+s.key)
		r.Header.Set("Content-Type", "application/json")
		res := must(http.DefaultClient.Do(r))(t)
		_ = res.Body.Close()
		if res, _ := ada.do("GET", "/account", nil); res.StatusCode != 200 || res.Request.URL.Path != "/login" {
			t.Errorf("got %s at %s, want 200 at /login", res.Status, res.Request.URL)
		}
		if res, body := ada.press("/login/sso/acme"); res.StatusCode != 403 || !strings.Contains(body, "disabled") {
			t.Errorf("a disabled user: status = %s, want 403: %s", res.Status, body)
		}
	})
}

func TestARealProviderMakesMembersAndAdmins(t *testing.T) {
	t.Parallel()
	op := newIDP(t)
	s := op.trusting(t, engine{"sqlite", []string{"--data", t.TempDir()}},
		`, "create_users": true, "require": {"claim": "groups", "value": "staff"}, "admin": {"claim": "groups", "value": "parley-admins"}`)
	if res, body := newGuest(t, s, "id-eve").press("/login/sso/acme"); res.StatusCode != 403 {
		t.Errorf("a user outside of the group: status = %s, want 403: %s", res.Status, body)
	}
	if res, body := newGuest(t, s, "id-ada").press("/login/sso/acme"); !isIn(res, body, "ada") ||
		strings.Contains(body, ", an admin") {
		t.Errorf("got %s, want ada signed in and no admin: %s", res.Status, body)
	}
	cy := newGuest(t, s, "id-cy")
	if res, body := cy.press("/login/sso/acme"); !isIn(res, body, "cy") || !strings.Contains(body, ", an admin") {
		t.Errorf("got %s, want cy signed in as an admin: %s", res.Status, body)
	}
	// The provider has new keys and other groups.
	op.set(t, s.base, object{"id-cy": []string{"staff"}})
	if res, body := cy.press("/login/sso/acme"); !isIn(res, body, "cy") || strings.Contains(body, ", an admin") {
		t.Errorf("got %s, want cy signed in and no admin any more: %s", res.Status, body)
	}
}

// TestTokensOfARealIssuer uses its access tokens at REST and MCP.
func TestTokensOfARealIssuer(t *testing.T) {
	t.Parallel()
	op, other := newIDP(t), newIDP(t)
	s := op.trusting(t, engine{"sqlite", []string{"--data", t.TempDir()}}, `, "create_users": true`)
	other.set(t, s.base, object{})
	for _, body := range []object{{"kind": "service", "id": "crm"}} {
		res := must(post(t.Context(), s.base+"/api/v1/orgs/main/members", s.key, body))(t)
		_ = res.Body.Close()
	}
	of := func(p *idp, audience string) string {
		t.Helper()
		c := clientcredentials.Config{
			ClientID: "crm-backend", ClientSecret: "crm-s3cret", TokenURL: p.base + "/token", Scopes: []string{"parley.read"},
			EndpointParams: url.Values{"resource": {audience}},
		}
		return must(c.Token(t.Context()))(t).AccessToken
	}
	list := s.base + "/api/v1/orgs/main/proposals"
	ask := func(token, path string, body object) (int, string) {
		t.Helper()
		var res *http.Response
		if body != nil {
			res = must(post(t.Context(), path, token, body, "Accept: application/json, text/event-stream"))(t)
		} else {
			r := must(http.NewRequestWithContext(t.Context(), "GET", path, nil))(t)
			r.Header.Set("Authorization", "Bearer "+token)
			res = must(http.DefaultClient.Do(r))(t)
		}
		defer res.Body.Close()
		return res.StatusCode, string(must(io.ReadAll(res.Body))(t))
	}
	token := of(op, idpAudience)
	if code, body := ask(token, list, nil); code != 200 {
		t.Errorf("REST: status = %d, want 200: %s", code, body)
	}
	call := object{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": object{"name": "list_proposals", "arguments": object{}},
	}
	if code, body := ask(token, s.base+"/mcp", call); code != 200 || strings.Contains(body, `"isError":true`) {
		t.Errorf("MCP: status = %d, want 200 without an error: %s", code, body)
	}
	if code, body := ask(token, s.base+"/api/v1/orgs/main/keys", nil); code != 403 ||
		!strings.Contains(body, "svc:admin:admin") {
		t.Errorf("without the scope: status = %d, want 403: %s", code, body)
	}
	if code, body := ask(of(op, "https://other.example"), list, nil); code != 401 ||
		!strings.Contains(body, "auth.audience") {
		t.Errorf("another audience: got %d, want 401 auth.audience: %s", code, body)
	}
	if code, body := ask(of(other, idpAudience), list, nil); code != 401 || !strings.Contains(body, "auth.token_issuer") {
		t.Errorf("another issuer: got %d, want 401 auth.token_issuer: %s", code, body)
	}

	// A person's token, obtained by a client of the provider.
	ada := newGuest(t, s, "id-ada")
	if res, body := ada.press("/login/sso/acme"); !isIn(res, body, "ada") {
		t.Fatalf("got %s, want ada signed in: %s", res.Status, body)
	}
	tool := oauth2.Config{
		ClientID: "tool", RedirectURL: "http://127.0.0.1:5/done", Scopes: []string{"parley.read"},
		Endpoint: oauth2.Endpoint{
			AuthURL: op.base + "/auth", TokenURL: op.base + "/token",
			AuthStyle: oauth2.AuthStyleInParams,
		},
	}
	verifier, resource := oauth2.GenerateVerifier(), oauth2.SetAuthURLParam("resource", idpAudience)
	res, body := ada.follow(tool.AuthCodeURL("state", oauth2.S256ChallengeOption(verifier), resource))
	code := must(url.Parse(res.Header.Get("Location")))(t).Query().Get("code")
	if code == "" {
		t.Fatalf("got %s %v, want a redirect with a code: %s", res.Status, res.Header, body)
	}
	personal := must(tool.Exchange(t.Context(), code, oauth2.VerifierOption(verifier), resource))(t).AccessToken
	if code, body := ask(personal, list, nil); code != 200 {
		t.Errorf("token of a person: status = %d, want 200: %s", code, body)
	}

	// With new keys the old tokens stay valid until they expire, and new ones work at once, or as
	// soon as the issuer may be asked again.
	op.set(t, s.base, object{})
	token = of(op, idpAudience)
	eventually(t, time.Minute, "a token with a new key works", func() bool {
		code, _ := ask(token, list, nil)
		return code == 200
	})
}
