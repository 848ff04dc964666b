package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/oauth2"
)

// person is a browser with cookies and forms. It stops where the OAuth client would take over.
type person struct {
	http *http.Client
	base string // URL of the server
}

const (
	password = "four words of mine"
	// callback is the redirect URI of the tests' clients. Nothing listens there: the URL is read,
	// not followed.
	callback = "http://127.0.0.1:1/done"
)

var setupLink = regexp.MustCompile(`http://127\.0\.0\.1:\d+/setup/\S+`)

// firstAdmin opens the link that the first start printed, and is user:admin of main.
func (s *server) firstAdmin(t *testing.T) *person {
	t.Helper()
	return s.enter(t, setupLink.FindString(s.Said.String()))
}

// signIn creates a user with an operator's link, and signs the user in.
func (s *server) signIn(t *testing.T, org, user string) *person {
	t.Helper()
	s.cli(t, "user", "create", user, "--org", org)
	return s.enter(t, setupLink.FindString(s.cli(t, "admin", "link", "--org", org, "--user", user, "--public-url",
		s.base)))
}

// enter sets a password with a link, which signs in.
func (s *server) enter(t *testing.T, link string) *person {
	t.Helper()
	p := &person{base: s.base, http: &http.Client{
		Jar: must(cookiejar.New(nil))(t),
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Host != via[0].URL.Host {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}}
	res, body := p.do(t, http.MethodPost, link, url.Values{"password": {password}, "repeat": {password}})
	if !strings.HasPrefix(res.Request.URL.Path, "/orgs/") {
		t.Fatalf("link %q leads to %s, want a page below /orgs/: %s %s", link, res.Request.URL, res.Status, body)
	}
	return p
}

// do opens a page, or submits a form.
func (p *person) do(t *testing.T, method, addr string, form url.Values) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, addr, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := p.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	return res, string(must(io.ReadAll(res.Body))(t))
}

// call calls the REST API with the session, as a page in the browser would.
func (p *person) call(t *testing.T, method, addr, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, addr, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := p.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	return res.StatusCode, string(must(io.ReadAll(res.Body))(t))
}

var answerPath = regexp.MustCompile(`action="(/oauth/authorize/[0-9a-z]+)"`)

// consent opens the authorization URL, allows the scopes, and returns the redirect URL.
func (p *person) consent(t *testing.T, addr string, scopes ...string) *url.URL {
	t.Helper()
	_, page := p.do(t, http.MethodGet, addr, nil)
	form := answerPath.FindStringSubmatch(page)
	if form == nil {
		t.Fatalf("%s has no form, want the consent form: %s", addr, page)
	}
	for _, scope := range scopes {
		if !strings.Contains(page, "<code>"+scope+"</code>") {
			t.Errorf("consent page lacks the scope %s, want it named: %s", scope, page)
		}
	}
	res, body := p.do(t, http.MethodPost, p.base+form[1], url.Values{"decision": {"allow"}, "scope": scopes})
	to, err := res.Location()
	if err != nil || to.Query().Get("code") == "" {
		t.Fatalf("got %s %v, want a redirect with a code: %s", res.Status, to, body)
	}
	return to
}

// registered registers an OAuth client with the given redirect URI.
func (s *server) registered(t *testing.T, callback string) *oauth2.Config {
	t.Helper()
	res, err := post(t.Context(), s.base+"/oauth/register", "",
		object{"client_name": "Editor", "redirect_uris": []string{callback}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var c struct {
		ClientID string `json:"client_id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&c); err != nil || c.ClientID == "" {
		t.Fatalf("register: got %s, %v; want a client id", res.Status, err)
	}
	return &oauth2.Config{ClientID: c.ClientID, RedirectURL: callback, Endpoint: oauth2.Endpoint{
		AuthURL: s.base + "/oauth/authorize", TokenURL: s.base + "/oauth/token", AuthStyle: oauth2.AuthStyleInParams,
	}}
}

// token runs the whole authorization code flow. A resource that is not empty is the token's
// audience.
func (p *person) token(t *testing.T, c *oauth2.Config, resource string, scopes ...string) *oauth2.Token {
	t.Helper()
	verifier := oauth2.GenerateVerifier()
	opts := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier)}
	if resource != "" {
		opts = append(opts, oauth2.SetAuthURLParam("resource", resource))
	}
	code := p.consent(t, c.AuthCodeURL("state", opts...), scopes...).Query().Get("code")
	return must(c.Exchange(t.Context(), code, oauth2.VerifierOption(verifier)))(t)
}

// revokeToken revokes a token or, by its refresh token, a grant (RFC 7009).
func (s *server) revokeToken(t *testing.T, c *oauth2.Config, token string) {
	t.Helper()
	res, err := http.PostForm(s.base+"/oauth/revoke", url.Values{"client_id": {c.ClientID}, "token": {token}})
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("revoke: status = %s, want 200", res.Status)
	}
}
