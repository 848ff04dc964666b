package cli

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/login"
)

// answer is one scripted answer of a server.
type answer struct {
	status int
	header map[string]string
	body   string
	hangUp bool
}

// fake is a server that gives scripted answers and remembers what it was asked.
type fake struct {
	answers []answer

	mu     sync.Mutex
	keys   []string // the Idempotency-Keys that arrived
	bodies []string
	waits  []time.Duration // what the client slept
}

func (f *fake) client(t *testing.T) *client {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.keys, f.bodies = append(f.keys, r.Header.Get("Idempotency-Key")), append(f.bodies, string(body))
		a := f.answers[min(len(f.keys), len(f.answers))-1]
		if a.hangUp {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
			return
		}
		for k, v := range a.header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(srv.Close)
	flags := serverFlags{Server: srv.URL + "/", Key: "k", Org: "main"}
	c, err := flags.client(&env{stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	c.sleep = func(_ context.Context, d time.Duration) error {
		f.waits = append(f.waits, d)
		return nil
	}
	return c
}

func TestRetriesAreSafeAndBounded(t *testing.T) {
	t.Parallel()
	ok := answer{status: 200, body: `{"id":"x"}`}
	busy := answer{status: 503, body: `{"detail":"busy"}`}
	post := call{method: http.MethodPost, path: "/proposals", body: []byte(`{}`), once: "once"}
	tests := []struct {
		name     string
		call     call
		answers  []answer
		requests int
		fails    bool
	}{
		{"an answer is final", post, []answer{ok}, 1, false},
		{"503 is repeated", post, []answer{busy, busy, ok}, 3, false},
		{"429 is repeated", post, []answer{{status: 429, body: `{"detail":"slow down"}`}, ok}, 2, false},
		{"a lost answer is repeated with the same key", post, []answer{{hangUp: true}, ok}, 2, false},
		{"without a key a lost answer is not repeated", call{method: http.MethodDelete, path: "/x"}, []answer{{hangUp: true}, ok}, 1, true},
		{"a refusal is not repeated", post, []answer{{status: 422, body: `{"detail":"no"}`}, ok}, 1, true},
		{"a fault is not repeated", post, []answer{{status: 500, body: `{"detail":"oops"}`}, ok}, 1, true},
		{"it gives up", post, []answer{busy}, maxAttempts, true},
		{"it does not wait for hours", post, []answer{{status: 503, header: map[string]string{"Retry-After": "3600"}, body: `{"detail":"later"}`}}, 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{answers: tt.answers}
			_, err := f.client(t).do(t.Context(), tt.call)
			if (err != nil) != tt.fails {
				t.Errorf("error = %v; want one: %t", err, tt.fails)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.keys) != tt.requests {
				t.Errorf("%d requests; want %d", len(f.keys), tt.requests)
			}
			for i := range f.keys {
				if f.keys[i] != tt.call.once || f.bodies[i] != string(tt.call.body) {
					t.Errorf("request %d had the key %q and the body %q", i, f.keys[i], f.bodies[i])
				}
			}
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	f := &fake{answers: []answer{
		{status: 429, header: map[string]string{"Retry-After": "7"}, body: `{"detail":"slow down"}`},
		{status: 200, body: `{}`},
	}}
	if _, err := f.client(t).do(t.Context(), call{method: http.MethodGet}); err != nil {
		t.Fatal(err)
	}
	if len(f.waits) != 1 || f.waits[0] < 7*time.Second {
		t.Errorf("waited %v; want 7s or more, once", f.waits)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "x": 0, "-1": 0, "12": 12 * time.Second,
		"Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second, "Thu, 01 Jan 2026 00:00:00 GMT": 0,
	} {
		if got := parseRetryAfter(header, now); got != want {
			t.Errorf("Retry-After %q is %s; want %s", header, got, want)
		}
	}
}

func TestTheKeyDoesNotFollowARedirect(t *testing.T) {
	t.Parallel()
	f := &fake{answers: []answer{{status: 307, header: map[string]string{"Location": "http://elsewhere.example/"}}}}
	_, err := f.client(t).do(t.Context(), call{method: http.MethodGet})
	if err == nil || !strings.Contains(err.Error(), "elsewhere.example") {
		t.Errorf("error = %v; want one that names the place", err)
	}
}

func TestAnswersThatAreNotParleys(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]answer{
		"a page":       {status: 200, body: "<html>"},
		"a proxy":      {status: 502, body: "<html>bad gateway"},
		"another JSON": {status: 404, body: `{"error":"x"}`},
		"nothing":      {status: 200},
	} {
		f := &fake{answers: []answer{a}}
		if _, err := f.client(t).do(t.Context(), call{method: http.MethodPatch}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestProblemInLines(t *testing.T) {
	t.Parallel()
	res := &http.Response{StatusCode: 422, Status: "422 Unprocessable Entity", Header: http.Header{}}
	tests := []struct{ name, body, want string }{
		{
			"one field", `{"detail":"title is required","code":"request.invalid","request_id":"r1","errors":[{"pointer":"/title","detail":"is required"}]}`,
			"title is required\n  code: request.invalid\n  request id: r1",
		},
		{
			"two fields", `{"detail":"title is required; limit is wrong","errors":[{"pointer":"/title","detail":"is required"},{"parameter":"limit","detail":"is wrong"}]}`,
			"the server did not accept these fields:\n  title: is required\n  limit: is wrong",
		},
		{"transitions", `{"detail":"no","allowed":["a","b"]}`, "no\n  allowed: a, b"},
		{"not JSON", `<html>`, "the server answered 422 Unprocessable Entity"},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, newProblem(res, []byte(tt.body)).Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestErrorsCannotSteerATerminal(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	report(&stderr, &problem{Detail: "a\x1b[2Jb\u009b31mc\u202ed"})
	if got, want := stderr.String(), "parley: a[2Jb31mcd\n"; got != want {
		t.Errorf("printed %q; want %q", got, want)
	}
}

// A server that restarts while a login is renewed is waited for, as by any other call.
func TestALoginIsRenewedWhenTheServerIsBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials.json")
	t.Setenv(login.Variable, file)
	closed := httptest.NewServer(nil)
	closed.Close()
	f := &fake{answers: []answer{{status: 200, body: `{"id":"x"}`}}}
	c := f.client(t)
	stored := `{"logins":{"` + c.base + `":{"org":"acme","token_endpoint":"` + closed.URL + `","refresh_token":"r","expires_at":"2020-01-01T00:00:00Z"}}}`
	if err := os.WriteFile(file, []byte(stored), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := serverFlags{Server: c.base}
	waiting, err := flags.client(&env{stderr: io.Discard})
	if err != nil || flags.Org != "acme" {
		t.Fatal(flags.Org, err)
	}
	waiting.sleep = c.sleep
	_, err = waiting.do(t.Context(), call{method: http.MethodPost, path: "/proposals", body: []byte(`{}`)})
	if err == nil || !strings.Contains(err.Error(), "cannot reach") || len(f.waits) != maxAttempts-1 || len(f.keys) != 0 {
		t.Error(err, f.waits, f.keys)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != stored {
		t.Error("the login was changed:", string(after), err)
	}
}
