package cli

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// patience bounds every wait; all of them end early when their condition holds.
const patience = time.Minute

var (
	addressLine = regexp.MustCompile(`Parley is listening on (https?://\S+)`)
	keyShape    = regexp.MustCompile(`parley_[0-9A-Za-z]{36}`)
)

// server is a running parley serve.
type server struct {
	cmd    *exec.Cmd
	stdout output
	stderr output
	exited chan struct{}
	err    error  // of the process, once exited is closed
	url    string // as it was printed
	key    string // the first key; empty if none was printed
}

// output collects what a process prints while others read it.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// startServer runs parley serve, on a free port unless args say otherwise, and
// waits until it has printed its address.
func startServer(dir string, environ []string, args ...string) (*server, error) {
	if !slices.Contains(args, "--listen") {
		args = append([]string{"--listen", "127.0.0.1:0"}, args...)
	}
	s := &server{exited: make(chan struct{})}
	s.cmd = exec.Command(filepath.Join(binDir, "parley"), append([]string{"serve"}, args...)...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, &s.stdout, &s.stderr
	// No balancer has to notice that it stops.
	s.cmd.Env = append([]string{"PARLEY_SHUTDOWN_DELAY=0s"}, environ...)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.exited)
	}()
	err := eventually(func() error {
		select {
		case <-s.exited:
			return fatal{fmt.Errorf("the server ended: %v", s.err)}
		default:
		}
		// The last line of the greeting on a store that is not empty is the first.
		if m := addressLine.FindStringSubmatch(s.stdout.String()); m != nil && strings.Contains(s.stderr.String(), "serving") {
			s.url = m[1]
			return nil
		}
		return fmt.Errorf("no address was printed")
	})
	if err != nil {
		s.kill()
		return nil, fmt.Errorf("%w\nstdout:\n%s\nstderr:\n%s", err, s.stdout.String(), s.stderr.String())
	}
	s.key = keyShape.FindString(s.stdout.String())
	return s, nil
}

var ports atomic.Int32 // how many were tried

var firstPort = rand.IntN(5000)

// ownPort finds a free port that a server can come back to: it is none of those that
// the system gives out by itself, so nobody else gets it meanwhile.
func ownPort() (string, error) {
	for {
		n := int(ports.Add(1))
		if n > 5000 {
			return "", errors.New("no port is free")
		}
		addr := "127.0.0.1:" + strconv.Itoa(25_000+(firstPort+n)%5000)
		if free, err := net.Listen("tcp", addr); err == nil {
			return addr, free.Close()
		}
	}
}

// stop asks the server to end and returns how it did.
func (s *server) stop(sig syscall.Signal) error {
	if err := s.cmd.Process.Signal(sig); err != nil {
		return err
	}
	return s.wait()
}

func (s *server) wait() error {
	select {
	case <-s.exited:
		return s.err
	case <-time.After(patience):
		s.kill()
		return fmt.Errorf("the server did not end within %s", patience)
	}
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

var errStillWorks = errors.New("the key still works")

// fatal is an error after which waiting is in vain.
type fatal struct{ error }

// eventually waits until f returns nil.
func eventually(f func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := f()
		if _, ok := err.(fatal); ok || err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// cleanEnv is an environment without settings of whoever runs the tests.
func cleanEnv(dir string, extra ...string) []string {
	return append([]string{
		"PATH=" + binDir + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + dir, "TMPDIR=" + os.TempDir(), "NO_PROXY=127.0.0.1",
	}, extra...)
}
