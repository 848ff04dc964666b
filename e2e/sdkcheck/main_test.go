//go:build sdkcheck

package sdkcheck

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/servertest"
)

// work is a directory for all files of the tests; program is the binary under test.
var work, program string

func TestMain(m *testing.M) {
	os.Exit(servertest.Main(servertest.Parley, func(dir string) int {
		work, program = dir, filepath.Join(dir, "parley")
		return m.Run()
	}))
}

// server is the built program, serving.
type server struct {
	data []string // flags that select its store
	base string
	key  string // of the first admin
}

// serve starts the program on a free port and waits until it is ready.
func serve(t *testing.T, data []string, flags ...string) *server {
	t.Helper()
	args := slices.Concat([]string{"serve", "--listen", "127.0.0.1:0", "--rate-limit", "0"}, data, flags)
	p, err := servertest.Start(exec.Command(program, args...), "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the server said:\n%s", p.Said.Tail(4000))
		}
	})
	return &server{data: data, base: p.URL, key: p.Key}
}

// cli runs a command of the program on the server's store.
func (s *server) cli(t *testing.T, args ...string) string {
	t.Helper()
	out, err := servertest.Run(exec.Command(program, append(args, s.data...)...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// newKey creates a key with the scopes.
func (s *server) newKey(t *testing.T, as string, scopes ...string) string {
	t.Helper()
	args := []string{"key", "create", "--org", "main", "--as", as}
	for _, scope := range scopes {
		args = append(args, "--scope", scope)
	}
	return s.cli(t, args...)
}

// document writes the OpenAPI document, as served, into a file.
func (s *server) document(t *testing.T, dir string) string {
	t.Helper()
	res, err := http.Get(s.base + "/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("got %s, %v; want 200", res.Status, err)
	}
	file := filepath.Join(dir, "openapi.yaml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// run runs a program in a directory and returns its output. It must succeed.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	said, err := try(t, dir, env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, said)
	}
	return said
}

func try(t *testing.T, dir string, env []string, name string, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Fatalf("%s is not installed, and this test needs it: scripts/deps sdkcheck", name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost"), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
