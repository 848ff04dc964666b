package app

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"slices"
	"sync/atomic"
	"time"
)

// The memory of incomplete request headers is bounded for the whole process. At that point no
// credentials are known, and an IP address does not identify a client: behind a proxy all
// clients have the same one. So the bound is in bytes. When it is exceeded, the connections
// are closed that hold the most memory for the longest time. The header of an ordinary request
// is small and complete within milliseconds.
//
// While a connection serves a request, the bytes that it sends are not counted, because they
// cannot be told from the bodies of its streams. So an HTTP/2 client with an open stream can
// hold one more incomplete header (CONTINUATION), which net/http bounds: one block at a time,
// of maxHeaderBytes with 32 bytes for each field, or about 150 KiB of memory. It can hold it
// for pingAfter plus pingTimeout, because a client cannot reply to a ping before the block
// ends. The limits on requests and streams bound the number of such connections.
const (
	// maxPending is the estimated memory that incomplete headers may take.
	maxPending = 32 << 20
	// maxPendingOne is the maximum that is counted for one connection. The server refuses
	// larger headers.
	maxPendingOne = 1 << 20
	// lineCost is the memory that a header line takes in addition to its bytes.
	lineCost = 128
	// sealedCost is the memory per byte of a header that is encrypted or compressed: an
	// HTTP/2 client can send a known field in one byte.
	sealedCost = 64
	// pendingFor is how long bytes are counted. HTTP/2 connections also send bytes that
	// belong to no header. A header that takes longer is refused.
	pendingFor = time.Minute
	// bufferSize is the size of the server's reads. A read may contain the end of one
	// request and the start of the next.
	bufferSize = 4 << 10
	// smallTail is the cost of such a start that is not counted.
	smallTail = 16 << 10
)

// header describes the incomplete header of the next request of a connection.
type header struct {
	cost   atomic.Int64 // estimated memory
	since  atomic.Int64 // when its first bytes were read, in ns
	read   atomic.Int64 // when its latest bytes were read, in ns
	tail   atomic.Int64 // cost of the latest bytes, if the next request may start in them
	whole  atomic.Bool  // the header is complete, and the request waits to be served
	closed atomic.Bool  // the connection is closed and no longer counted

	start  []byte // first bytes of the connection, until the protocol is known
	line   int    // length of the latest line so far
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
		case len(p) == 1: // the server checks whether the client is still connected
		case len(p) <= bufferSize && !c.header.sealed:
			c.header.tail.Store(cost)
		default:
			c.header.tail.Store(0)
		}
	}
	return n, err
}

var http2Preface = []byte("PRI")

// estimate returns the estimated memory for the next bytes of a connection. It must not be
// called concurrently.
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

// ends reports whether the next bytes contain an empty line, which ends a header. For
// encrypted or compressed bytes it returns false.
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

// noteHello marks the bytes of a TLS connection as encrypted from the ClientHello on. It does
// not change the configuration.
func noteHello(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if c, ok := hello.Conn.(*guarded); ok {
		c.header.sealed = true
	}
	return nil, nil
}

// countHeader adds to the cost of the incomplete header.
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
		c.headerDone() // closed during the read
	case total > maxPending:
		c.guard.shedHeaders()
	}
}

// countTail counts the start of the next request that was read together with the previous
// one. It is not known where that one ended, so only a cost above smallTail is counted.
func (c *guarded) countTail() {
	if cost := c.header.tail.Swap(0); cost > smallTail {
		c.countHeader(cost)
	}
}

// headerDone stops counting the header, because it is complete or its connection is closed.
func (c *guarded) headerDone() {
	if cost := c.header.cost.Swap(0); cost != 0 {
		c.guard.pending.Add(-cost)
	}
}

// shedHeaders closes connections until incomplete headers take three quarters of maxPending.
// Concurrent readers wait for it, so that the bound holds.
func (g *guard) shedHeaders() {
	g.shedding.Lock()
	defer g.shedding.Unlock()
	if g.pending.Load() <= maxPending {
		return
	}
	// Bytes that others read from now on are not in the list, so they must not cause further
	// connections of the list to be closed.
	excess := g.pending.Load() - maxPending*3/4
	for _, c := range g.byHeader(time.Now()) {
		if excess <= 0 || g.pending.Load() <= maxPending*3/4 { // others close connections, too
			break
		}
		s, cost := c.state.Load(), c.header.cost.Load()
		if s&(closing|serving) != 0 || cost == 0 {
			continue // the header is complete now
		}
		if c.state.CompareAndSwap(s, s|closing) {
			_ = c.Close()
			excess -= cost
		}
	}
	g.complain("incomplete request headers take too much memory: connections were closed", nil)
}

// byHeader lists the connections with an incomplete header, in the order in which to close
// them: by memory and age. Memory has more weight than age: on a busy machine ordinary headers
// take long, too, but they are small.
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
