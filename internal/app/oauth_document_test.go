package app

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/oauth2"

	"github.com/parley-dev/parley/internal/oauth"
)

// What Cursor sends when it registers: three addresses, one with a scheme of its own.
const cursorRegistration = `{"client_name":"Cursor","redirect_uris":["http://localhost:8787/callback",` +
	`"https://www.cursor.com/agents/mcp/oauth/callback","cursor://anysphere.cursor-mcp/oauth/callback"],` +
	`"grant_types":["authorization_code","refresh_token"],"response_types":["code"],` +
	`"token_endpoint_auth_method":"none","application_type":"native"}`

func TestAnEditorWithASchemeOfItsOwn(t *testing.T) {
	t.Parallel()
	s := running(t)
	b := s.admin(t)
	code, body := post(t, s.URL()+"/oauth/register", "", cursorRegistration)
	var m struct {
		ClientID string `json:"client_id"`
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil || code != 201 {
		t.Fatal(code, body, err)
	}
	const app = "cursor://anysphere.cursor-mcp/oauth/callback"
	c := &oauth2.Config{ClientID: m.ClientID, RedirectURL: app, Endpoint: oauth2.Endpoint{
		AuthURL: s.URL() + "/oauth/authorize", TokenURL: s.URL() + "/oauth/token", AuthStyle: oauth2.AuthStyleInParams,
	}}
	res, body := b.do("GET", c.AuthCodeURL("s", oauth2.S256ChallengeOption("v")), nil)
	// The browser must be able to go on to the app.
	if policy := res.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self' cursor:;") &&
		!strings.HasSuffix(policy, "form-action 'self' cursor:") {
		t.Error(policy)
	}
	if !strings.Contains(body, "cursor://anysphere.cursor-mcp") {
		t.Error(body)
	}
	if tok := b.token(c, nil, "svc:tasks:read"); tok.Extra("scope") != "svc:tasks:read" {
		t.Error(tok)
	}
}

// site is where a document could be; its certificate is nobody's, so nothing but the
// connection comes of it.
func site(t *testing.T) (id string, connected *atomic.Int32) {
	t.Helper()
	connected = new(atomic.Int32)
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connected.Add(1)
		}
	}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that end there
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv.URL + "/client.json", connected
}

func TestADocumentIsReadForPeopleOnly(t *testing.T) {
	t.Parallel()
	id, connected := site(t)
	cfg := testConfig(t)
	cfg.ClientDocumentsAllow = []string{"127.0.0.1"}
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	question := "/oauth/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {id}, "redirect_uri": {callback}, "code_challenge": {strings.Repeat("x", 43)},
		"code_challenge_method": {"S256"},
	}.Encode()
	if _, body := newBrowser(t, s).do("GET", question, nil); !strings.Contains(body, `name="password"`) || connected.Load() != 0 {
		t.Errorf("nobody is signed in: %d connections\n%s", connected.Load(), body)
	}
	// What a program calls itself does not read it either.
	form := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {id}, "code": {"x"}, "code_verifier": {"x"},
		"redirect_uri": {callback},
	}
	for _, path := range []string{"/oauth/token", "/oauth/revoke", "/oauth/introspect"} {
		if res, body := newBrowser(t, s).do("POST", path, form); res.StatusCode >= 500 || res.StatusCode == 200 &&
			path == "/oauth/token" || connected.Load() != 0 {
			t.Errorf("%s: %s %s, %d connections", path, res.Status, body, connected.Load())
		}
	}
	b := s.admin(t)
	res, body := b.do("GET", question, nil)
	if res.StatusCode != 400 || !strings.Contains(body, id) || !strings.Contains(body, "could not be reached") ||
		connected.Load() != 1 {
		t.Errorf("%s, %d connections\n%s", res.Status, connected.Load(), body)
	}
	// One person cannot make the server read without end.
	for n := 1; res.StatusCode == 400; n++ {
		if n > 100 {
			t.Fatal("there is no limit")
		}
		res, _ = b.do("GET", question, nil)
	}
	if res.StatusCode != http.StatusTooManyRequests {
		t.Error(res.Status)
	}
}

func TestDocumentsOfPrivateNetworksAreNotRead(t *testing.T) {
	t.Parallel()
	id, connected := site(t)
	s := running(t)
	res, body := s.admin(t).do("GET", "/oauth/authorize?response_type=code&client_id="+url.QueryEscape(id), nil)
	if res.StatusCode != 400 || !strings.Contains(body, "--outbound-allow") || connected.Load() != 0 {
		t.Errorf("%s, %d connections\n%s", res.Status, connected.Load(), body)
	}
}

func TestDocumentsCanBeOff(t *testing.T) {
	t.Parallel()
	id, connected := site(t)
	for _, on := range []bool{true, false} {
		cfg := testConfig(t)
		cfg.ClientDocuments, cfg.ClientDocumentsAllow = on, []string{"127.0.0.1"}
		s := startServer(t, cfg)
		t.Cleanup(func() { _ = s.Shutdown() })
		_, body := get(t, s.URL()+"/.well-known/oauth-authorization-server", "")
		var m struct {
			Supported bool `json:"client_id_metadata_document_supported"`
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil || m.Supported != on {
			t.Error(on, err, body)
		}
		if on {
			continue
		}
		// One that was known before it was turned off asks nobody any more, either.
		if err := s.oauth.Describe(t.Context(), id, oauth.Registration{RedirectURIs: []string{callback}}); err != nil {
			t.Fatal(err)
		}
		res, body := s.admin(t).do("GET", "/oauth/authorize?response_type=code&code_challenge_method=S256"+
			"&code_challenge="+strings.Repeat("x", 43)+"&redirect_uri="+url.QueryEscape(callback)+
			"&client_id="+url.QueryEscape(id), nil)
		if res.StatusCode != 400 || !strings.Contains(body, "must register") || connected.Load() != 0 {
			t.Errorf("%s, %d connections\n%s", res.Status, connected.Load(), body)
		}
	}
}
