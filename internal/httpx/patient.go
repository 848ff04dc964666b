package httpx

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Patient is a response writer for a response in pieces that may be far apart. There is no deadline
// while there is nothing to send; each piece has the same deadline as a server-sent event. It is
// not safe for concurrent use.
type Patient struct {
	http.ResponseWriter
	rc      *http.ResponseController
	sending bool

	mu      sync.Mutex
	pieces  int           // number of pieces sent
	another chan struct{} // closed when the next piece is sent
}

// NewPatient removes the server's write deadline from the response.
func NewPatient(w http.ResponseWriter) *Patient {
	p := &Patient{ResponseWriter: w, rc: http.NewResponseController(w), another: make(chan struct{})}
	_ = p.rc.SetWriteDeadline(time.Time{}) // connections without deadlines work too
	return p
}

// Write writes a piece, or a part of one.
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

// Sent waits until n pieces were sent or ctx ends. Unlike the other methods, it may be called from
// any goroutine.
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
