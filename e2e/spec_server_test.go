package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/servertest"
)

// An engine is where a server keeps its data: the flags that name it, on every
// command alike.
type engine struct {
	name string
	data []string
}

// eachEngine runs the test on a fresh store of each engine.
func eachEngine(t *testing.T, test func(t *testing.T, e engine)) {
	t.Run("sqlite", func(t *testing.T) { test(t, engine{"sqlite", []string{"--data", t.TempDir()}}) })
	t.Run("postgres", func(t *testing.T) { test(t, engine{"postgres", []string{"--database", pgtest.URL(t)}}) })
}

// server is the built binary, serving.
type server struct {
	engine
	*servertest.Process
	base string // http://127.0.0.1:port
	key  string // the first key; empty unless this was the first start on its data
}

// addressPattern finds where a program that we start says that it listens.
var addressPattern = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// serve starts the binary on a free port and waits until it is ready.
func serve(t *testing.T, e engine, flags ...string) *server {
	t.Helper()
	return serveIn(t, e, nil, flags...)
}

// serveIn is serve with more in the environment.
func serveIn(t *testing.T, e engine, env []string, flags ...string) *server {
	t.Helper()
	return serveThrough(t, e, nil, env, flags...)
}

// serveThrough is serveIn with words before the command line, as of a shell that
// limits what the program may have.
func serveThrough(t *testing.T, e engine, through, env []string, flags ...string) *server {
	t.Helper()
	return launch(t, e, slices.Concat(through, []string{program}, e.serveArgs(), flags), env)
}

func (e engine) serveArgs() []string {
	return append([]string{"serve", "--listen", "127.0.0.1:0"}, e.data...)
}

// launch runs the command line of a server and waits until it is ready.
func launch(t *testing.T, e engine, line, env []string) *server {
	t.Helper()
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), env...)
	ownSession(cmd)
	p, err := servertest.Start(cmd, "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the server on %s said:\n%s", e.name, p.Said.Tail(4000))
		}
	})
	return &server{engine: e, Process: p, base: p.URL, key: p.Key}
}

// cli runs a command of the binary on the server's own data, while it serves,
// and returns what it printed.
func (s *server) cli(t *testing.T, args ...string) string {
	t.Helper()
	out, err := servertest.Run(exec.Command(program, append(args, s.data...)...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// newOrg makes an org, with the cast that the tests speak of.
func (s *server) newOrg(t *testing.T, org string) {
	t.Helper()
	s.cli(t, "org", "create", org)
	for _, user := range []string{"root", "ann", "reader", "writer", "admin"} {
		s.cli(t, "user", "create", user, "--org", org)
	}
	s.cli(t, "agent", "create", "bot-"+org, "--org", org, "--name", "Bot")
	s.cli(t, "service", "create", "partner", "--org", org)
}

// newKey makes a key through the command line.
func (s *server) newKey(t *testing.T, org, as string, scopes ...string) string {
	t.Helper()
	args := []string{"key", "create", "--org", org, "--as", as}
	for _, scope := range scopes {
		args = append(args, "--scope", scope)
	}
	secret := s.cli(t, args...)
	if !servertest.Secret.MatchString(secret) || strings.ContainsAny(secret, " \n") {
		t.Fatalf("key create printed %q; want the secret alone", secret)
	}
	return secret
}

// cast lists the principals of a test org and the scopes of their keys.
func cast(org string) map[string][]string {
	const read, write, admin = "svc:tasks:read", "svc:tasks:write", "svc:admin:admin"
	return map[string][]string{
		"user:root":        {read, write, admin},
		"user:ann":         {read, write},
		"user:reader":      {read},
		"user:writer":      {write},
		"user:admin":       {admin},
		"agent:bot-" + org: {read, write},
		"service:partner":  {read, write, admin},
	}
}
