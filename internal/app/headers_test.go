package app

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// pendingIs waits until unfinished headers count as much as ok wants.
func (s *guardedServer) pendingIs(t *testing.T, what string, ok func(int64) bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(s.pending.Load()); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("unfinished headers count %d bytes; want %s", s.pending.Load(), what)
		}
	}
}

func isZero(n int64) bool { return n == 0 }

func TestAHeaderCountsUntilItIsComplete(t *testing.T) {
	t.Parallel()
	s := newGuardedServer(t, 0)
	const half = "GET /stay HTTP/1.1\r\nHost: x\r\nX: "
	want := int64(len(half) + 2*lineCost)
	c := s.dial(t, half)
	s.pendingIs(t, "those of one header", func(n int64) bool { return n == want })
	_, _ = c.WriteString("y\r\n\r\n")
	_ = c.Flush()
	<-s.inside
	if n := s.pending.Load(); n != 0 {
		t.Errorf("a request that is being served counts %d bytes of an unfinished header", n)
	}
	s.free()
	if !served(c) {
		t.Fatal("no response")
	}
	_, _ = c.WriteString(half)
	_ = c.Flush()
	s.pendingIs(t, "those of the next header", func(n int64) bool { return n == want })
	_ = s.only(t).Close()
	s.pendingIs(t, "none of a closed connection", isZero)
}

func TestTheEndOfAHeaderIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sends []string
		ends  bool
	}{
		{[]string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n"}, true},
		{[]string{"GET / HTTP/1.1\nHost: x\n\n"}, true},
		{[]string{"GET / HTTP/1.1\r\nHost: x\r\n\r", "\n"}, true},
		{[]string{"GET / HTTP/1.1\r\nHost: x\r\n", "\r\n"}, true},
		{[]string{"GET / HTTP/1.1\r\nHost: x", "\r\n\r\n{}"}, true},
		{[]string{"GET / HTTP/1.1\r\nHost: x\r\n"}, false},
		{[]string{"GET / HTTP/1.1\r\nHost: x", "\r\n"}, false},
		{[]string{"G", "E", "T"}, false},
		{[]string{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}, false},
	} {
		var h header
		ends := false
		for _, part := range c.sends {
			h.estimate([]byte(part))
			ends = h.ends([]byte(part))
		}
		if ends != c.ends {
			t.Errorf("%q: got %v, want %v", c.sends, ends, c.ends)
		}
	}
}

// On a busy machine a request that was read may wait for longer than its connection may be
// quiet. Others are closed first.
func TestAConnectionWhereARequestWaitsIsClosedLast(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixNano() }
	conn := func(quiet, read time.Duration, whole bool) *guarded {
		c := &guarded{}
		c.quiet.Store(ago(quiet))
		c.header.read.Store(ago(read))
		c.header.whole.Store(whole)
		return c
	}
	waits, stale := conn(time.Hour, time.Second, true), conn(time.Minute, waitsFor, true)
	older, newer := conn(time.Minute-1, time.Second, false), conn(time.Second, time.Second, false)
	got := []*guarded{waits, newer, older, stale}
	slices.SortFunc(got, closeFirst(now))
	if want := []*guarded{stale, older, newer, waits}; !slices.Equal(got, want) {
		t.Error("connections are closed in another order")
	}
	if !waits.idle(now) {
		t.Error("a request that waits makes its connection stay for ever")
	}
	waits.begin()
	waits.end()
	if waits.waits(now) {
		t.Error("a request waits that was served")
	}
}

// A part of the next request may be read together with one that is served.
func TestAHeaderThatComesWithAnotherRequestCounts(t *testing.T) {
	t.Parallel()
	s := newGuardedServer(t, 0)
	c := s.dial(t, getRoot+"GET / HTTP/1.1\r\n"+strings.Repeat("a:\n", 1000))
	if !served(c) {
		t.Fatal("no response")
	}
	s.pendingIs(t, "those of 1,000 lines", func(n int64) bool { return n > 900*lineCost })
	c = s.dial(t, getRoot+getRoot)
	for i := range 2 {
		if !served(c) {
			t.Errorf("of two requests at once, number %d was not served", i+1)
		}
	}
}

func TestTheLargestAndOldestHeadersMakeRoom(t *testing.T) {
	t.Parallel()
	l, err := listen(t.Context(), "127.0.0.1:0", "--listen")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	g := newGuard(l, 0, slog.New(slog.DiscardHandler))
	now := time.Now()
	add := func(cost int64, age time.Duration) *guarded {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		conn, err := g.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c := conn.(*guarded)
		t.Cleanup(func() { c.Close() })
		c.header.since.Store(now.Add(-age).UnixNano())
		c.header.cost.Store(cost)
		g.pending.Add(cost)
		return c
	}
	spared := map[string]*guarded{
		"small": add(100, time.Hour), "young": add(2*maxPendingOne, time.Nanosecond), "busy": add(maxPendingOne, time.Hour),
	}
	spared["busy"].state.Add(began + 1)
	old := add(maxPending/2, time.Hour)
	g.shedHeaders()
	if old.state.Load()&closing != 0 {
		t.Fatal("a connection was closed although there is room")
	}
	g.pending.Add(maxPending / 2)
	g.shedHeaders()
	if old.state.Load()&closing == 0 {
		t.Error("the connection that holds much for long was not closed")
	}
	for name, c := range spared {
		if c.state.Load()&closing != 0 {
			t.Errorf("the %s connection was closed", name)
		}
	}
}

func TestBytesThatCannotBeReadCountByTheirWorst(t *testing.T) {
	t.Parallel()
	var plain, h2 header
	if n := plain.estimate([]byte("GET / HTTP/1.1\r\n")); n != 16+lineCost {
		t.Errorf("a line of HTTP/1 counts %d", n)
	}
	for _, b := range []string{"P", "R", "I * HTTP/2.0\r\n\r\nSM\r\n\r\n"} { // byte by byte, so as not to be known
		h2.estimate([]byte(b))
	}
	if n := h2.estimate(make([]byte, 10)); n != 10*sealedCost {
		t.Errorf("10 bytes of HTTP/2 count %d", n)
	}
}

// Encrypted bytes count as what they may hide, those of the handshake do not.
func TestUnfinishedHeadersCountOverTLS(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	dir := t.TempDir()
	cfg.TLSCert, cfg.TLSKey = dir+"/cert.pem", dir+"/key.pem"
	writeCert(t, cfg, 1, time.Now())
	s := startServer(t, cfg)
	defer s.Shutdown()
	addr := strings.TrimPrefix(s.URL(), "https://")
	plain, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_, _ = plain.Write(append([]byte{22, 3, 1, 16, 0}, make([]byte, 1000)...)) // a hello that does not end
	server := &guardedServer{guard: s.listener}
	server.pendingIs(t, "about 1,005", func(n int64) bool { return n >= 1005 && n < 3000 })
	plain.Close()
	server.pendingIs(t, "none", isZero)

	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}) // a test
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 1000))
	server.pendingIs(t, "1,000 encrypted bytes", func(n int64) bool { return n >= 1000*sealedCost })
	_, _ = io.WriteString(conn, "\r\n\r\n")
	got := make([]byte, 12)
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.HasSuffix(got, []byte("200")) {
		t.Errorf("%s, %v", got, err)
	}
	server.pendingIs(t, "none", isZero)
}

// A frame of HTTP/2 is read into a buffer of the size that it declares.
func TestFramesOfHTTP2AreSmall(t *testing.T) {
	t.Parallel()
	s := startServer(t, testConfig(t))
	defer s.Shutdown()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	head := make([]byte, 9)
	if _, err := io.ReadFull(conn, head); err != nil || head[3] != 4 {
		t.Fatalf("%x, %v; want a SETTINGS frame", head, err)
	}
	settings := make([]byte, int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(conn, settings); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(settings, []byte{0, 5, 0, 0, 0x40, 0}) { // SETTINGS_MAX_FRAME_SIZE
		t.Errorf("%x does not bound frames to 16 KiB", settings)
	}
}

// TestAnOpenStreamHidesNoLargeHeader sends a header that does not end while a stream of the
// connection is open, so that its bytes are not counted. The connection must end once the
// header is larger than a request's may be.
func TestAnOpenStreamHidesNoLargeHeader(t *testing.T) {
	t.Parallel()
	s := newGuardedServer(t, 0)
	const (
		headers, continuation = 1, 9
		endStream, endHeaders = 1, 4
		request               = "\x82\x86\x04\x05/stay\x01\x01x" // GET http://x/stay
		field                 = "\x90"                           // accept-encoding: gzip, deflate; it counts as 60 bytes
	)
	frame := func(kind, flags, stream byte, payload string) string {
		return string([]byte{0, 0, byte(len(payload)), kind, flags, 0, 0, 0, stream}) + payload
	}
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"+
		frame(headers, endStream|endHeaders, 1, request))
	<-s.inside
	_, _ = io.WriteString(conn, frame(headers, endStream, 3, request))
	for range 2 * maxHeaderBytes / 60 / 100 {
		_, _ = io.WriteString(conn, frame(continuation, 0, 3, strings.Repeat(field, 100))) // it may be closed by now
	}
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is open although its header is too large")
	}
}
