package httpx

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Patient is a response writer for an answer in pieces that may be far apart. No
// time runs while there is nothing to send; for each piece the reader gets as long
// as one of server-sent events does. One goroutine at a time may use it.
type Patient struct {
	http.ResponseWriter
	rc      *http.ResponseController
	sending bool

	mu      sync.Mutex
	pieces  int           // that were sent
	another chan struct{} // closed with the next one
}

// NewPatient takes over the answer from the server's own write timeout.
func NewPatient(w http.ResponseWriter) *Patient {
	p := &Patient{ResponseWriter: w, rc: http.NewResponseController(w), another: make(chan struct{})}
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pieces++
	close(p.another)
	p.another = make(chan struct{})
}

// Sent waits until n pieces were sent, or until ctx ends. It may be called by another
// goroutine than the one that writes.
func (p *Patient) Sent(ctx context.Context, n int) {
	for {
		p.mu.Lock()
		pieces, another := p.pieces, p.another
		p.mu.Unlock()
		if pieces >= n {
			return
		}
		select {
		case <-another:
		case <-ctx.Done():
			return
		}
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
