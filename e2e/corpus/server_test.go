package corpus

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait; all of them end early when their condition holds.
const patience = time.Minute

// liveTasks is how many tasks one sender may have that are not over.
const liveTasks = "20"

// server is the built program, serving.
type server struct {
	data []string // the flags that name its store, on every command alike
	base string
	cmd  *exec.Cmd
	out  output
}

var addressLine = regexp.MustCompile(`Parley is listening on (http://\S+)`)

// serve starts the program on a free port and waits until it is ready.
func serve(t *testing.T, data ...string) *server {
	t.Helper()
	s := &server{data: data}
	args := []string{
		"serve", "--listen", "127.0.0.1:0", "--rate-limit", "0", "--push-allow", "127.0.0.1", "--max-live-tasks", liveTasks,
	}
	s.cmd = exec.Command(program, append(args, data...)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	s.cmd.Env = cleanEnv()
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = s.cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("the server said:\n%s", s.out.tail(2000))
		}
	})
	eventually(t, "the server is ready", func() error {
		select {
		case <-ended:
			t.Fatalf("the server ended:\n%s", s.out.tail(4000))
		default:
		}
		m := addressLine.FindStringSubmatch(s.out.String())
		if m == nil {
			return errors.New("no address was printed")
		}
		s.base = m[1]
		res, err := http.Get(s.base + "/readyz")
		if err != nil {
			return err
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return errors.New(res.Status)
		}
		return nil
	})
	return s
}

// cleanEnv is the environment without settings of whoever runs the tests.
func cleanEnv(extra ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "PARLEY_") })
	return append(env, append([]string{"NO_PROXY=127.0.0.1", "PARLEY_SHUTDOWN_DELAY=0s"}, extra...)...)
}

// cli runs a command on the server's own data and returns what it printed.
func (s *server) cli(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(program, append(args, s.data...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = cleanEnv(), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("parley %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(stdout.String())
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
			t.Fatalf("after %v it is not so that %s: %v", patience, what, err)
		}
		time.Sleep(10 * time.Millisecond)
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
	return s[max(0, len(s)-n):]
}
