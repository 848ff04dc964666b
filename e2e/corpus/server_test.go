package corpus

import (
	"os/exec"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/servertest"
)

// patience bounds every wait; all of them end early when their condition holds.
const patience = time.Minute

// liveTasks is the quota of live tasks of one sender.
const liveTasks = "20"

// server is the built program, serving.
type server struct {
	*servertest.Process
	data []string // flags that select its store, on every command
	base string
}

// serve starts the program on a free port and waits until it is ready.
func serve(t *testing.T, data ...string) *server {
	t.Helper()
	args := []string{
		"serve", "--listen", "127.0.0.1:0", "--rate-limit", "0", "--outbound-allow", "127.0.0.1", "--max-live-tasks", liveTasks,
	}
	cmd := exec.Command(program, append(args, data...)...)
	cmd.Env = servertest.Environ()
	p, err := servertest.Start(cmd, "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the server said:\n%s", p.Said.Tail(2000))
		}
	})
	return &server{Process: p, data: data, base: p.URL}
}

// cli runs a command on the server's store and returns its output.
func (s *server) cli(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, append(args, s.data...)...)
	cmd.Env = servertest.Environ()
	out, err := servertest.Run(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// eventually waits until f returns nil.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %v, want %s", patience, err, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
