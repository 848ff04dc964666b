package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/httpx"
)

const (
	// A connection is idle, and may be closed to make room for another, after quietNew since
	// it was opened, or quietUsed since its last response.
	quietNew  = time.Second
	quietUsed = 100 * time.Millisecond
	// quietRead is the minimum time since the last read: on a busy machine it may take a
	// while until a request that was read is served.
	quietRead = 250 * time.Millisecond
	// waitsFor is how long a connection with a complete request that is not served yet is
	// closed after all others. It may still be closed, since any client can send such a
	// request.
	waitsFor = 5 * time.Second

	// roomWait is how long a new connection waits for room before it is refused.
	roomWait = 250 * time.Millisecond
	roomLook = 10 * time.Millisecond
	// evictAtOnce is how many connections are closed at once. Finding them costs more than
	// closing them, so more are closed than needed.
	evictAtOnce = 16

	// maxQuiet is how many idle connections one IP address may have. Each holds memory, up
	// to the size of a request header.
	maxQuiet  = 1000
	thinEvery = 250 * time.Millisecond
)

// maxConns returns how many connections may be open: the limit of open files minus a reserve
// for the store and outbound connections. 0 means no limit.
func maxConns(files int) int {
	if files == 0 {
		return 0
	}
	reserve := min(max(files/5, 128), 1024)
	return max(files-reserve, files/4, 1)
}

// parkLimits returns the configured limits of streams and long polls, lowered so that they
// leave connections for other requests.
func parkLimits(cfg config.Config, files int) httpx.ParkLimits {
	l := httpx.ParkLimits{Process: cfg.MaxStreams, PerPrincipal: cfg.MaxStreamsPerPrincipal}
	if files > 0 {
		l.Both = max(1, min(files*3/5, maxConns(files)*3/4))
		if most := max(1, l.Both*9/10); l.PerPrincipal == 0 || l.PerPrincipal > most {
			l.PerPrincipal = most // otherwise one caller could take them all
		}
	}
	return l
}

// guard is a listener that bounds the number of open connections. At the bound it closes idle
// connections of the IP address that has the most, so that one client cannot lock out others
// with idle connections.
type guard struct {
	net.Listener
	max int // 0: no bound
	log *slog.Logger

	pending  atomic.Int64 // estimated memory of incomplete headers; see headers.go
	shedding sync.Mutex   // held by shedHeaders

	mu       sync.Mutex
	conns    map[netip.Addr]map[*guarded]struct{}
	open     int
	full     time.Time // when a connection was last refused
	thinning bool      // thinOut is scheduled
	logged   time.Time
}

func newGuard(l net.Listener, most int, log *slog.Logger) *guard {
	return &guard{Listener: l, max: most, log: log, conns: map[netip.Addr]map[*guarded]struct{}{}}
}

// Accept returns the next connection that there is room for. It fails only when the listener
// is closed. When files run out, it closes idle connections.
func (g *guard) Accept() (net.Conn, error) {
	for {
		nc, err := g.Listener.Accept()
		if err != nil {
			if !exhausted(err) {
				return nil, err
			}
			g.complain("out of files: a connection cannot be accepted", err)
			g.evict(time.Now())
			time.Sleep(roomLook)
			continue
		}
		if !g.makeRoom() {
			g.complain("too many connections: a new one was refused; raise the limit on open files (ulimit -n)", nil)
			_ = nc.Close()
			continue
		}
		return g.add(nc), nil
	}
}

// thinOut closes the longest idle connections of IP addresses that have too many. It runs
// again while an address has connections that may become idle, because the connections of a
// burst are not idle yet when it ends.
func (g *guard) thinOut() {
	now := time.Now()
	var idle []*guarded
	g.mu.Lock()
	g.thinning = false
	for _, list := range g.conns {
		if len(list) > maxQuiet {
			found, unserved := tooQuiet(list, now)
			idle = append(idle, found...)
			g.thinning = g.thinning || unserved-len(found) > maxQuiet
		}
	}
	if g.thinning {
		time.AfterFunc(thinEvery, g.thinOut)
	}
	g.mu.Unlock()
	for _, c := range idle {
		if c.claim(now) {
			_ = c.Close()
		}
	}
}

// tooQuiet returns the idle connections beyond maxQuiet, in the order in which to close them.
// unserved is the number of connections that serve no request, including new ones.
func tooQuiet(list map[*guarded]struct{}, now time.Time) (idle []*guarded, unserved int) {
	for c := range list {
		if c.state.Load()&serving == 0 {
			unserved++
		}
		if c.idleSince(now, quietNew) { // no hurry: a busy client may send a request in a moment
			idle = append(idle, c)
		}
	}
	if len(idle) <= maxQuiet {
		return nil, unserved
	}
	slices.SortFunc(idle, closeFirst(now))
	return idle[:len(idle)-maxQuiet], unserved
}

// exhausted reports whether the system has run out of a resource that closing a connection
// frees.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// makeRoom reports whether there is room for one more connection. Requests end soon and leave
// idle connections, so it waits a moment, unless waiting has just failed.
func (g *guard) makeRoom() bool {
	if g.max == 0 {
		return true
	}
	start := time.Now()
	for now := start; ; now = time.Now() {
		g.mu.Lock()
		room, wait := g.open < g.max, now.Sub(g.full) > time.Second
		g.mu.Unlock()
		if room || g.evict(now) > 0 {
			return true
		}
		if !wait || now.Sub(start) >= roomWait {
			g.mu.Lock()
			g.full = now
			g.mu.Unlock()
			return false
		}
		time.Sleep(roomLook)
	}
}

// evict closes idle connections of the IP address that has the most connections, and returns
// how many it closed.
func (g *guard) evict(now time.Time) int {
	g.mu.Lock()
	var idle []*guarded
	most := 0
	for _, list := range g.conns {
		if len(list) <= most {
			continue
		}
		var found []*guarded
		for c := range list {
			if c.idle(now) {
				found = append(found, c)
			}
		}
		if len(found) > 0 {
			idle, most = found, len(list)
		}
	}
	g.mu.Unlock()
	slices.SortFunc(idle, closeFirst(now))
	closed := 0
	for _, c := range idle {
		if closed < evictAtOnce && c.claim(now) {
			_ = c.Close()
			closed++
		}
	}
	return closed
}

func (g *guard) complain(msg string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); now.Sub(g.logged) > quiet {
		g.logged = now
		g.log.Warn(msg, "open", g.open, "limit", g.max, "error", err)
	}
}

// clientOf returns the IP address or prefix that a connection is counted for.
func clientOf(addr net.Addr) netip.Addr {
	at, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return httpx.LimitKey(at.AddrPort().Addr().Unmap().WithZone(""))
}

func (g *guard) add(nc net.Conn) net.Conn {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	c := &guarded{TCPConn: tcp, guard: g}
	c.addr = clientOf(tcp.RemoteAddr())
	c.quiet.Store(time.Now().UnixNano())
	g.mu.Lock()
	defer g.mu.Unlock()
	list := g.conns[c.addr]
	if list == nil {
		list = map[*guarded]struct{}{}
		g.conns[c.addr] = list
	}
	list[c] = struct{}{}
	g.open++
	if len(list) > maxQuiet && !g.thinning {
		g.thinning = true
		time.AfterFunc(thinEvery, g.thinOut)
	}
	return c
}

// remove stops counting a closed connection. It may be called more than once.
func (g *guard) remove(c *guarded) {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := g.conns[c.addr]
	if _, ok := list[c]; !ok {
		return
	}
	g.open--
	if delete(list, c); len(list) == 0 {
		delete(g.conns, c.addr)
	}
}

// guarded is a connection that counts the requests that are being served on it.
type guarded struct {
	*net.TCPConn
	guard *guard
	addr  netip.Addr
	state atomic.Uint64 // see serving, began and closing
	used  atomic.Bool
	quiet atomic.Int64 // end of the last request, in ns

	header    header    // being read
	gathering gathering // being written
}

// The parts of a connection's state. The lower half counts the requests that are being served.
// The upper half, without its highest bit, counts all requests, so that one compare-and-swap
// can close a connection on which no request has begun.
const (
	serving = 1<<32 - 1
	began   = 1 << 32
	closing = 1 << 63
)

// begin counts a request. It returns false if the connection is being closed.
func (c *guarded) begin() bool {
	for {
		s := c.state.Load()
		if s&closing != 0 {
			return false
		}
		if c.state.CompareAndSwap(s, (s+began+1)&^closing) {
			c.headerDone()
			c.header.whole.Store(false)
			return true
		}
	}
}

// Keep counts a stream that has taken over the connection: the connection stays busy until it is
// closed. Package httpx calls it.
func (c *guarded) Keep() { c.state.Add(1) }

// end marks the end of a request.
func (c *guarded) end() {
	c.used.Store(true)
	c.quiet.Store(time.Now().UnixNano())
	c.state.Add(^uint64(0)) // one less
	c.countTail()
}

// claim marks an idle connection as closing, so that it serves no more requests and can be
// closed without losing one. It returns false if a request has begun.
func (c *guarded) claim(now time.Time) bool {
	s := c.state.Load()
	return s&closing == 0 && c.idle(now) && !c.unread() && c.state.CompareAndSwap(s, s|closing)
}

// Close implements net.Conn.
func (c *guarded) Close() error {
	err := c.TCPConn.Close() // first: a request that arrives from now on would be lost
	c.guard.remove(c)
	c.header.closed.Store(true)
	c.headerDone()
	return err
}

// unread reports whether there are bytes that the server has not read yet. On a busy machine
// a request may wait there for a long time.
func (c *guarded) unread() bool { return c.TCPConn != nil && bytesWaiting(c.TCPConn) > 0 }

// idle reports whether the connection can be closed without losing a request.
func (c *guarded) idle(now time.Time) bool { return c.idleSince(now, quietUsed) }

// idleSince is idle with another minimum time since the last response.
func (c *guarded) idleSince(now time.Time, used time.Duration) bool {
	if c.state.Load()&serving != 0 {
		return false
	}
	least := quietNew
	if c.used.Load() {
		least = used
	}
	return now.UnixNano()-c.quiet.Load() >= int64(least) &&
		now.UnixNano()-c.header.read.Load() >= int64(quietRead)
}

// waits reports whether a complete request was received that is not being served yet.
func (c *guarded) waits(now time.Time) bool {
	return c.header.whole.Load() && now.UnixNano()-c.header.read.Load() < int64(waitsFor)
}

// closeFirst compares connections by the order in which to close them: first those without a
// waiting request, and among them the longest idle ones.
func closeFirst(now time.Time) func(a, b *guarded) int {
	return func(a, b *guarded) int {
		if w := a.waits(now); w != b.waits(now) {
			if w {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.quiet.Load(), b.quiet.Load())
	}
}

type connKey struct{}

// withConn adds the connection to the context of its requests.
func withConn(ctx context.Context, nc net.Conn) context.Context {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	if c, ok := nc.(*guarded); ok {
		return httpx.WithConn(context.WithValue(ctx, connKey{}, c), c)
	}
	return ctx
}

// watch counts the requests of each connection. The connection states of net/http do not
// distinguish a request that is being served from one whose header is incomplete.
func (g *guard) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*guarded); ok {
			if !c.begin() {
				panic(http.ErrAbortHandler) // nothing was done for the request, so the client can retry
			}
			defer c.end()
		}
		next.ServeHTTP(w, r)
	})
}
