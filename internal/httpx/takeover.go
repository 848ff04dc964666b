package httpx

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A stream is open for hours and sends little. In the goroutine of its connection it would keep the
// buffers and the stacks of net/http, some 30 KiB. So a stream over HTTP/1.1 takes over the
// connection and runs in a goroutine of its own.

// Stream runs the response to a request that sends events far apart, with NewSSE. run must not use
// the body of the request. Over HTTP/1.1, Stream may return before the response ends; nothing may be
// done for the request afterwards.
func (rt *Router) Stream(r *http.Request, run func()) {
	x := exchangeOf(r.Context())
	if x == nil || !x.canTakeOver() || !rt.streams.add(x) {
		run()
		return
	}
	// The context of net/http ends with its handler.
	x.Context = streamContext{Context: rt.streams.over, values: x.Context}
	handled := make(chan any, 1) // the value of a panic, or nil
	x.rec.takeOver = func() *takenConn {
		c := rt.takeOver(x, r)
		if c != nil {
			handled <- nil
		}
		return c
	}
	go func() {
		defer func() {
			defer rt.streams.remove(x)
			x.rec.takeOver = nil
			p := recover()
			if x.taken == nil {
				handled <- p
				return
			}
			rt.endTaken(x, r, p)
		}()
		run()
	}()
	if p := <-handled; p != nil {
		panic(p)
	}
}

// Aside runs f in another goroutine and waits for it. A stream calls it for what needs a deep stack
// now and then, so that its own stays small.
func Aside(f func()) {
	over := make(chan any, 1)
	go func() {
		defer func() { over <- recover() }()
		f()
	}()
	if p := <-over; p != nil {
		panic(p)
	}
}

// canTakeOver reports whether the response can be a stream on the connection itself.
func (x *exchange) canTakeOver() bool {
	_, ok := x.rec.ResponseWriter.(http.Hijacker)
	return ok && x.router != nil && x.request.ProtoMajor == 1 && x.request.ProtoMinor > 0 &&
		x.request.Method != http.MethodHead
}

// takeOver takes the connection from net/http and writes the header of the response. It returns nil
// if that is not possible.
func (rt *Router) takeOver(x *exchange, r *http.Request) *takenConn {
	x.rec.takeOver = nil
	head := headOf(x.rec.Header(), rt.now())
	conn, _, err := x.rec.ResponseWriter.(http.Hijacker).Hijack()
	if err != nil {
		return nil
	}
	c := &takenConn{conn: conn}
	if k, ok := c.socket().(interface{ Keep() }); ok {
		k.Keep()
	}
	// Release what refers to the buffers of net/http.
	rt.streams.take(x, c)
	x.rec.ResponseWriter = c
	r.Body, x.body, x.request = http.NoBody, nil, r
	_ = conn.SetWriteDeadline(time.Now().Add(sseDeadline))
	_, c.err = conn.Write(head)
	return c
}

// headOf encodes the status and the header of a stream.
func headOf(h http.Header, now time.Time) []byte {
	var b buffer
	b = append(b, "HTTP/1.1 200 OK\r\n"...)
	_ = h.WriteSubset(&b, map[string]bool{"Content-Length": true, "Connection": true, "Transfer-Encoding": true})
	b = append(b, "Date: "...)
	b = now.UTC().AppendFormat(b, http.TimeFormat)
	return append(b, "\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"...)
}

// buffer is a slice to write to.
type buffer []byte

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// endTaken ends a stream that has taken over its connection. p is the value of a panic.
func (rt *Router) endTaken(x *exchange, r *http.Request, p any) {
	if p != nil {
		_ = rt.survive(x, r, p) // the stream has begun, so there is nothing to respond
	}
	x.taken.end(p == nil)
	rt.end(x, r)
}

// takenConn is the connection of a stream, as a response writer. It has a buffer only between a
// write and the next flush. A stream uses it from one goroutine.
type takenConn struct {
	conn net.Conn
	buf  *[]byte // nil: nothing to send
	err  error   // of the first failed write
}

// A chunk begins with its length in up to eight digits, for which the buffer has room.
const (
	chunkHead = 10
	chunkSize = 4 << 10
)

var chunks = sync.Pool{New: func() any {
	b := make([]byte, chunkHead, chunkHead+chunkSize+2)
	return &b
}}

// Header implements http.ResponseWriter. The header was sent.
func (c *takenConn) Header() http.Header { return http.Header{} }

// WriteHeader implements http.ResponseWriter.
func (c *takenConn) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (c *takenConn) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && c.err == nil {
		if c.buf == nil {
			c.buf = chunks.Get().(*[]byte)
		}
		k := min(len(p), chunkHead+chunkSize-len(*c.buf))
		*c.buf = append(*c.buf, p[:k]...)
		if p = p[k:]; len(p) > 0 {
			_ = c.FlushError()
		}
	}
	return n - len(p), c.err
}

// FlushError implements flushing for http.ResponseController.
func (c *takenConn) FlushError() error {
	if c.buf == nil {
		return c.err
	}
	b := *c.buf
	var digits [8]byte
	size := strconv.AppendInt(digits[:0], int64(len(b)-chunkHead), 16)
	start := chunkHead - len(size) - 2
	copy(b[start:], size)
	copy(b[chunkHead-2:], "\r\n")
	b = append(b, "\r\n"...)
	if c.err == nil {
		_, c.err = c.conn.Write(b[start:])
	}
	*c.buf = b[:chunkHead]
	chunks.Put(c.buf)
	c.buf = nil
	return c.err
}

// SetWriteDeadline implements deadlines for http.ResponseController.
func (c *takenConn) SetWriteDeadline(t time.Time) error { return c.conn.SetWriteDeadline(t) }

// errClientGone ends a stream whose client has closed the connection.
var errClientGone = errors.New("the client has closed the connection")

// alive returns an error if the client has closed the connection. Nothing reads from it, so the
// kernel is asked. Where that is not possible, a later write fails.
func (c *takenConn) alive() error {
	if c.err == nil && finished(c.socket()) {
		c.err = errClientGone
	}
	return c.err
}

// socket returns the connection below TLS.
func (c *takenConn) socket() net.Conn {
	if t, ok := c.conn.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return c.conn
}

// end closes the connection. The last chunk of a complete response is empty.
func (c *takenConn) end(complete bool) {
	if _ = c.FlushError(); complete && c.err == nil {
		_ = c.conn.SetWriteDeadline(time.Now().Add(sseDeadline))
		_, _ = c.conn.Write([]byte("0\r\n\r\n"))
	}
	_ = c.conn.Close()
}

// streams are those that take over their connections, from before they do: the HTTP server does not
// know them afterwards.
type streams struct {
	over   context.Context // ends when they are cut off
	cut    context.CancelFunc
	mu     sync.Mutex
	open   map[*exchange]struct{}
	closed bool
	empty  chan struct{} // closed when there are none and no more begin
}

func newStreams() *streams {
	over, cut := context.WithCancel(context.Background())
	return &streams{over: over, cut: cut, open: map[*exchange]struct{}{}, empty: make(chan struct{})}
}

// add adds a stream. It returns false after CloseStreams.
func (s *streams) add(x *exchange) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.open[x] = struct{}{}
	return true
}

// take records that a stream has taken over its connection.
func (s *streams) take(x *exchange, c *takenConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.taken = c
	if s.over.Err() != nil {
		_ = c.conn.Close()
	}
}

func (s *streams) remove(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, x)
	s.checkEmpty()
}

func (s *streams) checkEmpty() {
	if s.closed && len(s.open) == 0 {
		select {
		case <-s.empty:
		default:
			close(s.empty)
		}
	}
}

// CloseStreams waits until the streams have ended, and cuts them off when ctx ends. Call it after
// the HTTP server has stopped, and before the store is closed. An error means that some were cut
// off.
func (rt *Router) CloseStreams(ctx context.Context) error {
	s := rt.streams
	s.mu.Lock()
	s.closed = true
	s.checkEmpty()
	s.mu.Unlock()
	select {
	case <-s.empty:
		return nil
	case <-ctx.Done():
	}
	s.cut()
	s.mu.Lock()
	for x := range s.open {
		if x.taken != nil {
			_ = x.taken.socket().Close() // a write may wait for the client, and so may the end of TLS
		}
	}
	s.mu.Unlock()
	<-s.empty
	return ctx.Err()
}

// streamContext is the context of a stream: it ends with those of all streams, and has the values of
// its request.
type streamContext struct {
	context.Context
	values context.Context
}

// Value returns the values of both contexts. Those of the first one let package context link
// derived contexts without a goroutine.
func (c streamContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}
