package app

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/httpx"
)

// guardedServer serves "/" at once, and "/stay" until release is closed.
type guardedServer struct {
	*guard
	addr    string
	inside  chan struct{}
	release chan struct{}
}

func newGuardedServer(t *testing.T, most int) *guardedServer {
	t.Helper()
	l, err := listen(t.Context(), "127.0.0.1:0", "--listen")
	if err != nil {
		t.Fatal(err)
	}
	s := &guardedServer{
		guard: newGuard(l, most, slog.New(slog.DiscardHandler)), addr: l.Addr().String(),
		inside: make(chan struct{}), release: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	mux.HandleFunc("/stay", func(_ http.ResponseWriter, r *http.Request) {
		s.inside <- struct{}{}
		<-s.release
	})
	srv := &http.Server{
		Handler: s.watch(mux), ConnContext: withConn, Protocols: protocols(),
		MaxHeaderBytes: maxHeaderBytes,
	} // a test
	go srv.Serve(s.guard)
	t.Cleanup(func() {
		s.free()
		srv.Close()
	})
	return s
}

func (s *guardedServer) free() {
	select {
	case <-s.release:
	default:
		close(s.release)
	}
}

// dial opens a connection and sends a request on it.
func (s *guardedServer) dial(t *testing.T, request string) *bufio.ReadWriter {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
}

// served reports whether a response comes on the connection, which stays open.
func served(c *bufio.ReadWriter) bool {
	res, err := http.ReadResponse(c.Reader, nil)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err == nil && res.StatusCode == http.StatusOK
}

func ended(c *bufio.ReadWriter) bool {
	_, err := c.ReadByte()
	return err != nil
}

const (
	getRoot = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	getStay = "GET /stay HTTP/1.1\r\nHost: x\r\n\r\n"
)

func TestAtTheBoundTheLongestQuietConnectionMakesRoom(t *testing.T) {
	t.Parallel()
	s := newGuardedServer(t, 3)
	var quiet []*bufio.ReadWriter
	for range 3 {
		c := s.dial(t, getRoot)
		if !served(c) {
			t.Fatal("no response below the bound")
		}
		quiet = append(quiet, c)
	}
	if c := s.dial(t, getRoot); !served(c) {
		t.Fatal("no response to a new connection at the bound")
	}
	if !ended(quiet[0]) {
		t.Error("the longest quiet connection was not closed")
	}
}

func TestConnectionsThatAreServedAreNeverClosedForOthers(t *testing.T) {
	t.Parallel()
	s := newGuardedServer(t, 2)
	busy := s.dial(t, getStay)
	<-s.inside
	s.dial(t, getStay)
	<-s.inside
	if c := s.dial(t, getRoot); served(c) {
		t.Error("a connection beyond the bound was served")
	}
	s.free()
	if !served(busy) {
		t.Error("a busy connection was closed")
	}
}

func TestAHeaderThatNeverEndsHoldsNoPlace(t *testing.T) {
	t.Parallel()
	s := newGuardedServer(t, 2)
	for range 2 {
		s.dial(t, "GET / HTTP/1.1\r\nX-Slow: ")
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		if served(s.dial(t, getRoot)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("two unfinished headers keep everybody out")
		}
	}
}

func TestAnHTTP2ConnectionIsBusyWhileAStreamIs(t *testing.T) {
	t.Parallel()
	s := newGuardedServer(t, 1)
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: p}}
	var ends sync.WaitGroup
	ends.Go(func() {
		res, err := client.Get("http://" + s.addr + "/stay")
		if err != nil {
			t.Error(err)
			return
		}
		res.Body.Close()
		if res.ProtoMajor != 2 {
			t.Errorf("spoke %s", res.Proto)
		}
	})
	<-s.inside
	if n := s.evict(time.Now().Add(time.Hour)); n != 0 {
		t.Fatal("a connection with an open stream was closed")
	}
	s.free()
	ends.Wait()
	// What the client sends when the stream has ended may not be read yet.
	for deadline := time.Now().Add(20 * time.Second); s.evict(time.Now().Add(time.Hour)) != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a connection without a stream was not closed")
		}
	}
}

// flaky runs out of files twice before it accepts.
type flaky struct {
	net.Listener
	fails int
}

func (f *flaky) Accept() (net.Conn, error) {
	if f.fails++; f.fails <= 2 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

func TestRunningOutOfFilesDoesNotEndTheServer(t *testing.T) {
	t.Parallel()
	l, err := listen(t.Context(), "127.0.0.1:0", "--listen")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := newGuard(&flaky{Listener: l}, 10, slog.New(slog.DiscardHandler)).Accept()
	if err != nil {
		t.Fatalf("two failures for lack of files: %v", err)
	}
	conn.Close()
}

func TestLimitsFitTheOpenFiles(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	for _, c := range []struct {
		files, conns int
		parked       httpx.ParkLimits
	}{
		{0, 0, httpx.ParkLimits{Process: 12_000, PerPrincipal: 1000}},
		{256, 128, httpx.ParkLimits{Process: 12_000, PerPrincipal: 86, Both: 96}},
		{1000, 800, httpx.ParkLimits{Process: 12_000, PerPrincipal: 540, Both: 600}},
		{20_000, 18_976, httpx.ParkLimits{Process: 12_000, PerPrincipal: 1000, Both: 12_000}},
	} {
		if got := maxConns(c.files); got != c.conns {
			t.Errorf("%d files: %d connections; want %d", c.files, got, c.conns)
		}
		if got := parkLimits(cfg, c.files); got != c.parked {
			t.Errorf("%d files: %+v; want %+v", c.files, got, c.parked)
		}
	}
}

func TestConnectionsAreCountedByTheNetworkOfAClient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8::1", "2001:db8::2:3:4:5", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
	} {
		a, b := clientOf(&net.TCPAddr{IP: net.ParseIP(c.a), Port: 1}), clientOf(&net.TCPAddr{IP: net.ParseIP(c.b), Port: 2})
		if (a == b) != c.same {
			t.Errorf("%s and %s are counted as %s and %s", c.a, c.b, a, b)
		}
	}
}

// only returns the one connection that is open.
func (g *guard) only(t *testing.T) *guarded {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, list := range g.conns {
		for c := range list {
			return c
		}
	}
	t.Fatal("no connection is open")
	return nil
}

// A request may arrive on a connection while it is being closed.
func TestARequestOnAConnectionThatIsBeingClosedIsNotRun(t *testing.T) {
	t.Parallel()
	s := newGuardedServer(t, 1)
	client := s.dial(t, getRoot)
	if !served(client) {
		t.Fatal("no response")
	}
	later := time.Now().Add(time.Hour)
	c := s.only(t)
	if !c.begin() || c.claim(later) {
		t.Fatal("a connection was claimed while a request is served on it")
	}
	c.end()
	if !c.claim(later) || c.claim(later) {
		t.Fatal("an idle connection was not claimed once")
	}
	_, _ = client.WriteString(getStay)
	_ = client.Flush()
	select {
	case <-s.inside:
		t.Error("a request runs on a connection that is being closed")
	case <-after(func() { ended(client) }):
	}
}

// A request that began and ended since a connection was found idle keeps it open.
func TestAConnectionThatWasUsedMeanwhileIsNotClaimed(t *testing.T) {
	t.Parallel()
	c := &guarded{}
	before := c.state.Load()
	c.begin()
	c.end()
	if c.state.CompareAndSwap(before, before|closing) {
		t.Error("the state does not tell that a request was served")
	}
	c.state.Store(closing - began) // as many requests as can be counted
	for range 2 {
		if !c.begin() {
			t.Error("a connection with many requests counts as closing")
		}
	}
}

func TestAnAddressHasABoundedNumberOfQuietConnections(t *testing.T) {
	t.Parallel()
	now := time.Now()
	list := map[*guarded]struct{}{}
	var oldest *guarded
	for i := range maxQuiet + 1 {
		c := &guarded{}
		c.quiet.Store(now.Add(-time.Minute + time.Duration(i)).UnixNano())
		list[c] = struct{}{}
		if i == 0 {
			oldest = c
		}
	}
	busy := &guarded{}
	busy.begin()
	list[busy] = struct{}{}
	if got, unserved := tooQuiet(list, now); len(got) != 1 || got[0] != oldest || unserved != maxQuiet+1 {
		t.Errorf("%d connections of %d are to be closed; want the one that is quiet the longest", len(got), unserved)
	}
	delete(list, oldest)
	if got, _ := tooQuiet(list, now); len(got) != 0 {
		t.Errorf("%d connections are to be closed of as many as may be", len(got))
	}
}

// No connection comes after the burst that could make the guard look.
func TestABurstOfQuietConnectionsIsThinnedOut(t *testing.T) {
	t.Parallel()
	s := newGuardedServer(t, 0)
	for range maxQuiet + 50 {
		s.dial(t, "GET")
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		open := s.open
		s.mu.Unlock()
		if open == maxQuiet {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are open; want %d", open, maxQuiet)
		}
	}
}

func after(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}
