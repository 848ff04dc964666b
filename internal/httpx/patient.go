package httpx

import (
	"net/http"
	"time"
)

// Patient is a response writer for an answer in pieces that may be far apart. No
// time runs while there is nothing to send; for each piece the reader gets as long
// as one of server-sent events does. One goroutine at a time may use it.
type Patient struct {
	http.ResponseWriter
	rc      *http.ResponseController
	sending bool
}

// NewPatient takes over the answer from the server's own write timeout.
func NewPatient(w http.ResponseWriter) *Patient {
	p := &Patient{ResponseWriter: w, rc: http.NewResponseController(w)}
	_ = p.rc.SetWriteDeadline(time.Time{}) // a connection that knows no deadlines is as good
	return p
}

// Write sends a piece, or a part of one.
func (p *Patient) Write(b []byte) (int, error) {
	p.begin()
	return p.ResponseWriter.Write(b)
}

// Flush ends a piece.
func (p *Patient) Flush() {
	p.begin()
	if p.rc.Flush() == nil {
		p.sending = false
		_ = p.rc.SetWriteDeadline(time.Time{})
	}
}

func (p *Patient) begin() {
	if !p.sending {
		p.sending = true
		_ = p.rc.SetWriteDeadline(time.Now().Add(sseDeadline))
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (p *Patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
