package httpx

import (
	"net/http"
	"strconv"
	"time"
)

// sseDeadline is how long a reader may take to accept what is sent to it. One
// that stalls longer loses its stream, and costs nobody else anything meanwhile.
const sseDeadline = 30 * time.Second

// SSE writes server-sent events. It holds nothing but the connection: what is
// written is buffered by net/http until Flush. The server's own write timeout
// would end a stream that lives longer, so every write sets a deadline of its own.
type SSE struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	dirty bool // something waits for a flush
}

// NewSSE starts the answer.
func NewSSE(w http.ResponseWriter) *SSE {
	h := w.Header()
	h["Content-Type"] = []string{"text/event-stream"}
	h["Cache-Control"] = noStore
	h["X-Accel-Buffering"] = []string{"no"} // or nginx would hold events back
	w.WriteHeader(http.StatusOK)
	s := &SSE{w: w, rc: http.NewResponseController(w), dirty: true}
	s.extend()
	return s
}

// Event writes one event. The data, of one or more pieces, must be one line, as JSON
// without white space is.
func (s *SSE) Event(id int64, data ...[]byte) error {
	var head [40]byte
	b := strconv.AppendInt(append(head[:0], "id: "...), id, 10)
	if err := s.write(append(b, "\ndata: "...)); err != nil {
		return err
	}
	for _, piece := range data {
		if err := s.write(piece); err != nil {
			return err
		}
	}
	return s.write(blank)
}

// Data writes an event without an id: one that no stream can be resumed behind.
func (s *SSE) Data(data []byte) error {
	if err := s.write([]byte("data: ")); err != nil {
		return err
	}
	if err := s.write(data); err != nil {
		return err
	}
	return s.write(blank)
}

var blank = []byte("\n\n")

// Comment writes a line that clients ignore; it keeps proxies from giving up.
func (s *SSE) Comment() error { return s.write([]byte(":\n\n")) }

// Retry tells the client how long to wait before it comes again.
func (s *SSE) Retry(after time.Duration) error {
	return s.write(append(strconv.AppendInt([]byte("retry: "), after.Milliseconds(), 10), "\n\n"...))
}

func (s *SSE) write(p []byte) error {
	if !s.dirty {
		s.extend()
	}
	s.dirty = true
	_, err := s.w.Write(p)
	return err
}

// extend gives the reader its time. A connection that knows no deadlines, as in a
// test without a network, is as good.
func (s *SSE) extend() { _ = s.rc.SetWriteDeadline(time.Now().Add(sseDeadline)) }

// Flush sends what was written.
func (s *SSE) Flush() error {
	if !s.dirty {
		return nil
	}
	s.dirty = false
	return s.rc.Flush()
}

// AllowWait lets an answer come later than the server's write timeout allows; it
// is for handlers that wait for something on purpose.
func AllowWait(w http.ResponseWriter, wait time.Duration) {
	if wait > shortWait {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + sseDeadline))
	}
}

// shortWait is what the write timeout of any sensible server allows.
const shortWait = 20 * time.Second
