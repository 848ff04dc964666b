package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/servertest"
)

func start(t *testing.T, args ...string) *servertest.Process {
	t.Helper()
	dir := t.TempDir()
	s, err := startServer(dir, cleanEnv(dir), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// halfASubmission opens a request and waits until the server reads its body. The function
// that it returns sends the body and reads the response.
func halfASubmission(t *testing.T, s *servertest.Process) (finish func() (*http.Response, error)) {
	t.Helper()
	body := `{"title":"Finish what was begun","category":"reliability","problem":"P","suggested_fix":"F"}`
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /api/v1/orgs/main/proposals HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", s.Key, len(body))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	responses := bufio.NewReader(conn)
	if res, err := http.ReadResponse(responses, nil); err != nil || res.StatusCode != http.StatusContinue {
		t.Fatalf("got %v, %v; want 100 Continue", res, err)
	}
	return func() (*http.Response, error) {
		if _, err := io.WriteString(conn, body); err != nil {
			return nil, err
		}
		return http.ReadResponse(responses, nil)
	}
}

func readyz(s *servertest.Process) (int, error) {
	res, err := http.Get(s.URL + "/readyz")
	if err != nil {
		return 0, err
	}
	_ = res.Body.Close()
	return res.StatusCode, nil
}

func TestShutdownDrains(t *testing.T) {
	t.Parallel()
	s := start(t, "--shutdown-delay", "5s") // long enough to observe, also on a busy machine
	if code, err := readyz(s); code != http.StatusOK {
		t.Fatalf("/readyz before the signal = %d, %v; want 200", code, err)
	}
	finish := halfASubmission(t, s)
	if err := s.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}

	// First /readyz fails for the load balancer, while connections are still accepted.
	if err := eventually(func() error {
		switch code, err := readyz(s); {
		case err != nil:
			return fatal{err}
		case code != http.StatusServiceUnavailable:
			return fmt.Errorf("/readyz = %d; want 503", code)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	// Then new connections are refused.
	if err := eventually(func() error {
		if code, err := readyz(s); err == nil {
			return fmt.Errorf("/readyz still responds with %d", code)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	// The request in flight is finished.
	res, err := finish()
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("the request in flight got %v, %v; want 201", res, err)
	}
	if err := s.Wait(); err != nil {
		t.Errorf("the server ended with %v; want a clean end\n%s", err, s.Stderr.String())
	}
}

func TestShutdownDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	s := start(t, "--shutdown-timeout", "500ms")
	halfASubmission(t, s)
	err := s.Stop(syscall.SIGTERM)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the server ended with %v; want exit code 1", err)
	}
	if !strings.Contains(s.Stderr.String(), "were cut off") {
		t.Errorf("got no line about the request that was cut off, want one:\n%s", s.Stderr.String())
	}
}

func TestInterruptEndsCleanly(t *testing.T) {
	t.Parallel()
	s := start(t)
	if err := s.Stop(syscall.SIGINT); err != nil {
		t.Errorf("the server ended with %v\n%s", err, s.Stderr.String())
	}
}

// TestSlowClientsAreDropped waits for the limit itself, which is ten seconds.
func TestSlowClientsAreDropped(t *testing.T) {
	t.Parallel()
	s := start(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost:"); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("the connection was not closed: %v", err)
	}
}
