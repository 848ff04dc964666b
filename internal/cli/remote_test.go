package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/clilogin"
	"github.com/parley-dev/parley/sdk/client"
)

// responding starts a server that gives every request the same response.
func responding(t *testing.T, status int, header map[string]string, body string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestTheKeyDoesNotFollowARedirect(t *testing.T) {
	t.Parallel()
	server := responding(t, 307, map[string]string{"Location": "http://elsewhere.example/"}, "")
	code, _, stderr := run(t, "whoami", "--server", server, "--key", "k")
	want := "parley: the server responded with 307 Temporary Redirect to http://elsewhere.example/; " +
		"if that is the server, name it with --server\n"
	if code != exitFailed || stderr != want {
		t.Errorf("exit code %d, stderr %q; want %q", code, stderr, want)
	}
}

func TestResponsesThatAreNotParleys(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"a page":       {200, "<html>", "is not JSON; is it a Parley server?"},
		"a fault":      {500, "<html>oops", "the server responded with 500 Internal Server Error"},
		"another JSON": {404, `{"error":"x"}`, "the server responded with 404 Not Found"},
		"nothing":      {200, "", "is not JSON; is it a Parley server?"},
		"another form": {200, `{"org":1}`, `unexpected response of the server: number in the field "org"`},
		"null":         {200, "null", "unexpected response of"},
		"no fields":    {200, "{}", "unexpected response of"},
	} {
		for _, args := range [][]string{
			{"whoami"},
			{"whoami", "--json"},
			{"agent", "create", "x", "--name", "X", "--org", "1"},
			{"key", "show", "key-x", "--org", "1", "--json"},
		} {
			if name == "another form" && args[0] != "whoami" {
				continue // it is only in the form of whoami
			}
			code, stdout, stderr := run(t, append(args, "--server", responding(t, a.status, nil, a.body), "--key", "k")...)
			if code != exitFailed || stdout != "" || !strings.Contains(stderr, a.want) {
				t.Errorf("%s, %v: exit code %d, stdout %q, stderr %q; want %q in it", name, args, code, stdout, stderr, a.want)
			}
		}
	}
}

func TestRefusalsInLines(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, want string }{
		"one field": {
			`{"detail":"title is required","code":"request.invalid","request_id":"r1",` +
				`"errors":[{"pointer":"/title","detail":"is required"}]}`,
			"title is required\n  code: request.invalid\n  request id: r1",
		},
		"two fields": {
			`{"detail":"title is required; limit is wrong","errors":[` +
				`{"pointer":"/title","detail":"is required"},{"parameter":"limit","detail":"is wrong"}]}`,
			"the server did not accept these fields:\n  title: is required\n  limit: is wrong",
		},
		"transitions": {`{"detail":"no","allowed":["a","b"]}`, "no\n  allowed: a, b"},
		"not JSON":    {`<html>`, "the server responded with 422 Unprocessable Entity"},
	} {
		_, _, stderr := run(t, "whoami", "--server", responding(t, 422, nil, tt.body), "--key", "k")
		if diff := cmp.Diff("parley: "+tt.want+"\n", stderr); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestErrorsCannotSteerATerminal(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	report(&stderr, explain(&client.Error{Detail: "a\x1b[2Jb\u009b31mc\u202ed"}))
	if got, want := stderr.String(), "parley: a[2Jb31mcd\n"; got != want {
		t.Errorf("printed %q; want %q", got, want)
	}
}

func TestAnUnreachableServerSaysWhatToLookAt(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	retry := client.Retry{Attempts: 3, MinWait: time.Millisecond, MaxWait: time.Millisecond}
	e := &env{ctx: t.Context(), stderr: &stderr, retry: retry}
	closed := httptest.NewServer(nil)
	closed.Close()
	c := whoamiCmd{serverFlags{connection: connection{Server: closed.URL, Key: "k"}}}
	err := c.Run(e)
	if err == nil || !strings.HasPrefix(err.Error(), "cannot reach "+closed.URL+": ") ||
		!strings.HasSuffix(err.Error(), "is the server running, and is --server right?") {
		t.Errorf("error = %v", err)
	}
	if want := "parley: " + closed.URL + " is not reachable; trying again for up to 1 s\n"; stderr.String() != want {
		t.Errorf("stderr = %q; want %q", stderr.String(), want)
	}
}

// A command waits for a server that restarts while a login is renewed, as in any other call.
func TestALoginIsRenewedWhenTheServerIsBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials.json")
	t.Setenv(clilogin.Variable, file)
	closed := httptest.NewServer(nil)
	closed.Close()
	requests := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	t.Cleanup(srv.Close)
	stored := `{"logins":{"` + srv.URL + `":{"org":"acme","token_endpoint":"` + closed.URL +
		`","refresh_token":"r","expires_at":"2020-01-01T00:00:00Z"}}}`
	if err := os.WriteFile(file, []byte(stored), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	retry := client.Retry{Attempts: 3, MinWait: time.Millisecond, MaxWait: time.Millisecond}
	e := &env{ctx: t.Context(), stderr: &stderr, retry: retry}
	c := proposalVoteCmd{Vote: "for"}
	c.ID = "prop-1"
	err := c.Run(e) // at the server of the login
	if err == nil || !strings.Contains(err.Error(), "cannot reach "+srv.URL) || requests != 0 {
		t.Error(err, requests)
	}
	if n := strings.Count(stderr.String(), "trying again for up to"); n != 1 {
		t.Errorf("%d lines about retries; want 1: %s", n, stderr.String())
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != stored {
		t.Error("the login was changed:", string(after), err)
	}
}
