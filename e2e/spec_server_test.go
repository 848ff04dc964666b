package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/servertest"
)

// engine is a store of a server: the flags that select it, on every command.
type engine struct {
	name string
	data []string
}

// eachEngine runs the test on a fresh store of each engine.
func eachEngine(t *testing.T, test func(t *testing.T, e engine)) {
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) { test(t, engine{name: name}.fresh(t)) })
	}
}

// fresh returns an empty store of the same engine.
func (e engine) fresh(t *testing.T) engine {
	t.Helper()
	if e.name == "sqlite" {
		return engine{e.name, []string{"--data", t.TempDir()}}
	}
	return engine{e.name, []string{"--database", emptyDatabase(t)}}
}

// emptyDatabase returns the URL of a PostgreSQL database with the schema and nothing else. It is a
// copy: migrating takes longer than many tests.
func emptyDatabase(t *testing.T) string {
	t.Helper()
	return pgtest.Copy(t, func(url string) error {
		_, err := servertest.Run(exec.Command(program, "migrate", "--database", url))
		return err
	})
}

// server is the built binary, serving.
type server struct {
	engine
	*servertest.Process
	base string // http://127.0.0.1:port
	key  string // the first key; empty unless this was the first start on its data
}

// addressPattern matches the URL that a started program prints.
var addressPattern = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// serve starts the binary on a free port and waits until it is ready.
func serve(t *testing.T, e engine, flags ...string) *server {
	t.Helper()
	return serveIn(t, e, nil, flags...)
}

// calm are flags for tests with many requests, each of which must succeed also on a machine that
// stops for a few seconds.
var calm = []string{"--rate-limit", "0", "--database-lock-timeout", "30s", "--database-acquire-timeout", "30s"}

// serveIn is serve with additional environment variables.
func serveIn(t *testing.T, e engine, env []string, flags ...string) *server {
	t.Helper()
	return serveThrough(t, e, nil, env, flags...)
}

// serveThrough is serveIn with a command line prefix, such as a shell that sets limits.
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

// cli runs a command on the server's store while it serves, and returns its output.
func (s *server) cli(t *testing.T, args ...string) string {
	t.Helper()
	c := commands{server: s}
	out := c.run(args...)
	if c.err != nil {
		t.Fatal(c.err)
	}
	return out
}

// commands runs commands on the server's store until one fails. Each goroutine needs its own; the
// goroutine of the test checks err, because only that one may end the test.
type commands struct {
	server *server
	err    error // of the first command that failed
}

// run runs a command and returns its output.
func (c *commands) run(args ...string) (out string) {
	if c.err == nil {
		out, c.err = servertest.Run(exec.Command(program, append(args, c.server.data...)...))
	}
	return out
}

// newKey creates a key and returns its secret.
func (c *commands) newKey(org, as string, scopes ...string) string {
	args := []string{"key", "create", "--org", org, "--as", as}
	for _, scope := range scopes {
		args = append(args, "--scope", scope)
	}
	secret := c.run(args...)
	if c.err == nil && (!servertest.Secret.MatchString(secret) || strings.ContainsAny(secret, " \n")) {
		c.err = fmt.Errorf("key create printed %q; want the secret alone", secret)
	}
	return secret
}

// newOrg creates an org with the cast of the tests.
func (s *server) newOrg(t *testing.T, org string) {
	t.Helper()
	s.cli(t, "org", "create", org)
	for _, user := range []string{"root", "ann", "reader", "writer", "admin"} {
		s.cli(t, "user", "create", user, "--org", org)
	}
	s.cli(t, "agent", "create", "bot-"+org, "--org", org, "--name", "Bot")
	s.cli(t, "service", "create", "partner", "--org", org)
}

// newKey creates a key through the command line.
func (s *server) newKey(t *testing.T, org, as string, scopes ...string) string {
	t.Helper()
	c := commands{server: s}
	secret := c.newKey(org, as, scopes...)
	if c.err != nil {
		t.Fatal(c.err)
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
