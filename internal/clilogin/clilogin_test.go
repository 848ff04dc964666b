package clilogin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAnAddressHasOneName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"http://127.0.0.1:8080":       "http://127.0.0.1:8080",
		"http://127.0.0.1:8080/":      "http://127.0.0.1:8080",
		"HTTPS://Parley.Example/":     "https://parley.example",
		"https://parley.example/Sub/": "https://parley.example/Sub",
	} {
		if got := Address(in); got != want {
			t.Errorf("%s is %s; want %s", in, got, want)
		}
	}
}

func TestTheFileIsRefusedUnlessItIsOnesOwn(t *testing.T) {
	t.Parallel()
	f := &File{filepath.Join(t.TempDir(), "new", "credentials.json")}
	if _, ok, err := f.Login("http://a.example"); ok || err != nil {
		t.Error("no file is no login:", ok, err)
	}
	for text, says := range map[string]string{
		"": "delete it and run parley login", "[]": "delete it",
		`{"logins":[]}`: "delete it", "{}": "",
	} {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Login("http://a.example"); (err == nil) != (says == "") || err != nil &&
			!strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, server := range []string{"http://a.example/", "http://b.example"} {
		if _, had, err := f.Put(ctx, server, Login{Org: server, RefreshToken: "r"}); had || err != nil {
			t.Error(had, err)
		}
	}
	if old, had, err := f.Put(ctx, "http://A.example", Login{Org: "next"}); !had || old.Org != "http://a.example/" || err != nil {
		t.Error(old, had, err)
	}
	if l, ok, err := f.Login("http://b.example"); !ok || l.Org != "http://b.example" || err != nil {
		t.Error("a change of one login changed another:", l, ok, err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o666} {
		if err := os.Chmod(f.path, mode); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Login("http://b.example"); err == nil || !strings.Contains(err.Error(), "chmod 600 "+f.path) {
			t.Errorf("%o: %v", mode, err)
		}
		if _, _, err := f.Put(ctx, "http://b.example", Login{}); err == nil {
			t.Errorf("%o: it was written to", mode)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(f.path), ".credentials-*"))
	if err != nil || len(left) > 0 {
		t.Error("left behind:", left, err)
	}
}

// Who waits for a turn that does not come can be interrupted, and holds nobody up.
func TestWaitingForATurnCanBeInterrupted(t *testing.T) {
	t.Parallel()
	f := &File{filepath.Join(t.TempDir(), "credentials.json")}
	err := f.locked(t.Context(), func(*turn) error {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("interrupted"))
		if err := f.locked(ctx, func(*turn) error { return nil }); err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Error("two had their turn at once:", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := f.locked(t.Context(), func(*turn) error { return nil }); err != nil {
		t.Error(err)
	}
}

// What is no word of the server that the login has ended does not cost the login.
func TestALoginSurvivesAServerThatFails(t *testing.T) {
	t.Parallel()
	answer := http.StatusInternalServerError
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(answer)
		_, _ = w.Write([]byte(`{"error":"temporarily_unavailable"}`))
	}))
	defer srv.Close()
	f := &File{filepath.Join(t.TempDir(), "credentials.json")}
	if _, _, err := f.Put(t.Context(), srv.URL, Login{
		TokenURL: srv.URL, RefreshToken: "r",
		ExpiresAt: time.Now().Add(-time.Hour),
	}); err != nil {
		t.Fatal(err)
	}
	for _, answer = range []int{500, 502, 503, 429, 404, 400, 401, 200} {
		s, err := f.Source(srv.URL, srv.Client())
		if err != nil || s == nil {
			t.Fatal(answer, "the login is gone:", err)
		}
		var ended *Ended
		if _, err := s.Token(t.Context()); err == nil || errors.As(err, &ended) {
			t.Error(answer, err)
		}
	}
}

func TestOnlyAServersOwnWordIsTaken(t *testing.T) {
	t.Parallel()
	var document string
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != metadataPath {
			t.Error(r.URL)
		}
		_, _ = w.Write([]byte(strings.ReplaceAll(document, "$", "https://"+r.Host)))
	}))
	defer srv.Close()
	const good = `{"issuer":"$","authorization_endpoint":"$/a","token_endpoint":"$/t","revocation_endpoint":"$/r"}`
	for name, c := range map[string]struct{ document, says string }{
		"a good one": {good, ""},
		"another issuer": {
			strings.Replace(good, `"$"`, `"https://evil.example"`, 1),
			"parley login --server https://evil.example",
		},
		"no JSON":             {"<html>", "is it a Parley server?"},
		"nothing":             {"{}", "has the public URL"},
		"an endpoint missing": {strings.Replace(good, `"$/r"`, `""`, 1), "cannot be used"},
		"one without TLS":     {strings.Replace(good, "$/t", "http://parley.example/t", 1), "cannot be used"},
		"another scheme":      {strings.Replace(good, "$/a", "javascript:alert(1)", 1), "cannot be used"},
	} {
		document = c.document
		_, err := discover(t.Context(), Ask{Server: srv.URL + "/", HTTP: srv.Client()})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzPasted(f *testing.F) {
	for _, s := range []string{"", "abc", "http://127.0.0.1/callback?code=a&state=b#x", "?error=x", "code=%zz", "a:b"} {
		f.Add(s)
	}
	q := &question{metadata: metadata{Issuer: "https://parley.example", SendsIss: true}, state: "right"}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := parsePasted(s)
		if err != nil {
			return
		}
		code, err := q.code(v)
		if err == nil && code == "" {
			t.Errorf("%q is an empty code", s)
		}
		if err == nil && strings.ContainsAny(s, ":/?=&") && (v.Get("state") != "right" || v.Get("iss") != q.Issuer) {
			t.Errorf("%q was taken: %v", s, v)
		}
	})
}
