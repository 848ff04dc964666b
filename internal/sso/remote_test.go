package sso

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A provider cannot lead us elsewhere, nor fill our memory, nor make us use what
// travels in clear.
func TestAProviderThatLeadsElsewhere(t *testing.T) {
	t.Parallel()
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(elsewhere.Close)
	var answer func(w http.ResponseWriter, r *http.Request)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	t.Cleanup(srv.Close)
	document := func(issuer, endpoint string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"issuer": %q, "authorization_endpoint": %q, "token_endpoint": %q, "jwks_uri": %q}`, issuer,
				endpoint, endpoint, endpoint)
		}
	}
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		want   string // of the error; empty: none
	}{
		{"itself", document(srv.URL, srv.URL+"/x"), ""},
		{"a redirect to another host", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL,
				http.StatusFound)
		}, "redirects to another host"},
		{"another name", document("https://other.example", srv.URL), "did not match"},
		{"an address in clear", document(srv.URL, "http://login.acme.example/x"), "must start with https://"},
		{"no address", document(srv.URL, ""), "must be a URL"},
		{"too much", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"issuer": %q, "pad": "%s"}`, srv.URL, strings.Repeat("x", maxResponse))
		}, "larger than"},
		{"nonsense", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, "decode"},
		{"an error", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) }, "404"},
	} {
		answer = c.answer
		p := New([]Issuer{{Name: "acme", Title: "Acme", Issuer: srv.URL, Org: "main", SignIn: &SignIn{ClientID: "parley"}}},
			slog.New(slog.DiscardHandler), time.Now)[0]
		_, err := p.document.get(t.Context())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
	if asked != 0 {
		t.Error("a redirect to another host was followed")
	}
}
