package app

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"slices"
	"sync/atomic"
	"time"
)

// The memory of request headers that are not complete yet is bounded for the whole
// process. No credentials are known at that point, and an address says little: behind a
// proxy all clients have the same one. So the bound is on bytes, and when it is exceeded
// the connections are closed that hold much for long. The header of an ordinary request
// is small and complete within milliseconds.
//
// While a connection serves a request, what it sends is not counted: it cannot be told from
// the bodies of its streams, and to count those would close honest connections. So an
// HTTP/2 client with an open stream can hold one more unfinished header (CONTINUATION),
// which net/http bounds: one block at a time, of maxHeaderBytes with 32 bytes for each field,
// or some 150 KiB of memory, and no longer than pingAfter and pingTimeout together, because a
// client cannot answer a ping before the block ends. How many connections can do so follows
// from the limits on requests and streams.
const (
	// maxPending is how much memory unfinished headers may take, by estimate.
	maxPending = 32 << 20
	// maxPendingOne is the most that one connection counts. The server refuses headers
	// that would take more.
	maxPendingOne = 1 << 20
	// lineCost is what a line of a header takes in memory beyond its bytes.
	lineCost = 128
	// sealedCost is what a byte may take of a header that cannot be read here, because it
	// is encrypted or compressed: an HTTP/2 client names a known field in one byte.
	sealedCost = 64
	// pendingFor is how long bytes count at most. HTTP/2 connections also send bytes that
	// belong to no header. A header takes less time than this or is refused.
	pendingFor = time.Minute
	// bufferSize is how much the server reads of a connection at once, so that a part of
	// the next request may be read with one that is being served.
	bufferSize = 4 << 10
	// smallTail is what such a part may take without being counted.
	smallTail = 16 << 10
)

// header is what a connection has sent of the header of its next request.
type header struct {
	cost   atomic.Int64 // what it takes in memory, by estimate
	since  atomic.Int64 // when its first bytes came, in ns
	read   atomic.Int64 // when its latest bytes came, in ns
	tail   atomic.Int64 // the cost of the latest bytes, if a next request may be among them
	whole  atomic.Bool  // its end has come: the request waits to be served
	closed atomic.Bool  // the connection is closed and counts no more

	start  []byte // of the connection, until the protocol is known
	line   int    // how much of the latest line has come
	sealed bool   // the bytes are encrypted or compressed
}

// Read implements net.Conn.
func (c *guarded) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if n > 0 {
		cost := c.header.estimate(p[:n])
		if c.state.Load()&serving == 0 {
			c.header.whole.Store(c.header.ends(p[:n]))
			c.header.read.Store(time.Now().UnixNano())
			c.countHeader(cost)
		}
		switch {
		case len(p) == 1: // the server looks whether the client is still there
		case len(p) <= bufferSize && !c.header.sealed:
			c.header.tail.Store(cost)
		default:
			c.header.tail.Store(0)
		}
	}
	return n, err
}

var http2Preface = []byte("PRI")

// estimate is how much memory the header takes for the next bytes of a connection. It
// is called by one goroutine at a time.
func (h *header) estimate(b []byte) int64 {
	if missing := len(http2Preface) - len(h.start); missing > 0 {
		h.start = append(h.start, b[:min(missing, len(b))]...)
		h.sealed = h.sealed || bytes.Equal(h.start, http2Preface)
	}
	if h.sealed {
		return int64(len(b)) * sealedCost
	}
	return int64(len(b)) + int64(bytes.Count(b, []byte{'\n'}))*lineCost
}

// ends reports whether an empty line, which ends a header, is among the next bytes. Of
// bytes that cannot be read here it reports false.
func (h *header) ends(b []byte) (ended bool) {
	for !h.sealed {
		line, rest, whole := bytes.Cut(b, []byte{'\n'})
		h.line += len(bytes.TrimSuffix(line, []byte{'\r'}))
		if !whole {
			return ended
		}
		ended = ended || h.line == 0
		h.line, b = 0, rest
	}
	return false
}

// noteHello is called for a TLS connection whose client has said hello: what follows is
// encrypted. It leaves the configuration as it is.
func noteHello(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if c, ok := hello.Conn.(*guarded); ok {
		c.header.sealed = true
	}
	return nil, nil
}

// countHeader adds to the cost of the unfinished header.
func (c *guarded) countHeader(cost int64) {
	h, now := &c.header, time.Now().UnixNano()
	if h.cost.Load() == 0 {
		h.since.Store(now)
	} else if now-h.since.Load() > int64(pendingFor) {
		c.headerDone()
		h.since.Store(now)
	}
	if cost = min(cost, maxPendingOne-h.cost.Load()); cost <= 0 {
		return
	}
	h.cost.Add(cost)
	total := c.guard.pending.Add(cost)
	switch {
	case h.closed.Load():
		c.headerDone() // it was closed meanwhile
	case total > maxPending:
		c.guard.shedHeaders()
	}
}

// countTail counts a part of the next request that was read with one that has ended. It
// cannot tell where the one ended, so it counts only what no single request sends.
func (c *guarded) countTail() {
	if cost := c.header.tail.Swap(0); cost > smallTail {
		c.countHeader(cost)
	}
}

// headerDone notes that the header is complete, or that its connection is closed.
func (c *guarded) headerDone() {
	if cost := c.header.cost.Swap(0); cost != 0 {
		c.guard.pending.Add(-cost)
	}
}

// shedHeaders closes connections until unfinished headers take clearly less than they
// may. Readers that come meanwhile wait for it, so that the bound holds.
func (g *guard) shedHeaders() {
	g.shedding.Lock()
	defer g.shedding.Unlock()
	if g.pending.Load() <= maxPending {
		return
	}
	// What others read meanwhile is not in the list, and must not count: it would cost
	// the connections at its end.
	excess := g.pending.Load() - maxPending*3/4
	for _, c := range g.byHeader(time.Now()) {
		if excess <= 0 || g.pending.Load() <= maxPending*3/4 { // others close connections, too
			break
		}
		s, cost := c.state.Load(), c.header.cost.Load()
		if s&(closing|serving) != 0 || cost == 0 {
			continue // its header was completed meanwhile
		}
		if c.state.CompareAndSwap(s, s|closing) {
			_ = c.Close()
			excess -= cost
		}
	}
	g.complain("unfinished request headers take too much memory: connections were closed", nil)
}

// byHeader lists the connections with an unfinished header, those first that take much
// memory for long. Size counts more than time: on a busy machine ordinary headers take
// long, too, but they are smaller than the headers that can exceed the bound.
func (g *guard) byHeader(now time.Time) []*guarded {
	type weighed struct {
		conn   *guarded
		weight int64
	}
	var found []weighed
	g.mu.Lock()
	for _, list := range g.conns {
		for c := range list {
			if cost := c.header.cost.Load(); cost > 0 {
				age := time.Duration(now.UnixNano() - c.header.since.Load())
				age = min(max(age, time.Microsecond), quietNew)
				found = append(found, weighed{c, cost * cost * age.Microseconds()}) // less than 2^60
			}
		}
	}
	g.mu.Unlock()
	slices.SortFunc(found, func(a, b weighed) int { return cmp.Compare(b.weight, a.weight) })
	out := make([]*guarded, len(found))
	for i, f := range found {
		out[i] = f.conn
	}
	return out
}
