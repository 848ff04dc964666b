package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parley-dev/parley/internal/servertest"
)

// startBalancer starts haproxy in front of the nodes, configured as in docs/operations.md, and
// returns its URL.
func startBalancer(t *testing.T, ports []int) string {
	t.Helper()
	bin, err := exec.LookPath("haproxy")
	if err != nil {
		if bin = "/usr/sbin/haproxy"; !fileExists(bin) {
			t.Fatal("haproxy is not installed; run make deps")
		}
	}
	port := freePort(t)
	var b strings.Builder
	fmt.Fprintf(&b, `defaults
  mode http
  timeout connect 1s
  timeout client 75s
  timeout server 75s
  timeout check 2s
  retries 3
  option redispatch
  default-server check inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
frontend parley
  bind 127.0.0.1:%d
  default_backend nodes
backend nodes
  balance roundrobin
  option httpchk GET /readyz
`, port)
	for i, p := range ports {
		fmt.Fprintf(&b, "  server node%d 127.0.0.1:%d\n", i, p)
	}
	cfg := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(cfg, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	said := &servertest.Output{}
	cmd := exec.Command(bin, "-db", "-f", cfg)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	base := fmt.Sprintf("http://127.0.0.1:%d", port)
	eventually(t, soon, "the balancer has found a node", func() bool {
		res, err := http.Get(base + "/healthz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return base
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// passingHosts maps the host of a balancer to the *chaos of a test that expects faults. All tests
// share taskClient.
var passingHosts sync.Map

// sharedTransport is the transport of taskClient.
type sharedTransport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s sharedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if c, ok := passingHosts.Load(r.URL.Host); ok {
		return passingTransport{c.(*chaos), s.base}.RoundTrip(r)
	}
	return s.base.RoundTrip(r)
}

// CloseIdleConnections implements the optional method that http.Client calls.
func (s sharedTransport) CloseIdleConnections() {
	if c, ok := s.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// soakingChaos reports whether this is the long run, in which times are compared.
func soakingChaos() bool { return os.Getenv("PARLEY_CHAOS_ROUNDS") != "" }
