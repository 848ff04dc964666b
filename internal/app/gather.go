package app

import (
	"bytes"
	"net"
	"sync"
)

// gathering is the state of a response that is sent in one write. It needs no lock: writes of a
// response of HTTP/1 do not overlap, and other connections never announce a response.
type gathering struct {
	body int       // size of the body that follows the next header; 0: unknown
	held *heldPart // first part of the response, or nil
}

// heldPart is what net/http buffers of a response: its header and the start of its body.
type heldPart struct {
	b    [bufferSize]byte
	size int

	// Both parts, for the system call. They are here so that a response allocates neither.
	parts [2][]byte
	whole net.Buffers
}

var heldParts = sync.Pool{New: func() any { return new(heldPart) }}

// Gather announces a response with a body of that many bytes. Its first part is held until the
// second, and both are sent at once. Package httpx calls it, for HTTP/1 without TLS.
func (c *guarded) Gather(body int) { c.gathering.body = body }

// Write implements net.Conn.
func (c *guarded) Write(p []byte) (int, error) {
	switch r := &c.gathering; {
	case r.held != nil:
		return c.writeBoth(p)
	case r.body > 0 && r.hold(p):
		return len(p), nil
	default:
		return c.TCPConn.Write(p)
	}
}

// hold keeps the first part of the response. It returns false if p is the whole response, or no
// second part is certain to follow.
func (r *gathering) hold(p []byte) bool {
	body := r.body
	r.body = 0
	header := bytes.Index(p, endOfHeader)
	if header < 0 || len(p) > bufferSize || len(p) >= header+len(endOfHeader)+body {
		return false
	}
	r.held = heldParts.Get().(*heldPart)
	r.held.size = copy(r.held.b[:], p)
	return true
}

var endOfHeader = []byte("\r\n\r\n")

// writeBoth sends the part that was held and p.
func (c *guarded) writeBoth(p []byte) (int, error) {
	h := c.gathering.held
	c.gathering.held = nil
	h.parts = [2][]byte{h.b[:h.size], p}
	h.whole = h.parts[:]
	n, err := h.whole.WriteTo(c.TCPConn)
	h.parts, h.whole = [2][]byte{}, nil
	n = max(0, n-int64(h.size))
	heldParts.Put(h)
	return int(n), err
}
