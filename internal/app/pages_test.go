package app

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// People who open a wrong address see a page; programs get a problem document.
func TestWrongAddressesArePagesForPeople(t *testing.T) {
	t.Parallel()
	s := running(t)
	for _, c := range []struct {
		method, path, accept string
		status               int
		page                 bool
	}{
		{"GET", "/nothing", "text/html,*/*", 404, true},
		{"GET", "/orgs/main/nothing", "text/html", 404, true},
		{"GET", "/orgs/main/", "text/html", 404, true},
		{"GET", "/orgs//main", "text/html", 404, true},
		{"GET", "/logout", "text/html", 405, true},
		{"GET", "/nothing", "", 404, false},
		{"GET", "/nothing", "application/json", 404, false},
		{"GET", "/api/v1/nothing", "text/html", 404, false},
		{"GET", "/.well-known/nothing", "text/html", 404, false},
		{"DELETE", "/api/v1/me", "text/html", 405, false},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, s.URL()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", c.accept)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		page := strings.HasPrefix(res.Header.Get("Content-Type"), "text/html")
		if res.StatusCode != c.status || page != c.page || (c.status == 405) != (res.Header.Get("Allow") != "") {
			t.Errorf("%s %s for %q: %s %v %.200s", c.method, c.path, c.accept, res.Status, res.Header, body)
		}
		if page && c.status == 404 && (!strings.Contains(string(body), "<h1>Page not found</h1>") ||
			!strings.Contains(string(body), `<link rel="stylesheet" href="/static/app.`) ||
			!strings.Contains(res.Header.Get("Content-Security-Policy"), "style-src 'self'")) {
			t.Errorf("%s: not the styled page: %v %s", c.path, res.Header, body)
		}
	}
}
