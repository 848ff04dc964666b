package e2e

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestServiceManagerIsTold: systemd learns when the server is ready, and that it stops.
func TestServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "n")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	told := func() string {
		t.Helper()
		b := make([]byte, 256)
		if err := conn.SetReadDeadline(time.Now().Add(soon)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	s := serveIn(t, engine{"sqlite", []string{"--data", t.TempDir()}}, []string{"NOTIFY_SOCKET=" + name})
	if got := told(); got != "READY=1" {
		t.Errorf("the first message is %q, want READY=1", got)
	}
	if err := s.Stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := told(); got != "STOPPING=1" {
		t.Errorf("the second message is %q, want STOPPING=1", got)
	}
}
