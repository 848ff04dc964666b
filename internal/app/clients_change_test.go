package app

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// change edits or rotates a client of the org, in the browser.
func (b *browser) change(method, path, body string) (answer struct{ Secret string }) {
	b.Helper()
	code, text := b.call(method, "/api/v1/orgs/main/clients/"+path, body)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || code != 200 {
		b.Fatal(code, text)
	}
	return answer
}

// refresh trades the refresh token of a token, once.
func refresh(t *testing.T, c oauth2.Config, tok *oauth2.Token) (*oauth2.Token, error) {
	return c.TokenSource(t.Context(), &oauth2.Token{RefreshToken: tok.RefreshToken}).Token()
}

func refused(err error, code string) bool {
	var e *oauth2.RetrieveError
	return errors.As(err, &e) && e.ErrorCode == code
}

func TestTheOldSecretOfAClientWorksUntilTheOverlapEnds(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	with := testSettings
	with.now = func() time.Time { return Now().Add(time.Duration(ahead.Load())) }
	s, err := newServer(t.Context(), testConfig(t), slog.New(slog.DiscardHandler), with)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { _ = s.Shutdown() })
	admin := s.admin(t)
	for _, method := range []string{"client_secret_basic", "client_secret_post"} {
		made := admin.ofTheOrg(`,"method":"` + method + `"`)
		if method == "client_secret_post" {
			made.Endpoint.AuthStyle = oauth2.AuthStyleInParams
		}
		old, fresh, wrong := *made, *made, *made
		before := admin.token(&old, nil, "svc:tasks:read")
		fresh.ClientSecret = admin.change("POST", made.ClientID+"/rotate", `{"overlap_seconds":60}`).Secret
		wrong.ClientSecret = strings.Repeat("0", len(made.ClientSecret))
		// Nobody is asked again: what was allowed goes on with either secret.
		for _, c := range []oauth2.Config{old, fresh} {
			if tok := admin.token(&c, nil, "svc:tasks:read"); tok.RefreshToken == "" {
				t.Error(tok)
			}
			if before, err = refresh(t, c, before); err != nil {
				t.Fatal(err)
			}
		}
		for _, secret := range []string{wrong.ClientSecret, "", old.ClientSecret + " " + fresh.ClientSecret} {
			wrong.ClientSecret = secret
			if _, err := refresh(t, wrong, before); !refused(err, "invalid_client") {
				t.Errorf("%s with %q: %v", method, secret, err)
			}
		}
		ahead.Add(int64(61 * time.Second))
		if _, err := refresh(t, old, before); !refused(err, "invalid_client") {
			t.Error("the old secret works after the overlap:", err)
		}
		if before, err = refresh(t, fresh, before); err != nil {
			t.Fatal(err)
		}
		if code, body := get(t, s.URL()+list, before.AccessToken); code != 200 {
			t.Error(code, body)
		}

		// Without an overlap the old one ends at once, and so does the oldest of three.
		last := fresh
		last.ClientSecret = admin.change("POST", made.ClientID+"/rotate", "").Secret
		if _, err := refresh(t, fresh, before); !refused(err, "invalid_client") {
			t.Error("without an overlap the old secret works:", err)
		}
		admin.change("POST", made.ClientID+"/rotate", `{"overlap_seconds":3600}`)
		if before, err = refresh(t, last, before); err != nil {
			t.Fatal(err)
		}
		admin.change("POST", made.ClientID+"/rotate", `{"overlap_seconds":3600}`)
		if _, err := refresh(t, last, before); !refused(err, "invalid_client") {
			t.Error("two rotations ago is too long:", err)
		}
	}
}

func TestAClientThatMayAskForLessLosesWhatItHad(t *testing.T) {
	t.Parallel()
	s := running(t)
	admin := s.admin(t)
	c := admin.ofTheOrg(`,"scopes":["svc:tasks:read","svc:tasks:write","svc:a2a:write","svc:admin:admin"]`)
	all := strings.Fields(everything)
	tok, reader := admin.token(c, nil, all...), admin.token(c, nil, "svc:tasks:read")
	verifier := oauth2.GenerateVerifier()
	open := admin.consent(c.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)), "allow", all...)
	if err := s.auth.Refresh(t.Context()); err != nil { // from here on they are remembered
		t.Fatal(err)
	}
	for _, token := range []string{tok.AccessToken, reader.AccessToken} {
		if code, body := get(t, s.URL()+list, token); code != 200 {
			t.Fatal(code, body)
		}
	}
	admin.change("PATCH", c.ClientID, `{"scopes":["svc:tasks:read","svc:a2a:write","agent:echo"]}`)
	if !ends(t, s, tok.AccessToken) {
		t.Error("a token kept what its client may not have")
	}
	if code, body := get(t, s.URL()+list, reader.AccessToken); code != 200 {
		t.Error("a token ended that carries nothing of it:", code, body)
	}
	const left = "svc:tasks:read svc:a2a:write agent:echo"
	fresh, err := refresh(t, *c, tok)
	if err != nil || fresh.Extra("scope") != left {
		t.Fatal(fresh, err)
	}
	if code, body := get(t, s.URL()+list, fresh.AccessToken); code != 200 {
		t.Error(code, body)
	}
	// So does a code that was given before, and a question that is put now.
	late, err := c.Exchange(t.Context(), open.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil || late.Extra("scope") != left {
		t.Error(late, err)
	}
	if tok := admin.token(c, nil, all...); tok.Extra("scope") != left {
		t.Error(tok.Extra("scope"))
	}
	// More than was allowed is had by asking again only.
	admin.change("PATCH", c.ClientID, `{"scopes":["svc:tasks:read","svc:tasks:write"]}`)
	if reader, err = refresh(t, *c, reader); err != nil || reader.Extra("scope") != "svc:tasks:read" {
		t.Error(reader, err)
	}
	if tok := admin.token(c, nil, all...); tok.Extra("scope") != "svc:tasks:read svc:tasks:write" {
		t.Error(tok.Extra("scope"))
	}
	// With nothing left there is no token.
	admin.change("PATCH", c.ClientID, `{"scopes":["svc:admin:admin"]}`)
	if !ends(t, s, reader.AccessToken) {
		t.Error("a token works with nothing left")
	}
	if _, err := refresh(t, *c, reader); !refused(err, "invalid_grant") {
		t.Error(err)
	}
}

func TestAClientThatMovedIsAnsweredThere(t *testing.T) {
	t.Parallel()
	s := running(t)
	admin, bob, eve := s.admin(t), s.member(t, "main", "bob", false), s.member(t, "globex", "eve", true)
	c := admin.ofTheOrg("")
	tok := admin.token(c, nil, "svc:tasks:read")
	verifier := oauth2.GenerateVerifier()
	sent := admin.consent(c.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)), "allow", "svc:tasks:read")
	_, page := admin.do("GET", c.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)), nil)
	asked := answerPath.FindStringSubmatch(page)
	if asked == nil {
		t.Fatal(page)
	}
	for _, call := range [][3]string{{"PATCH", "", `{"redirect_uris":["https://evil.example/"]}`}, {"POST", "/rotate", "{}"}} {
		path := "/clients/" + c.ClientID + call[1]
		if code, body := bob.call(call[0], "/api/v1/orgs/main"+path, call[2]); code != 403 ||
			!strings.Contains(body, "auth.scope_missing") {
			t.Error("a member who is no admin:", code, body)
		}
		if code, body := eve.call(call[0], "/api/v1/orgs/globex"+path, call[2]); code != 404 {
			t.Error("an admin of another org:", code, body)
		}
	}
	admin.change("PATCH", c.ClientID, `{"name":"Monthly","redirect_uris":["http://127.0.0.1:8123/moved"]}`)
	// What was allowed stays.
	if code, _ := get(t, s.URL()+list, tok.AccessToken); code != 200 {
		t.Error(code)
	}
	if _, err := refresh(t, *c, tok); err != nil {
		t.Error(err)
	}
	if _, err := c.Exchange(t.Context(), sent.Get("code"), oauth2.VerifierOption(verifier)); !refused(err, "invalid_grant") {
		t.Error("a code works that was sent to where the client is no more:", err)
	}
	for _, decision := range []string{"allow", "refuse"} {
		res, body := admin.do("POST", asked[1], url.Values{"decision": {decision}, "scope": {"svc:tasks:read"}})
		if res.StatusCode != 400 || res.Header.Get("Location") != "" || !strings.Contains(body, "not at its address any more") {
			t.Errorf("%s is sent to where the client is no more: %s %s", decision, res.Status, body)
		}
	}
	if res, body := admin.do("GET", c.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)),
		url.Values{}); res.StatusCode != 400 {
		t.Error(res.Status, body)
	}
	c.RedirectURL = "http://127.0.0.1:8123/moved"
	if _, body := admin.do("GET", c.AuthCodeURL("s", oauth2.S256ChallengeOption(verifier)),
		nil); !strings.Contains(body, "Monthly") {
		t.Error(body)
	}
	if tok := admin.token(c, nil, "svc:tasks:read"); tok.AccessToken == "" {
		t.Error(tok)
	}
}
