package e2e

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSiegeUnfinishedHeaders opens 12,000 connections without credentials, sends a part of a
// request header on each, and leaves them. One engine is enough: the store has no part in it.
// Latency is not checked: the clients alone use all processors.
func TestSiegeUnfinishedHeaders(t *testing.T) {
	const most = 12_000
	needFiles(t, most+2000)
	fewer := siegeSize(most/2, most)
	const start = "GET / HTTP/1.1\r\nHost: parley\r\n"
	s := newSiege(t, serve(t, engine{"sqlite", []string{"--data", t.TempDir()}}))
	for _, c := range []struct {
		name  string
		conns int
		sends string
		from  int // IP addresses
	}{
		{"one long line", most, start + "X: " + strings.Repeat("x", 30_000), 1},
		{"many short lines", fewer, start + shortLines(30_000), 1},
		{"from many addresses", fewer, start + shortLines(30_000), 200},
		{"in one packet", most, start + shortLines(4000), 1},
		{"after a request", most, "GET /healthz HTTP/1.1\r\nHost: parley\r\n\r\n" + start + shortLines(3900), 1},
		{"HTTP/2", most, unfinishedHTTP2(), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.beside(t, func(t *testing.T, s *siege) { s.leaveUnfinished(t, c.conns, c.from, c.sends) })
		})
	}
}

// leaveUnfinished opens connections from a number of IP addresses, sends the same bytes on each
// and reads nothing.
func (s *siege) leaveUnfinished(t *testing.T, conns, addresses int, sends string) {
	t.Helper()
	var wg sync.WaitGroup
	const dialers = 64
	for i := range dialers {
		wg.Go(func() {
			for n := i; n < conns; n += dialers {
				d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+n%addresses))}}
				conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.base, "http://"))
				if err != nil {
					continue // refused, which is fine too
				}
				t.Cleanup(func() {
					_ = conn.(*net.TCPConn).SetLinger(0) // or its port would be in use for a minute
					_ = conn.Close()
				})
				_ = conn.SetWriteDeadline(time.Now().Add(soon))
				_, _ = conn.Write([]byte(sends)) // fails if the server has closed it
			}
		})
	}
	wg.Wait()
	time.Sleep(time.Second) // time for the server's memory to peak
}

// shortLines returns header lines that need as much memory as possible for their size: the names
// differ and are as short as possible.
func shortLines(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%c%c%c:\n", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)
	}
	return b.String()
}

// unfinishedHTTP2 returns the start of an HTTP/2 connection with a header of 850 one-byte fields
// that does not end.
func unfinishedHTTP2() string {
	frame := func(length, kind, flags, stream int) string {
		return string([]byte{
			byte(length >> 16), byte(length >> 8), byte(length), byte(kind), byte(flags), 0, 0, 0,
			byte(stream),
		})
	}
	const settings, headers, fields = 4, 1, 850
	return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(0, settings, 0, 0) +
		frame(fields, headers, 0, 1) + strings.Repeat("\x93", fields) // entry 19 of the static table: accept
}
