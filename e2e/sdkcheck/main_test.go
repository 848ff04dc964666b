//go:build sdkcheck

package sdkcheck

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// work is a folder for everything that the tests make; program is the binary under test.
var work, program string

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "parley-sdkcheck")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	work, program = dir, filepath.Join(dir, "parley")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../../cmd/parley").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the program under test: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// server is the built program, serving.
type server struct {
	data []string // the flags that name its store
	base string
	key  string // of the first admin
}

var (
	addressPattern = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	secretPattern  = regexp.MustCompile(`parley_[0-9A-Za-z]{36}`)
)

// serve starts the program on a free port and waits until it is ready.
func serve(t *testing.T, data []string, flags ...string) *server {
	t.Helper()
	s := &server{data: data}
	said := &output{}
	cmd := exec.Command(program, append(append([]string{"serve", "--listen", "127.0.0.1:0", "--rate-limit", "0"}, data...), flags...)...)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("the server said:\n%s", said.tail())
		}
	})
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		select {
		case <-ended:
			t.Fatalf("the server ended instead of serving:\n%s", said.tail())
		case <-time.After(20 * time.Millisecond):
		}
		if s.base = addressPattern.FindString(said.String()); s.base == "" {
			continue
		}
		if res, err := http.Get(s.base + "/readyz"); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				s.key = secretPattern.FindString(said.String())
				return s
			}
		}
	}
	t.Fatalf("the server was not ready within a minute:\n%s", said.tail())
	return nil
}

// cli runs a command of the program on the server's own data.
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

// newKey makes a key with the scopes.
func (s *server) newKey(t *testing.T, as string, scopes ...string) string {
	t.Helper()
	args := []string{"key", "create", "--org", "main", "--as", as}
	for _, scope := range scopes {
		args = append(args, "--scope", scope)
	}
	return s.cli(t, args...)
}

// document writes the OpenAPI document, as the server shows it, into a file.
func (s *server) document(t *testing.T, dir string) string {
	t.Helper()
	res, err := http.Get(s.base + "/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, err)
	}
	file := filepath.Join(dir, "openapi.yaml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// run runs a program in a folder and returns what it said. It must succeed.
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

// output collects what a process prints while others read it.
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

func (o *output) tail() string {
	s := o.String()
	return s[max(0, len(s)-4000):]
}
