package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// dialSlow connects with a small receive buffer, so that a client that does not read stalls the
// server soon.
func (s *server) dialSlow(t *testing.T) net.Conn {
	t.Helper()
	small := func(_, _ string, c syscall.RawConn) (err error) {
		_ = c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
		return err
	}
	conn, err := (&net.Dialer{Control: small}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestSiegeSlowBodies sends bodies of 4 MiB that never end, declared and chunked.
func TestSiegeSlowBodies(t *testing.T) {
	frontSiege(t, func(t *testing.T, s *siege) {
		body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"t",
			"message":{"role":"user","parts":[{"type":"text","text":"` + largest)
		var wg sync.WaitGroup
		for i := range siegeSize(100, 300) {
			conn := s.dialSlow(t)
			wg.Go(func() {
				head := fmt.Sprintf("POST /a2a/%s HTTP/1.1\r\nHost: parley\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n",
					s.prey.agent, s.attacker.key)
				_ = conn.SetDeadline(time.Now().Add(time.Duration(siegeSize(4, 8)) * time.Second))
				if i%2 == 0 {
					_, _ = fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", head, len(body)+100, body)
				} else {
					_, _ = fmt.Fprintf(conn, "%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s", head, len(body)+100, body)
				}
				_, _ = io.Copy(io.Discard, conn) // a refusal, or nothing before the deadline
			})
		}
		wg.Wait()
	})
}

// TestSiegeStalledTasks streams many tasks of medium size to readers that stall, each at another
// event.
func TestSiegeStalledTasks(t *testing.T) {
	frontSiege(t, func(t *testing.T, s *siege) {
		tasks := siegeSize(40, 150)
		for i := range tasks {
			id := fmt.Sprintf("t%d", i)
			for part := range 2 {
				must(s.attacker.send(t.Context(), s.prey.agent, id, fmt.Sprint(largest[:1<<20], part)))(t)
			}
			s.openStalled(t, "SubscribeToTask", id)
			s.openStalled(t, "tasks/resubscribe", id)
		}
	}, "--rate-limit", "0")
}

// TestSiegeStalledPages requests large pages of REST lists and does not read them.
func TestSiegeStalledPages(t *testing.T) {
	frontSiege(t, func(t *testing.T, s *siege) {
		s.cli(t, "user", "create", "eve", "--org", "mallory")
		eve := s.newKey(t, "mallory", "user:eve", "svc:tasks:read", "svc:tasks:write")
		long := strings.Repeat("\U0001F98A", 19_000)
		for i := range 100 {
			res, err := post(t.Context(), s.base+"/api/v1/orgs/mallory/followups", eve,
				object{"title": fmt.Sprint("t", i), "description": long})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if res.StatusCode != http.StatusCreated {
				t.Fatalf("status = %s, want 201", res.Status)
			}
		}
		keepOn(func() {
			var wg sync.WaitGroup
			for range siegeSize(100, 200) {
				conn := s.dialSlow(t)
				defer func() { _ = conn.Close() }()
				wg.Go(func() {
					_, _ = fmt.Fprintf(conn, "GET /api/v1/orgs/mallory/followups?limit=100 HTTP/1.1\r\n"+
						"Host: parley\r\nAuthorization: Bearer %s\r\n\r\n", eve)
					_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
					first := make([]byte, 12)
					if _, err := io.ReadFull(conn, first); err == nil && !bytes.HasSuffix(first, []byte("200")) &&
						!bytes.HasSuffix(first, []byte("503")) && !bytes.HasSuffix(first, []byte("429")) {
						t.Errorf("list: status line = %s, want 200, 429 or 503", first)
					}
				})
			}
			wg.Wait()
		})
	})
}
