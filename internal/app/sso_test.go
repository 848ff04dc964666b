package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/idptest"
	"github.com/parley-dev/parley/internal/orgtest"
)

// issuerFile writes what --issuers reads: each provider by its name, with more
// settings for signing in.
func issuerFile(t *testing.T, settings string, issuers map[string]*idptest.Issuer) string {
	t.Helper()
	dir := t.TempDir()
	var list []string
	for name, is := range issuers {
		list = append(list, fmt.Sprintf(`{"name": %q, "title": "The %s", "issuer": %q, "org": "main",
			"sign_in": {"client_id": "parley", "client_secret_file": "secret"%s},
			"tokens": {"audience": "https://parley.example", "users": true,
				"principals": [{"claim": "sub", "value": "crm-backend", "principal": "service:crm"}],
				"scopes": [{"claim": "scope", "value": "read", "grants": ["svc:tasks:read"]},
					{"claim": "scope", "value": "admin", "grants": ["svc:admin:admin"]},
					{"claim": "scope", "value": "a2a", "grants": ["svc:a2a:write", "agent:echo"]}]}}`,
			name, name, is.URL, settings))
	}
	for name, text := range map[string]string{"secret": "s3cret\n", "issuers.json": `{"issuers": [` +
		strings.Join(list, ",") + `]}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "issuers.json")
}

func withIssuers(t *testing.T, settings string, issuers map[string]*idptest.Issuer) *Server {
	t.Helper()
	cfg := testConfig(t)
	cfg.Issuers, cfg.TrustedProxies = issuerFile(t, settings, issuers), []string{"127.0.0.1"}
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	return s
}

// from is a browser at an address of its own: attempts are limited by address.
type from string

func (f from) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("X-Forwarded-For", string(f))
	return http.DefaultTransport.RoundTrip(r)
}

var refreshTo = regexp.MustCompile(`^0;url=(http.*)$`)

// press sends a form that leads to a provider, and follows to where it ends.
func (b *browser) press(path string, form url.Values) (*http.Response, string) {
	b.Helper()
	return b.arrive(b.leave(path, form))
}

// arrive opens an address that signs in, and returns the page of the account.
func (b *browser) arrive(addr string) (*http.Response, string) {
	b.Helper()
	res, body := b.do("GET", addr, nil)
	if strings.HasPrefix(res.Request.URL.Path, "/orgs/") {
		return b.do("GET", "/account", nil)
	}
	return res, body
}

// leave sends the form and returns the provider's address that it leads to.
func (b *browser) leave(path string, form url.Values) string {
	b.Helper()
	res, body := b.do("POST", path, form)
	m := refreshTo.FindStringSubmatch(res.Header.Get("Refresh"))
	if res.StatusCode != 200 || m == nil || !strings.Contains(body, "Continue to ") || strings.Contains(body, "<script") {
		b.Fatal(res.Status, res.Header, body)
	}
	return m[1]
}

// at reports whether a page is the account page of somebody.
func at(res *http.Response, body, ref string) bool {
	return res.StatusCode == 200 && res.Request.URL.Path == "/account" && strings.Contains(body, "<code>"+ref+"</code>")
}

// create makes a user without a password, as the admin.
func (b *browser) create(id string) {
	b.Helper()
	if code, body := b.call("POST", "/api/v1/orgs/main/members", fmt.Sprintf(`{"kind":"user","id":%q}`, id)); code != 201 {
		b.Fatal(code, body)
	}
}

func TestSigningInWithAnotherProvider(t *testing.T) {
	t.Parallel()
	is := idptest.New(t)
	is.Person = idptest.Claims{"sub": "s-1", "preferred_username": "Ada", "name": "Ada Lovelace", "email": "ada@acme.example"}
	s := withIssuers(t, "", map[string]*idptest.Issuer{"acme": is})
	admin := s.admin(t)
	b := newBrowser(t, s)
	res, body := b.do("GET", "/login", nil)
	if !strings.Contains(body, "Sign in with The acme") ||
		!strings.Contains(res.Header.Get("Content-Security-Policy"), "form-action 'self';") {
		t.Error(res.Header, body)
	}
	// Nobody knows the person, and a page says what to do.
	if res, body := b.press("/login/sso/acme", url.Values{}); res.StatusCode != 403 ||
		!strings.Contains(body, "ask an admin of the org to invite you") {
		t.Error(res.Status, body)
	}
	// A user of the name who cannot sign in yet is that person from now on.
	admin.create("ada")
	if res, body := b.press("/login/sso/acme", url.Values{}); !at(res, body, "user:ada") ||
		!strings.Contains(body, "ada@acme.example") || strings.Contains(body, "Old password") {
		t.Fatal(res.Status, body)
	}
	// It is the subject that is known; another of that name is not.
	is.Person = idptest.Claims{"sub": "s-1", "preferred_username": "admin"}
	other := newBrowser(t, s)
	if res, body := other.press("/login/sso/acme", url.Values{}); !at(res, body, "user:ada") {
		t.Error(res.Status, body)
	}
	is.Person = idptest.Claims{"sub": "s-2", "preferred_username": "ada"}
	if res, body := newBrowser(t, s).press("/login/sso/acme", url.Values{}); res.StatusCode != 409 ||
		!strings.Contains(body, "another account of The acme") {
		t.Error(res.Status, body)
	}
	// The session calls the interface, and ends with all others.
	if code, body := b.call("POST", list, aProposal); code != 201 || !strings.Contains(body, `"submitted_by":"user:ada"`) {
		t.Error(code, body)
	}
	if res, body := b.do("POST", "/account/sso/acme/disconnect", url.Values{}); res.StatusCode != 409 ||
		!strings.Contains(body, "only way to sign in") {
		t.Error(res.Status, body)
	}
	b.do("POST", "/logout/everywhere", url.Values{})
	if code, _ := other.call("GET", list, ""); code != 401 {
		t.Error("a session of somebody without a password outlived all others:", code)
	}
	is.Person = idptest.Claims{"sub": "s-1"}
	if res, body := other.press("/login/sso/acme", url.Values{}); !at(res, body, "user:ada") {
		t.Error(res.Status, body)
	}
	// Disabled means out, and the log has it all.
	if code, body := admin.call("PATCH", "/api/v1/orgs/main/members/user:ada", `{"disabled":true}`); code != 200 {
		t.Fatal(code, body)
	}
	if code, _ := other.call("GET", list, ""); code != 401 {
		t.Error("a session of somebody disabled:", code)
	}
	if res, body := other.press("/login/sso/acme", url.Values{}); res.StatusCode != 403 || !strings.Contains(body, "disabled") {
		t.Error(res.Status, body)
	}
	_, log := admin.call("GET", "/api/v1/orgs/main/audit?limit=100", "")
	for _, want := range []string{
		`"identity.link"`, `"with The acme"`, `account.unknown_person`, `account.other_identity`,
		`account.disabled`, "s-2",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s: %s", want, log)
		}
	}
	if strings.Contains(log, "s3cret") {
		t.Error("the log has the secret")
	}
	assertNotStored(t, s, "s3cret")
}

func TestWhoHasAPasswordConnectsFirst(t *testing.T) {
	t.Parallel()
	is := idptest.New(t)
	is.Person = idptest.Claims{"sub": "s-1", "preferred_username": "admin"}
	s := withIssuers(t, "", map[string]*idptest.Issuer{"acme": is})
	// The first admin has no password yet: a name is not enough for an admin.
	b := newBrowser(t, s)
	if res, body := b.press("/login/sso/acme", url.Values{}); res.StatusCode != 409 ||
		!strings.Contains(body, "parley admin link") {
		t.Error(res.Status, body)
	}
	admin := s.admin(t)
	if res, body := b.press("/login/sso/acme", url.Values{}); res.StatusCode != 409 ||
		!strings.Contains(body, "sign in with it first, then connect The acme") {
		t.Error(res.Status, body)
	}
	if res, body := admin.press("/account/sso/acme", url.Values{}); !at(res, body, "user:admin") ||
		!strings.Contains(body, "Disconnect The acme") {
		t.Fatal(res.Status, body)
	}
	if res, body := b.press("/login/sso/acme", url.Values{}); !at(res, body, "user:admin") ||
		!strings.Contains(body, "Old password") {
		t.Error(res.Status, body)
	}
	// Signed out everywhere meanwhile, or somebody else in the same browser: nobody is connected.
	admin.create("bob")
	bob := identity.Principal{Org: "main", Kind: identity.User, ID: "bob"}
	orgtest.SetPassword(t, s.store, s.accounts, bob, "four other words")
	is.Person = idptest.Claims{"sub": "s-2"}
	eve := newBrowser(t, s)
	signIn(eve, "main", "bob", "four other words")
	to := eve.leave("/account/sso/acme", url.Values{})
	signIn(eve, "main", "admin", adminPassword)
	if res, body := eve.do("GET", to, nil); res.StatusCode != 403 {
		t.Error("another is signed in:", res.Status, body)
	}
	signIn(eve, "main", "bob", "four other words")
	to = eve.leave("/account/sso/acme", url.Values{})
	if err := s.accounts.LogoutEverywhere(t.Context(), bob); err != nil {
		t.Fatal(err)
	}
	if res, _ := eve.do("GET", to, nil); res.Request.URL.Path != "/login" {
		t.Error("signed out everywhere:", res.Status, res.Request.URL)
	}
	if ways, err := s.accounts.Ways(t.Context(), bob); err != nil || len(ways.Identities) != 0 {
		t.Error(ways, err)
	}
	is.Person = idptest.Claims{"sub": "s-1", "preferred_username": "admin"}
	if res, body := b.do("POST", "/account/sso/acme/disconnect", url.Values{}); !at(res, body, "user:admin") ||
		!strings.Contains(body, "Connect The acme") {
		t.Error(res.Status, body)
	}
	if res, _ := b.do("POST", "/account/sso/acme/disconnect", url.Values{}); res.StatusCode != 404 {
		t.Error(res.Status)
	}
	if res, _ := newBrowser(t, s).press("/login/sso/acme", url.Values{}); res.StatusCode != 409 {
		t.Error(res.Status)
	}
}

func TestAnInvitationAndALinkAreOpenedWithAProvider(t *testing.T) {
	t.Parallel()
	is := idptest.New(t)
	is.Person = idptest.Claims{"sub": "s-1"} // without a name
	s := withIssuers(t, "", map[string]*idptest.Issuer{"acme": is})
	b := newBrowser(t, s)
	path := strings.TrimPrefix(s.Link(), s.URL())
	if _, body := b.do("GET", path, nil); !strings.Contains(body, `action="`+path+`/sso/acme"`) {
		t.Error(body)
	}
	if res, body := b.press(path+"/sso/acme", url.Values{}); !at(res, body, "user:admin") {
		t.Fatal(res.Status, body)
	}
	if res, _ := b.do("POST", path+"/sso/acme", url.Values{}); res.StatusCode != 404 {
		t.Error("a link worked twice:", res.Status)
	}
	code, body := b.call("POST", "/api/v1/orgs/main/invitations", `{"user":"dot"}`)
	var invitation struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal([]byte(body), &invitation); code != 201 || err != nil {
		t.Fatal(code, body, err)
	}
	u, err := url.Parse(invitation.URL)
	if err != nil {
		t.Fatal(err)
	}
	is.Person = idptest.Claims{"sub": "s-2", "preferred_username": "something-else"}
	guest := newBrowser(t, s)
	if _, body := guest.do("GET", u.Path, nil); !strings.Contains(body, "Join with The acme") {
		t.Error(body)
	}
	// The token of the invitation waits nowhere in clear.
	to := guest.leave(u.Path+"/sso/acme", url.Values{})
	assertNotStored(t, s, strings.TrimPrefix(u.Path, "/join/"))
	if res, body := guest.arrive(to); !at(res, body, "user:dot") {
		t.Error(res.Status, body)
	}
	if res, _ := guest.do("POST", u.Path+"/sso/acme", url.Values{}); res.StatusCode != 404 {
		t.Error("an invitation worked twice:", res.Status)
	}
}

func TestTheProviderDecidesWhoIsMadeAndWhoIsAdmin(t *testing.T) {
	t.Parallel()
	is := idptest.New(t)
	// Names and groups are told by userinfo only.
	is.Person, is.More = idptest.Claims{"sub": "s-1"},
		idptest.Claims{"preferred_username": "cy", "name": "Cy", "groups": []string{"staff", "bosses"}}
	s := withIssuers(t, `, "create_users": true, "admin": {"claim": "groups", "value": "bosses"}, `+
		`"require": {"claim": "groups", "value": "staff"}`,
		map[string]*idptest.Issuer{"acme": is})
	b := newBrowser(t, s)
	if res, body := b.press("/login/sso/acme", url.Values{}); !at(res, body, "user:cy") || !strings.Contains(body, ", an admin") {
		t.Fatal(res.Status, body)
	}
	is.More["groups"] = []string{"staff"}
	if res, body := b.press("/login/sso/acme", url.Values{}); !at(res, body, "user:cy") || strings.Contains(body, ", an admin") {
		t.Error(res.Status, body)
	}
	// What the ID token says counts more than userinfo.
	is.Person["groups"], is.More["groups"] = []string{"staff"}, []string{"staff", "bosses"}
	if res, body := b.press("/login/sso/acme", url.Values{}); !at(res, body, "user:cy") || strings.Contains(body, ", an admin") {
		t.Error(res.Status, body)
	}
	delete(is.Person, "groups")
	is.More["groups"] = []string{"guests"}
	if res, body := b.press("/login/sso/acme", url.Values{}); res.StatusCode != 403 ||
		!strings.Contains(body, "not as one of those") {
		t.Error(res.Status, body)
	}
	if _, log := s.admin(t).call("GET", "/api/v1/orgs/main/audit?action=login.failed",
		""); !strings.Contains(log, "account.barred") {
		t.Error(log)
	}
	is.More = idptest.Claims{"sub": "s-9", "groups": []string{"staff"}}
	if res, _ := b.press("/login/sso/acme", url.Values{}); res.StatusCode != 403 {
		t.Error("userinfo about somebody else:", res.Status)
	}
}

// What comes back from a provider is good for the one sign-in that asked for it.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	is, evil := idptest.New(t), idptest.New(t)
	ada := idptest.Claims{"sub": "s-1", "preferred_username": "ada"}
	is.Person, evil.Person = ada, ada
	s := withIssuers(t, `, "create_users": true`, map[string]*idptest.Issuer{"acme": is, "evil": evil})
	n := 0
	browser := func() *browser {
		b := newBrowser(t, s)
		n++
		b.http.Transport = from(fmt.Sprintf("10.0.0.%d", n))
		return b
	}
	in := func() bool {
		t.Helper()
		res, _ := browser().press("/login/sso/acme", url.Values{})
		return res.Request.URL.Path == "/account"
	}
	for name, edit := range map[string]func(idptest.Claims){
		"another nonce":              func(c idptest.Claims) { c["nonce"] = "replayed" },
		"no nonce":                   func(c idptest.Claims) { delete(c, "nonce") },
		"another audience":           func(c idptest.Claims) { c["aud"] = "other" },
		"an audience beside ours":    func(c idptest.Claims) { c["aud"] = []string{"parley", "other"} },
		"another issuer":             func(c idptest.Claims) { c["iss"] = evil.URL },
		"expired":                    func(c idptest.Claims) { c["exp"] = 1 },
		"nobody":                     func(c idptest.Claims) { c["sub"] = "" },
		"a subject that is too long": func(c idptest.Claims) { c["sub"] = strings.Repeat("s", 256) },
	} {
		is.Edit = edit
		if in() {
			t.Errorf("%s: signed in", name)
		}
	}
	is.Edit = nil
	is.Signer = evil
	if in() {
		t.Error("signed by another: signed in")
	}
	is.Signer = nil
	for name, answer := range map[string]func(url.Values){
		"another state":             func(q url.Values) { q.Set("state", "x") },
		"no state":                  func(q url.Values) { q.Del("state") },
		"another code":              func(q url.Values) { q.Set("code", "x") },
		"no code":                   func(q url.Values) { q.Del("code") },
		"the word of another":       func(q url.Values) { q.Set("iss", evil.URL) },
		"not saying who it is from": func(q url.Values) { q.Del("iss") },
		"an error":                  func(q url.Values) { q.Set("error", "access_denied") },
	} {
		is.Answer = answer
		if in() {
			t.Errorf("%s: signed in", name)
		}
	}
	is.Answer = nil

	// The answer works once, in the browser that asked, at the provider that was asked.
	b := browser()
	back := b.answer(b.leave("/login/sso/acme", url.Values{}))
	here, _ := url.Parse(s.URL())
	before := b.http.Jar.Cookies(here)
	if res, body := browser().do("GET", back, nil); res.StatusCode != 403 || !strings.Contains(body, "started in this browser") {
		t.Error("another browser:", res.Status, body)
	}
	if res, _ := b.do("GET", strings.Replace(back, "/acme/", "/evil/", 1), nil); res.StatusCode != 403 {
		t.Error("the callback of another provider:", res.Status)
	}
	if res, body := b.arrive(back); !at(res, body, "user:ada") {
		t.Error(res.Status, body)
	}
	if after := b.http.Jar.Cookies(here); len(before) != 1 || len(after) != 1 || before[0].Value == after[0].Value {
		t.Error("the session's token outlived the sign-in", before, after)
	}
	if res, body := b.do("GET", back, nil); res.StatusCode != 403 || !strings.Contains(body, "started in this browser") {
		t.Error("once more:", res.Status, body)
	}
	// What a provider says is shown as text.
	b = browser()
	is.Answer = func(q url.Values) { q.Set("error", "x"); q.Set("error_description", "<script>alert(1)</script>") }
	if res, body := b.press("/login/sso/acme", url.Values{}); res.StatusCode != 403 || strings.Contains(body, "<script>") ||
		!strings.Contains(body, "&lt;script&gt;") {
		t.Error(res.Status, body)
	}
	is.Answer = nil
	// Only local addresses are gone to, and other sites cannot start it.
	if res, _ := b.press("/login/sso/acme", url.Values{"next": {"https://evil.example/"}}); res.Request.URL.Path != "/account" {
		t.Error(res.Request.URL)
	}
	if code, _ := b.call("POST", "/login/sso/acme", "", "Sec-Fetch-Site", "cross-site"); code != 403 {
		t.Error(code)
	}
	if res, _ := b.do("POST", "/login/sso/none", url.Values{}); res.StatusCode != 404 {
		t.Error(res.Status)
	}
	// Guessing is slow.
	b = browser()
	limited := func(method, path string) {
		t.Helper()
		for range 1000 { // a turn may come back while a slow machine guesses
			if res, _ := b.do(method, path, url.Values{}); res.StatusCode == 429 && res.Header.Get("Retry-After") != "" {
				return
			}
		}
		t.Error(method, path, "is not limited")
	}
	limited("GET", "/login/sso/acme/callback?state=guess&code=x")
	limited("POST", "/login/sso/acme")
}

// answer lets the provider sign the person in, and returns where it sends the browser.
func (b *browser) answer(addr string) string {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), "GET", addr, nil)
	if err != nil {
		b.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	return res.Header.Get("Location")
}
