package httpx

import (
	"net/http"
	"strconv"
)

// gatherFrom is the size of a body whose response net/http may send in more than one write: it
// buffers 4 KiB of the header and the body together.
const gatherFrom = 2 << 10

// gather asks the connection to send the header of the response and a body of n bytes in one write.
// Each write costs a system call, and may wake the client once more. The body must follow at once
// and be complete.
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
