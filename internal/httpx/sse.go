package httpx

import (
	"net/http"
	"strconv"
	"time"
)

// sseDeadline is how long a reader may take to accept what is sent to it. A reader that stalls
// longer loses its stream.
const sseDeadline = 30 * time.Second

// SSE writes server-sent events. It holds only the connection, which buffers what is written until
// Flush. The server's write timeout would end a longer stream, so every write sets its own
// deadline.
type SSE struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	conn  *takenConn // nil: net/http has the connection
	dirty bool       // something is not flushed yet
}

// NewSSE starts the response.
func NewSSE(w http.ResponseWriter) *SSE {
	h := w.Header()
	h["Content-Type"] = []string{"text/event-stream"}
	h["Cache-Control"] = noStore
	h["X-Accel-Buffering"] = []string{"no"} // or nginx would buffer events
	s := &SSE{w: w, dirty: true}
	if rec, ok := w.(*recorder); ok && rec.takeOver != nil {
		s.conn = rec.takeOver()
	}
	w.WriteHeader(http.StatusOK)
	s.rc = http.NewResponseController(w)
	s.extend()
	return s
}

// Event writes one event. The data, in one or more pieces, must be one line, such as JSON without
// white space.
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

// Named writes an event with a type. The name must be one line, like the data.
func (s *SSE) Named(id int64, name string, data ...[]byte) error {
	var head [100]byte
	b := strconv.AppendInt(append(head[:0], "id: "...), id, 10)
	b = append(append(b, "\nevent: "...), name...)
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

// Unnumbered writes an event with a type and without an id: the position of the client stays.
func (s *SSE) Unnumbered(name string, data []byte) error {
	for _, piece := range [][]byte{[]byte("event: " + name + "\ndata: "), data, blank} {
		if err := s.write(piece); err != nil {
			return err
		}
	}
	return nil
}

// Position writes an id without an event: clients dispatch nothing, but send the id when they
// reconnect. Like a comment, it keeps an idle stream open.
func (s *SSE) Position(id int64) error {
	var head [40]byte
	return s.write(append(strconv.AppendInt(append(head[:0], ":\nid: "...), id, 10), blank...))
}

// Data writes an event without an id, after which no stream can be resumed.
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

// Comment writes a line that clients ignore. It keeps proxies from closing an idle stream.
func (s *SSE) Comment() error { return s.write([]byte(":\n\n")) }

// Retry tells the client how long to wait before it reconnects.
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

// extend sets the write deadline. Connections without deadlines, as in tests, work too.
func (s *SSE) extend() { _ = s.rc.SetWriteDeadline(time.Now().Add(sseDeadline)) }

// Flush sends what was written. If there is nothing, it returns an error if the client is gone.
func (s *SSE) Flush() error {
	if !s.dirty {
		if s.conn != nil {
			return s.conn.alive()
		}
		return nil
	}
	s.dirty = false
	return s.rc.Flush()
}

// AllowWait extends the server's write timeout, for handlers that wait on purpose.
func AllowWait(w http.ResponseWriter, wait time.Duration) {
	if wait > shortWait {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + sseDeadline))
	}
}

// shortWait is within the write timeout of any sensible server.
const shortWait = 20 * time.Second
