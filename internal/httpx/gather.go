package httpx

import (
	"net/http"
	"strconv"
)

// gatherFrom is the size from which a body is announced: net/http buffers 4 KiB of the header and
// the body together, and no header of Parley has 2 KiB. If one did, the response would take two
// writes.
const gatherFrom = 2 << 10

// gather asks the connection to send the header of the response and a body of n bytes in one write.
// Each write costs a system call, and may wake the client once more. The body must follow at once
// and be complete, and the handler must not have changed its Content-Length since WriteHeader.
func (x *exchange) gather(n int) {
	r := x.request
	if r.ProtoMajor != 1 || r.TLS != nil || r.Method == http.MethodHead ||
		x.rec.status == http.StatusNoContent || x.rec.status == http.StatusNotModified {
		return // the connection sees other bytes, or no body
	}
	declared := x.rec.Header()["Content-Length"]
	if len(declared) != 1 {
		return
	}
	if size, err := strconv.Atoi(declared[0]); err != nil || size != n {
		return
	}
	if conn, ok := x.Context.Value(connKey{}).(interface{ Gather(body int) }); ok {
		conn.Gather(n)
	}
}
