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
	// A connection may be closed to make room for another when it has been quiet for so
	// long: since it was opened, or since its last response.
	quietNew  = time.Second
	quietUsed = 100 * time.Millisecond
	// On a busy machine it may take a while until a request is served that was read.
	quietRead = 250 * time.Millisecond
	// A request that was received whole is closed last, for so long: it may still be served.
	// That is no right to stay, since anybody can send what looks like one.
	waitsFor = 5 * time.Second

	// roomWait is how long a new connection waits for room before it is refused.
	roomWait = 250 * time.Millisecond
	roomLook = 10 * time.Millisecond
	// evictAtOnce bounds how many connections one look closes. Looking costs more than
	// closing, so it closes some more than the one that is needed.
	evictAtOnce = 16

	// maxQuiet is how many connections of one address may be quiet. Each holds memory,
	// up to the size of a request's header.
	maxQuiet  = 1000
	thinEvery = 250 * time.Millisecond
)

// maxConns is how many connections may be open: the open files less a reserve for the
// store and for what the server itself connects to. 0: no limit.
func maxConns(files int) int {
	if files == 0 {
		return 0
	}
	reserve := min(max(files/5, 128), 1024)
	return max(files-reserve, files/4, 1)
}

// parkLimits are the configured limits, lowered to what the open files allow: streams
// and waits together must leave connections for other requests.
func parkLimits(cfg config.Config, files int) httpx.ParkLimits {
	l := httpx.ParkLimits{Process: cfg.MaxStreams, PerPrincipal: cfg.MaxStreamsPerPrincipal}
	if files > 0 {
		l.Both = max(1, min(files*3/5, maxConns(files)*3/4))
		if most := max(1, l.Both*9/10); l.PerPrincipal == 0 || l.PerPrincipal > most {
			l.PerPrincipal = most // or one caller could take them all
		}
	}
	return l
}

// guard is a listener that bounds the number of open connections. At the bound it
// closes connections that nothing is served on, of the address that has the most, so
// that one client cannot keep others out by opening connections and leaving them.
type guard struct {
	net.Listener
	max int // 0: no bound
	log *slog.Logger

	pending  atomic.Int64 // memory of unfinished headers, by estimate; see headers.go
	shedding sync.Mutex   // held while connections are closed because of it

	mu       sync.Mutex
	conns    map[netip.Addr]map[*guarded]struct{}
	open     int
	full     time.Time // when a connection was last refused
	thinning bool      // quiet connections will be counted soon
	logged   time.Time
}

func newGuard(l net.Listener, most int, log *slog.Logger) *guard {
	return &guard{Listener: l, max: most, log: log, conns: map[netip.Addr]map[*guarded]struct{}{}}
}

// Accept returns the next connection that there is room for. It fails only when the
// listener is closed: having no files left is a reason to close some.
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

// thinOut closes the longest quiet connections of addresses that have too many. It runs
// again while an address has connections that may become too many: a burst of them ends
// before the first is old enough to count.
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

// tooQuiet lists the quiet connections beyond maxQuiet, those that are closed first.
// unserved is how many there are that nothing is served on, young ones included.
func tooQuiet(list map[*guarded]struct{}, now time.Time) (idle []*guarded, unserved int) {
	for c := range list {
		if c.state.Load()&serving == 0 {
			unserved++
		}
		if c.idleSince(now, quietNew) { // there is time: a client that is busy now may send in a moment
			idle = append(idle, c)
		}
	}
	if len(idle) <= maxQuiet {
		return nil, unserved
	}
	slices.SortFunc(idle, closeFirst(now))
	return idle[:len(idle)-maxQuiet], unserved
}

// exhausted reports whether the system has run out of something that connections
// that end give back.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// makeRoom reports whether there is room for one more. Requests end soon and leave
// connections that can be closed, so it waits a moment, unless that has just failed.
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

// evict closes connections that nothing is served on, of the address that has the most, and
// returns how many.
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

// clientOf is whom a connection is counted for, as all limits by address count.
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

// remove forgets a connection that was closed. It may be called again.
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

// guarded is a connection that knows how many requests are being served on it.
type guarded struct {
	*net.TCPConn
	guard *guard
	addr  netip.Addr
	state atomic.Uint64 // how many requests are served, how many began, and closing
	used  atomic.Bool
	quiet atomic.Int64 // since when nothing was served on it, in ns

	header header // that is being read
}

// A connection's state, so that one operation can tell that no request has begun and
// that none will: the lower half counts the requests that are being served, the upper
// half, without its highest bit, those that ever began.
const (
	serving = 1<<32 - 1
	began   = 1 << 32
	closing = 1 << 63
)

// begin notes a request; false: the connection is being closed.
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

// end notes that a request was served.
func (c *guarded) end() {
	c.used.Store(true)
	c.quiet.Store(time.Now().UnixNano())
	c.state.Add(^uint64(0)) // one less
	c.countTail()
}

// claim makes an idle connection serve no more requests, so that it can be closed
// without loss. It fails if a request has begun since the connection became idle.
func (c *guarded) claim(now time.Time) bool {
	s := c.state.Load()
	return s&closing == 0 && c.idle(now) && !c.unread() && c.state.CompareAndSwap(s, s|closing)
}

// Close implements net.Conn.
func (c *guarded) Close() error {
	err := c.TCPConn.Close() // at once: a request that comes from now on is lost
	c.guard.remove(c)
	c.header.closed.Store(true)
	c.headerDone()
	return err
}

// unread reports whether the client has sent something that the server has not read yet:
// on a busy machine a request may wait for a long time.
func (c *guarded) unread() bool { return c.TCPConn != nil && bytesWaiting(c.TCPConn) > 0 }

// idle reports whether the connection can be closed without loss.
func (c *guarded) idle(now time.Time) bool { return c.idleSince(now, quietUsed) }

// idleSince is idle for a connection whose last response was sent at least so long ago.
func (c *guarded) idleSince(now time.Time, used time.Duration) bool {
	if c.state.Load()&serving != 0 {
		return false
	}
	least := quietNew
	if c.used.Load() {
		least = used
	}
	return now.UnixNano()-c.quiet.Load() >= int64(least) && now.UnixNano()-c.header.read.Load() >= int64(quietRead)
}

// waits reports whether a request was received that is not being served yet.
func (c *guarded) waits(now time.Time) bool {
	return c.header.whole.Load() && now.UnixNano()-c.header.read.Load() < int64(waitsFor)
}

// closeFirst orders connections that may be closed: those where no request waits come first,
// and of them those that are quiet the longest.
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

// withConn lets the handler find the connection of a request.
func withConn(ctx context.Context, nc net.Conn) context.Context {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	if c, ok := nc.(*guarded); ok {
		return httpx.WithConn(context.WithValue(ctx, connKey{}, c), c)
	}
	return ctx
}

// watch notes on each connection what is being served on it. The server's own states
// do not tell a request that is served from one whose header never ends.
func (g *guard) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*guarded); ok {
			if !c.begin() {
				panic(http.ErrAbortHandler) // before anything is done for the request, which can be sent again
			}
			defer c.end()
		}
		next.ServeHTTP(w, r)
	})
}
