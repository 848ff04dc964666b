package app

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// member is somebody with a password, signed in; the org is made if need be.
func (s *Server) member(t *testing.T, org, user string, admin bool) *browser {
	t.Helper()
	ctx := t.Context()
	operator := identity.NewOperator(s.store.IdentityStores(), Now,
		func(prefix string) string { return prefix + strings.ToLower(t.Name()) })
	if _, err := operator.CreateOrg(ctx, org, ""); err != nil && errs.KindOf(err) != errs.Conflict {
		t.Fatal(err)
	}
	p := identity.Principal{Org: org, Kind: identity.User, ID: user}
	if _, err := operator.CreateMember(ctx, p, "", admin); err != nil {
		t.Fatal(err)
	}
	token, _, err := account.NewOperator(s.store.Accounts(), Now).NewLink(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, s)
	if res, body := b.do("POST", "/setup/"+token, url.Values{
		"password": {adminPassword},
		"repeat":   {adminPassword},
	}); !strings.HasPrefix(res.Request.URL.Path, "/orgs/"+org) {
		t.Fatal(res.Status, body)
	}
	return b
}

// ofTheOrg is a client that an admin registers in the browser.
func (b *browser) ofTheOrg(extra string) *oauth2.Config {
	b.Helper()
	code, body := b.call("POST", "/api/v1/orgs/main/clients", `{"name":"Reports","redirect_uris":["`+callback+`"]`+extra+`}`)
	var m struct {
		ID     string
		Secret string
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil || code != 201 {
		b.Fatal(code, body)
	}
	style := oauth2.AuthStyleInParams
	if m.Secret != "" {
		style = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{ClientID: m.ID, ClientSecret: m.Secret, RedirectURL: callback, Endpoint: oauth2.Endpoint{
		AuthURL: b.base + "/oauth/authorize", TokenURL: b.base + "/oauth/token", AuthStyle: style,
	}}
}

const everything = "svc:tasks:read svc:tasks:write svc:a2a:write svc:admin:admin"

func TestAClientOfTheOrgCanGetAdminFromAnAdminOnly(t *testing.T) {
	t.Parallel()
	s := running(t)
	admin := s.admin(t)
	ann := s.member(t, "main", "ann", true)
	bob := s.member(t, "main", "bob", false)
	const scopes = `,"scopes":["svc:tasks:read","svc:tasks:write","svc:a2a:write","svc:admin:admin"]`
	all := strings.Fields(everything)
	for _, extra := range []string{scopes, scopes + `,"method":"client_secret_basic"`} {
		c := admin.ofTheOrg(extra)
		_, body := ann.do("GET", c.AuthCodeURL("s", oauth2.S256ChallengeOption("x")), nil)
		if !strings.Contains(body, "An admin of your org, <code>user:admin</code>, registered it.") ||
			strings.Contains(body, "its name is not verified") {
			t.Error(body)
		}
		if tok := bob.token(c, nil, all...); tok.Extra("scope") != "svc:tasks:read svc:tasks:write svc:a2a:write" {
			t.Error("a member gave", tok.Extra("scope"))
		}
		// What the person is not, the program cannot get by asking for it alone.
		if q := bob.consent(c.AuthCodeURL("s", oauth2.S256ChallengeOption("x"),
			oauth2.SetAuthURLParam("scope", "svc:admin:admin")), "allow"); q.Get("error") != "invalid_scope" {
			t.Error(q)
		}
		tok := ann.token(c, nil, all...)
		if tok.Extra("scope") != everything {
			t.Error("an admin gave", tok.Extra("scope"))
		}
		if code, body := get(t, s.URL()+"/api/v1/orgs/main/keys", tok.AccessToken); code != 200 {
			t.Error(code, body)
		}
	}
	// A client that was not registered for it does not get it from an admin either.
	plain := admin.ofTheOrg("")
	if tok := ann.token(plain, nil, all...); tok.Extra("scope") != "svc:tasks:read svc:tasks:write svc:a2a:write" {
		t.Error(tok.Extra("scope"))
	}
	// Nor does one that registered itself, and the page says what it is.
	own, _ := registered(t, s, "")
	if _, body := ann.do("GET", own.AuthCodeURL("s", oauth2.S256ChallengeOption("x")),
		nil); !strings.Contains(body, "its name is not verified") {
		t.Error(body)
	}
	if tok := ann.token(own, nil, all...); strings.Contains(tok.Extra("scope").(string), "admin") {
		t.Error(tok.Extra("scope"))
	}

	// Who is no admin any more has no token of one; a refresh yields what is left.
	c := admin.ofTheOrg(scopes)
	tok := ann.token(c, nil, all...)
	if code, body := admin.call("PATCH", "/api/v1/orgs/main/members/user:ann", `{"admin":false}`); code != 200 {
		t.Fatal(code, body)
	}
	if !ends(t, s, tok.AccessToken) {
		t.Error("a token of an admin outlived the admin")
	}
	fresh, err := c.TokenSource(t.Context(), &oauth2.Token{RefreshToken: tok.RefreshToken}).Token()
	if err != nil || strings.Contains(fresh.Extra("scope").(string), "admin") {
		t.Error(fresh, err)
	}
}

func TestAClientOfAnotherOrgIsAsUnknownAsNone(t *testing.T) {
	t.Parallel()
	s := running(t)
	admin := s.admin(t)
	eve := s.member(t, "globex", "eve", true)
	c := admin.ofTheOrg("")
	unknown := *c
	unknown.ClientID = c.ClientID[:len(c.ClientID)-4] + "0000"
	for _, opts := range [][]oauth2.AuthCodeOption{
		{oauth2.S256ChallengeOption("x")},
		{},
		{oauth2.S256ChallengeOption("x"), oauth2.SetAuthURLParam("redirect_uri", "https://evil.example/")},
		{oauth2.S256ChallengeOption("x"), oauth2.SetAuthURLParam("scope", "svc:admin:admin")},
	} {
		res, body := eve.do("GET", c.AuthCodeURL("s", opts...), nil)
		want, none := eve.do("GET", unknown.AuthCodeURL("s", opts...), nil)
		if res.StatusCode != 400 || want.StatusCode != 400 || body != none || strings.Contains(body, "Reports") ||
			res.Header.Get("Location") != "" {
			t.Errorf("%s: %s\n%s: %s", res.Status, body, want.Status, none)
		}
	}
	// A question that was put to a member of the org is not hers to answer.
	_, body := admin.do("GET", c.AuthCodeURL("s", oauth2.S256ChallengeOption("x")), nil)
	m := answerPath.FindStringSubmatch(body)
	if m == nil {
		t.Fatal(body)
	}
	if res, _ := eve.do("POST", m[1], url.Values{
		"decision": {"allow"},
		"scope":    {"svc:tasks:read"},
	}); res.StatusCode == http.StatusSeeOther && redirected(t, res).Get("code") != "" {
		t.Error("somebody of another org answered")
	}
	// The REST interface of her own org does not know it, either.
	if code, _ := eve.call("DELETE", "/api/v1/orgs/globex/clients/"+c.ClientID, ""); code != 404 {
		t.Error(code)
	}
}

func TestDeletingAClientEndsWhatItWasAllowed(t *testing.T) {
	t.Parallel()
	s := running(t)
	admin := s.admin(t)
	c, other := admin.ofTheOrg(`,"method":"client_secret_basic"`), admin.ofTheOrg("")
	tok, stays := admin.token(c, nil, "svc:tasks:read"), admin.token(other, nil, "svc:tasks:read")
	_, page := admin.do("GET", c.AuthCodeURL("s", oauth2.S256ChallengeOption("x")), nil)
	if code, body := admin.call("DELETE", "/api/v1/orgs/main/clients/"+c.ClientID, ""); code != 200 {
		t.Fatal(code, body)
	}
	if !ends(t, s, tok.AccessToken) {
		t.Error("a token outlived its client")
	}
	if _, err := c.TokenSource(t.Context(), &oauth2.Token{RefreshToken: tok.RefreshToken}).Token(); err == nil {
		t.Error("a refresh token outlived its client")
	}
	if code, _ := get(t, s.URL()+list, stays.AccessToken); code != 200 {
		t.Error("another client's token ended:", code)
	}
	// A question that was open meanwhile leads nowhere.
	res, body := admin.do("POST", answerPath.FindStringSubmatch(page)[1],
		url.Values{"decision": {"allow"}, "scope": {"svc:tasks:read"}})
	if res.StatusCode >= 500 || res.StatusCode == http.StatusSeeOther && redirected(t, res).Get("code") != "" {
		t.Error(res.Status, body)
	}
}

var endForm = regexp.MustCompile(`action="(/account/programs/[^"]+/end[^"]*)"`)

func TestAPersonTakesBackWhatAProgramWasAllowed(t *testing.T) {
	t.Parallel()
	s := running(t)
	admin, bob := s.admin(t), s.member(t, "main", "bob", false)
	if _, body := admin.do("GET", "/account", nil); strings.Contains(body, "Programs that act for you") {
		t.Error("nobody was allowed anything:", body)
	}
	c, other := admin.ofTheOrg(""), admin.ofTheOrg("")
	tok := admin.token(c, []oauth2.AuthCodeOption{
		oauth2.SetAuthURLParam("scope", "svc:tasks:read svc:a2a:write agent:echo"),
	}, "svc:tasks:read", "svc:a2a:write")
	bobs := bob.token(c, nil, "svc:tasks:read")
	_, body := admin.do("GET", "/account", nil)
	for _, want := range []string{
		"<h3><bdi>Reports</bdi></h3>", "<li>Read proposals", "<li>Send tasks",
		"agents only: <code>echo</code>", "Since 20",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
	if strings.Contains(body, "<li>Administer") || strings.Contains(body, "<li>Submit") {
		t.Error("the page shows rights that were not given:", body)
	}
	end := endForm.FindAllStringSubmatch(body, -1)
	if len(end) != 1 {
		t.Fatal(end)
	}
	if err := s.auth.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, _ := get(t, s.URL()+list, tok.AccessToken); code != 200 {
		t.Error(code)
	}
	// Only who allowed it ends it, and only on purpose.
	if res, _ := bob.do("POST", end[0][1], url.Values{}); res.StatusCode != 404 {
		t.Error("another user ended it:", res.Status)
	}
	if res, _ := newBrowser(t, s).do("POST", end[0][1], url.Values{}); res.StatusCode != 401 {
		t.Error("a stranger was not asked to sign in:", res.Status)
	}
	if res, _ := admin.do("GET", end[0][1], nil); res.StatusCode != 405 {
		t.Error("a link ended it:", res.Status)
	}
	if code, _ := admin.call("POST", end[0][1], "", "Sec-Fetch-Site", "cross-site"); code != 403 {
		t.Error("another site ended it:", code)
	}
	for _, id := range []string{"grant-none", "x", "%00", strings.Repeat("g", 300)} {
		if res, body := admin.do("POST", "/account/programs/"+id+"/end", url.Values{}); res.StatusCode != 404 {
			t.Error(id, res.Status, body)
		}
	}
	if code, _ := get(t, s.URL()+list, tok.AccessToken); code != 200 {
		t.Error("somebody ended it:", code)
	}

	stays := admin.token(other, []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("resource", s.URL()+"/mcp")}, "svc:tasks:read")
	if res, body := admin.do("POST", end[0][1], url.Values{}); res.StatusCode != 200 ||
		!strings.Contains(body, "It can use this at <code>/mcp</code> only") ||
		strings.Contains(body, end[0][1]) {
		t.Error(res.Status, body)
	}
	if !ends(t, s, tok.AccessToken) {
		t.Error("the token works on")
	}
	if _, err := c.TokenSource(t.Context(), &oauth2.Token{RefreshToken: tok.RefreshToken}).Token(); err == nil {
		t.Error("the refresh token works on")
	}
	if code, _ := mcpList(t, s, stays.AccessToken); code != 200 {
		t.Error("another program's token ended:", code)
	}
	if code, _ := get(t, s.URL()+list, bobs.AccessToken); code != 200 {
		t.Error("another person's token ended:", code)
	}
	if _, body := admin.call("GET", "/api/v1/orgs/main/audit?action=oauth.grant.revoke",
		""); strings.Count(body, `"target":"grant-`) != 1 || !strings.Contains(body, `"actor":"user:admin"`) {
		t.Error(body)
	}
	if res, _ := admin.do("POST", end[0][1], url.Values{}); res.StatusCode != 404 {
		t.Error("it was ended twice:", res.Status)
	}
}
