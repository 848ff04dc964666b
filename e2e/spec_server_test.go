package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/pgtest"
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
	base string // http://127.0.0.1:port
	key  string // the first key; empty unless this was the first start on its data
	cmd  *exec.Cmd
	out  *output
	done chan struct{} // closed when the process has ended
}

var (
	addressPattern = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	secretPattern  = regexp.MustCompile(`parley_[0-9A-Za-z]{36}`)
)

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
	s := &server{engine: e, out: &output{}, done: make(chan struct{})}
	s.cmd = exec.Command(line[0], line[1:]...)
	s.cmd.Env = append(os.Environ(), env...)
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = s.out
	ownSession(s.cmd)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_, _ = io.Copy(s.out, bufio.NewReader(stdout))
		_ = s.cmd.Wait()
	}()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the server on %s said:\n%s", e.name, s.out.tail(4000))
		}
	})
	s.await(t)
	return s
}

// await returns when the server has said where it listens and answers there.
func (s *server) await(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); {
		select {
		case <-s.done:
			t.Fatalf("the server ended instead of serving:\n%s", s.out.tail(4000))
		case <-time.After(5 * time.Millisecond):
		}
		said := s.out.String()
		s.base = addressPattern.FindString(said)
		if s.base == "" {
			continue
		}
		res, err := http.Get(s.base + "/readyz")
		if err != nil {
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			s.key = secretPattern.FindString(s.out.String())
			return
		}
	}
	t.Fatalf("the server was not ready within %v:\n%s", soon, s.out.tail(4000))
}

// kill ends the server as a power cut would, without any warning.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// cli runs a command of the binary on the server's own data, while it serves,
// and returns what it printed.
func (s *server) cli(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(program, append(args, s.data...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("parley %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(stdout.String())
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
	if !secretPattern.MatchString(secret) || strings.ContainsAny(secret, " \n") {
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

// output collects what a process prints and may be read meanwhile.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (o *output) tail(n int) string {
	s := o.String()
	if len(s) > n {
		return fmt.Sprintf("… %s", s[len(s)-n:])
	}
	return s
}
