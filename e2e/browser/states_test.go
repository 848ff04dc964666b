package browser

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/servertest"
)

// TestSecretOnce submits the form for a key twice: only the first response has the secret, and it
// must not be stored.
func TestSecretOnce(t *testing.T) {
	begin(t)
	s := newSite(t)
	admin := s.signIn(t, "admin", true)
	_, page := s.get(t, admin, s.path("/keys/new?preset=reads"))
	form := url.Values{
		"once": {
			between(page, `name="once" value="`, `"`),
		}, "principal": {"user:admin"}, "scopes": {read}, "expires": {"90"}, "preset": {"reads"}, "name": {"twice"},
	}
	res, first := s.send(t, admin, http.MethodPost, s.path("/keys"), form)
	secret := servertest.Secret.FindString(first)
	if secret == "" || res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Content-Encoding") != "" {
		t.Fatalf("got %s %v with the secret %q, want one, not to be stored or compressed", res.Status, res.Header, secret)
	}
	res, second := s.send(t, admin, http.MethodPost, s.path("/keys"), form)
	if res.StatusCode >= 400 || strings.Contains(second, secret) || !strings.Contains(second, "shown once") {
		t.Errorf("sent again: got %s, with the secret: %t; want it not shown", res.Status, strings.Contains(second, secret))
	}
	if _, list := s.get(t, admin, s.path("/keys")); strings.Count(list, ">twice<") != 1 || strings.Contains(list, secret) {
		t.Errorf("the list has %d such keys, want 1", strings.Count(list, ">twice<"))
	}
}

// TestRefusalsHaveWords requests what is refused: each response is a page of the dashboard with
// the reason and a way on.
func TestRefusalsHaveWords(t *testing.T) {
	begin(t)
	s := readOnly(t)
	for _, c := range []struct {
		name, method, path string
		who                *person
		form               url.Values
		status             int
		words              string
	}{
		{"403", "GET", s.path("/keys"), s.member, nil, 403, "You may not do this"},
		{"404", "GET", s.path("/proposals/prop-00000000000000000000000000"), s.admin, nil, 404, "Page not found"},
		{"404 of another org", "GET", "/orgs/elsewhere/proposals", s.admin, nil, 404, ""},
		{
			"409", "POST", s.path("/proposals/" + s.resolved + "/decide"), s.admin,
			url.Values{"status": {"open"}, "text_version": {"1"}},
			409, "",
		},
		{
			"412", "POST", s.path("/proposals/" + s.open + "/decide"), s.admin,
			url.Values{"status": {"approved"}, "text_version": {"1"}},
			412, "changed while you read",
		},
		{"413", "POST", s.path("/proposals/new"), s.admin, url.Values{"problem": {strings.Repeat("x", 2<<20)}}, 413, ""},
		{"422", "POST", s.path("/proposals/new"), s.admin, url.Values{"title": {"x"}}, 422, "Nothing was saved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, body := s.send(t, c.who, c.method, c.path, c.form)
			if res.StatusCode != c.status || !strings.Contains(body, c.words) || !strings.Contains(body, "<main") ||
				!strings.Contains(body, "<h1") {
				t.Errorf("%s %s: got %s %s, want %d with %q", c.method, c.path, res.Status, cut(body, 300), c.status, c.words)
			}
		})
	}
}

// TestTooFastHasWords exceeds the rate limit: the page shows how long to wait.
func TestTooFastHasWords(t *testing.T) {
	begin(t)
	s := newSite(t, "--rate-limit", "1")
	admin := s.signIn(t, "admin", true)
	for range 200 {
		res, body := s.get(t, admin, s.path("/followups"))
		if res.StatusCode == http.StatusTooManyRequests {
			if !strings.Contains(body, "Try again in") || !strings.Contains(body, "<main") ||
				res.Header.Get("Retry-After") == "" {
				t.Errorf("got %v %s, want a page with Retry-After", res.Header, cut(body, 600))
			}
			return
		}
	}
	t.Error("got no request to wait, want one")
}
