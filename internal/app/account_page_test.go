package app

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/idptest"
)

var ownKeyRow = regexp.MustCompile(`action="(/account/keys/key-[0-9a-z]+/end[^"]*)"`)

// A person makes keys on the account page, with no more rights than the person has.
func TestOwnKeysOnTheAccountPage(t *testing.T) {
	t.Parallel()
	s := running(t)
	admin, bob := s.admin(t), s.member(t, "main", "bob", false)
	if _, body := bob.do("GET", "/account", nil); !strings.Contains(body, "You have no keys.") ||
		strings.Contains(body, "svc:admin:admin") || strings.Contains(body, "svc:a2a:serve") {
		t.Error(body)
	}
	for name, form := range map[string]url.Values{
		"err-scopes":  {"expires": {"90"}},
		"err-expires": {"scopes": {"svc:tasks:read"}, "expires": {"tomorrow"}},
		"err-name":    {"scopes": {"svc:tasks:read"}, "expires": {"90"}, "name": {"a\u202eb"}},
	} {
		if res, body := bob.do("POST", "/account/keys", form); res.StatusCode != 422 ||
			!strings.Contains(body, `id="`+name+`"`) || !strings.Contains(body, `id="add-key" open`) {
			t.Error(name, res.Status, body)
		}
	}
	if res, _ := bob.do("POST", "/account/keys", url.Values{
		"scopes":  {"svc:a2a:serve"},
		"expires": {"90"},
	}); res.StatusCode != 403 {
		t.Error("more than bob has:", res.Status)
	}
	form := url.Values{"name": {"<b>Laptop</b>"}, "scopes": {"svc:tasks:read"}, "expires": {"30"}, "once": {"key-form"}}
	res, body := bob.do("POST", "/account/keys", form)
	found := secretShown.FindStringSubmatch(body)
	if res.StatusCode != 200 || found == nil || res.Header.Get("Cache-Control") != "no-store" ||
		strings.Contains(body, "<b>Laptop") {
		t.Fatal(res.Status, res.Header, body)
	}
	if code, _ := get(t, s.URL()+list, found[1]); code != 200 {
		t.Error("the key does not work:", code)
	}
	if _, again := bob.do("POST", "/account/keys", form); strings.Contains(again, found[1]) ||
		!strings.Contains(again, "was already shown") ||
		len(ownKeyRow.FindAllString(again, -1)) != 1 {
		t.Error("the form sent again:", again)
	}
	_, body = bob.do("GET", "/account", nil)
	row := ownKeyRow.FindStringSubmatch(body)
	if row == nil || !strings.Contains(body, "Read proposals, votes") || !strings.Contains(body, "in 29 days") &&
		!strings.Contains(body, "in 30 days") {
		t.Fatal(body)
	}
	if res, _ := admin.do("POST", row[1], url.Values{}); res.StatusCode != 404 {
		t.Error("another ended it:", res.Status)
	}
	if res, body := bob.do("POST", row[1], url.Values{}); res.StatusCode != 200 ||
		!strings.Contains(body, "has ended") || ownKeyRow.MatchString(body) {
		t.Error(res.Status, body)
	}
	// A key that administers the org needs the password once more.
	form = url.Values{"scopes": {"svc:admin:admin"}, "expires": {"30"}, "password": {"not my password"}}
	if res, body := admin.do("POST", "/account/keys", form); res.StatusCode != 422 ||
		!strings.Contains(body, `id="err-password"`) || secretShown.MatchString(body) {
		t.Error(res.Status, body)
	}
	form.Set("password", adminPassword)
	if res, body := admin.do("POST", "/account/keys", form); res.StatusCode != 200 || !secretShown.MatchString(body) {
		t.Error(res.Status, body)
	}
}

// One person, two orgs: added by the password of the other, opened by one sign-in, taken apart.
func TestOrgsOnTheAccountPage(t *testing.T) {
	t.Parallel()
	s := running(t)
	ada := s.member(t, "main", "ada", false)
	s.member(t, "acme", "lovelace", false)
	link := url.Values{"org": {"acme"}, "user": {"lovelace"}, "password": {adminPassword}}
	// Nobody at a browser that was left open adds a sign-in of their own.
	for _, wrong := range []string{"", "not my password"} {
		link.Set("confirm", wrong)
		if res, body := ada.do("POST", "/account/orgs", link); res.StatusCode != 422 ||
			!strings.Contains(body, `id="err-confirm"`) || !strings.Contains(body, `id="add-org" open`) {
			t.Error(wrong, res.Status, body)
		}
	}
	link.Set("confirm", adminPassword)
	link.Set("password", "not the password")
	if res, body := ada.do("POST", "/account/orgs", link); res.StatusCode != 422 ||
		!strings.Contains(body, "is wrong.") || !strings.Contains(body, `value="lovelace"`) {
		t.Error(res.Status, body)
	}
	if res, _ := ada.do("GET", "/orgs/acme/agents", nil); res.StatusCode != 404 {
		t.Error(res.Status)
	}
	link.Set("password", adminPassword)
	if res, body := ada.do("POST", "/account/orgs", link); res.StatusCode != 200 ||
		!strings.Contains(body, "one sign-in opens both") || !strings.Contains(body, `id="org-acme"`) {
		t.Fatal(res.Status, body)
	}
	again := newBrowser(t, s)
	signIn(again, "main", "ada", adminPassword)
	for _, b := range []*browser{ada, again} {
		res, body := b.do("GET", "/orgs/acme/agents", nil)
		if res.StatusCode != 200 || !strings.Contains(body, `href="/orgs/main"`) ||
			!strings.Contains(body, `title="user:lovelace"`) {
			t.Error("no switcher:", res.Status, body)
		}
	}
	if res, body := ada.do("GET", "/account?org=acme", nil); !at(res, body, "user:lovelace") ||
		!strings.Contains(body, `action="/account/password?org=acme"`) {
		t.Error(res.Status, body)
	}
	if res, _ := ada.do("GET", "/account?org=other", nil); res.StatusCode != 404 {
		t.Error(res.Status)
	}
	if res, _ := ada.do("POST", "/account/unlink", url.Values{"membership": {"other"}}); res.StatusCode != 404 {
		t.Error(res.Status)
	}
	if _, body := ada.do("GET", "/account", nil); strings.Count(body, `name="membership"`) != 2 {
		t.Error("not all that is linked is listed:", body)
	}
	form := url.Values{"membership": {"acme"}}
	if res, body := ada.do("POST", "/account/unlink?org=main", form); res.StatusCode != 200 ||
		!strings.Contains(body, "no longer linked") {
		t.Error(res.Status, body)
	}
	if res, _ := again.do("GET", "/orgs/acme/agents", nil); res.StatusCode == 200 {
		t.Error("it is still open:", res.Status)
	}
}

// Who is signed in joins another org with the same account.
func TestJoiningWithTheAccountOneHas(t *testing.T) {
	t.Parallel()
	s := running(t)
	admin := s.admin(t)
	bob := s.member(t, "acme", "bob", false)
	code, body := admin.call("POST", "/api/v1/orgs/main/invitations", `{"user":"robert"}`)
	var inv struct{ URL string }
	if err := json.Unmarshal([]byte(body), &inv); err != nil || code != 201 {
		t.Fatal(code, body, err)
	}
	const offer = "Join with the account I am signed in with"
	if _, body := newBrowser(t, s).do("GET", inv.URL, nil); strings.Contains(body, offer) {
		t.Error("a stranger is offered an account:", body)
	}
	if res, body := newBrowser(t, s).do("POST", inv.URL+"/linked", url.Values{}); res.StatusCode != 401 {
		t.Error(res.Status, body)
	}
	if _, body := bob.do("GET", inv.URL, nil); !strings.Contains(body, offer) ||
		!strings.Contains(body, "org <b><bdi>acme</bdi>") {
		t.Error(body)
	}
	if res, _ := bob.do("POST", inv.URL+"/linked", url.Values{}); !strings.HasPrefix(res.Request.URL.Path,
		"/orgs/main") {
		t.Error(res.Request.URL)
	}
	if res, body := bob.do("GET", "/account?org=main", nil); !at(res, body, "user:robert") {
		t.Error(res.Status, body)
	}
	if res, _ := bob.do("POST", inv.URL+"/linked", url.Values{}); res.StatusCode != 404 {
		t.Error("the invitation worked twice:", res.Status)
	}
}

// A membership in an org with an identity provider is added to the session by signing in there.
func TestAnOrgWithAProviderIsAddedOnTheAccountPage(t *testing.T) {
	t.Parallel()
	is := idptest.New(t)
	is.Person = idptest.Claims{"sub": "s-1", "preferred_username": "ada", "name": "Ada", "email": "ada@acme.example"}
	s := withIssuers(t, "", map[string]*idptest.Issuer{"acme": is})
	admin := s.admin(t)
	admin.create("ada")
	const offer = `name="beside"`
	if _, body := admin.do("GET", "/account", nil); strings.Contains(body, offer) {
		t.Error("a provider of the org itself is offered:", body)
	}
	bob := s.member(t, "other", "bob", false)
	if _, body := bob.do("GET", "/account", nil); !strings.Contains(body, offer) ||
		!strings.Contains(body, `action="/login/sso/acme"`) {
		t.Fatal(body)
	}
	res, body := bob.press("/login/sso/acme", url.Values{"beside": {"yes"}, "next": {"/account?org=other"}})
	if !at(res, body, "user:bob") || !strings.Contains(body, `id="org-main"`) || strings.Contains(body, offer) {
		t.Error(res.Status, body)
	}
}
