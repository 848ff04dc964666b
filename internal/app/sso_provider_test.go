package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/idptest"
)

func TestTheServerStartsWithoutTheProvider(t *testing.T) {
	t.Parallel()
	is := idptest.New(t)
	is.Person = idptest.Claims{"sub": "s-1", "preferred_username": "ada"}
	is.Down(true)
	s := withIssuers(t, `, "create_users": true`, map[string]*idptest.Issuer{"acme": is})
	b := newBrowser(t, s)
	res, body := b.do("POST", "/login/sso/acme", url.Values{})
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" ||
		!strings.Contains(body, "The acme cannot be reached at the moment") {
		t.Error(res.Status, res.Header, body)
	}
	if n := is.Documents.Load(); n != 0 {
		t.Error(n)
	}
	// When it is up, the next who ask find it, after a pause at most.
	is.Down(false)
	var to string
	for n := 0; to == ""; n++ {
		time.Sleep(20 * time.Millisecond)
		b.http.Transport = from(fmt.Sprintf("10.1.0.%d", n%250))
		res, body := b.do("POST", "/login/sso/acme", url.Values{})
		if m := refreshTo.FindStringSubmatch(res.Header.Get("Refresh")); m != nil {
			to = m[1]
		} else if res.StatusCode != 503 {
			t.Fatal(res.Status, body)
		}
	}
	is.Down(true)
	code := strings.Replace(to, is.URL+"/authorize", s.URL()+"/login/sso/acme/callback", 1) + "&code=x&iss=" +
		url.QueryEscape(is.URL)
	if res, _ := b.do("GET", code, nil); res.StatusCode != 503 {
		t.Error("down when the code comes:", res.Status)
	}
	is.Down(false)
	if res, body := b.press("/login/sso/acme", url.Values{}); !at(res, body, "user:ada") {
		t.Error(res.Status, body)
	}
}

// A provider says how it wants to see the secret, or that there is none.
func TestTheSecretIsShownAsTheProviderSays(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"client_secret_basic", "client_secret_post", "none"} {
		is := idptest.New(t)
		is.Person, is.Method = idptest.Claims{"sub": "s-1", "preferred_username": "ada"}, method
		cfg := testConfig(t)
		cfg.Issuers = issuerFile(t, `, "create_users": true`, map[string]*idptest.Issuer{"acme": is})
		if method == "none" {
			is.Method, is.Secret = "", ""
			data, err := os.ReadFile(cfg.Issuers)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(cfg.Issuers, bytes.Replace(data, []byte(`, "client_secret_file": "secret"`), nil, 1),
				0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := startServer(t, cfg)
		if res, body := newBrowser(t, s).press("/login/sso/acme", url.Values{}); !at(res, body, "user:ada") {
			t.Error(method, res.Status, body)
		}
		_ = s.Shutdown()
	}
}

func TestAProviderOfAnotherOrgIsNotThere(t *testing.T) {
	t.Parallel()
	is := idptest.New(t)
	is.Person = idptest.Claims{"sub": "s-1", "preferred_username": "admin"}
	cfg := testConfig(t)
	cfg.Issuers = issuerFile(t, "", map[string]*idptest.Issuer{"acme": is})
	data, err := os.ReadFile(cfg.Issuers)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.Issuers, bytes.ReplaceAll(data, []byte(`"org": "main"`), []byte(`"org": "other"`)),
		0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, cfg)
	t.Cleanup(func() { _ = s.Shutdown() })
	setup := strings.TrimPrefix(s.Link(), s.URL())
	nowhere := func(b *browser, path string) {
		t.Helper()
		if res, body := b.do("POST", path, url.Values{}); res.StatusCode != 404 ||
			!strings.Contains(body, "no such identity provider") {
			t.Error(path, res.Status, body)
		}
	}
	nowhere(newBrowser(t, s), setup+"/sso/acme")
	admin := s.admin(t)
	nowhere(admin, "/account/sso/acme")
	nowhere(admin, "/account/sso/acme/disconnect")
	if _, body := admin.do("GET", "/account", nil); strings.Contains(body, "Connect The acme") {
		t.Error(body)
	}
	_, body := admin.call("POST", "/api/v1/orgs/main/invitations", `{"user":"dot"}`)
	var invitation struct{ URL string }
	if err := json.Unmarshal([]byte(body), &invitation); err != nil || invitation.URL == "" {
		t.Fatal(body, err)
	}
	nowhere(newBrowser(t, s), strings.TrimPrefix(invitation.URL, s.URL())+"/sso/acme")
}
