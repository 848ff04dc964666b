package demo

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Paths of the receiver: one that accepts, and one whose owner is gone.
const (
	hookPath = "/hooks/decisions"
	gonePath = "/hooks/status-page"
)

const (
	maxDelivery     = 1 << 20 // bytes
	receiverTimeout = 10 * time.Second
	busyEvery       = 5 // of so many deliveries, one is refused for now
)

// Receiver is the other end of the webhooks of the company. It listens on this machine only.
type Receiver struct {
	listener net.Listener
	server   *http.Server
	count    atomic.Int64
}

// NewReceiver listens on a free port.
func NewReceiver(ctx context.Context) (*Receiver, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Receiver{listener: l}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+hookPath, r.accept)
	mux.HandleFunc("POST "+hookPath+"/", r.accept)
	mux.HandleFunc("POST "+gonePath, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the status page has moved to the archive", http.StatusGone)
	})
	r.server = &http.Server{
		Handler: http.MaxBytesHandler(mux, maxDelivery), ReadTimeout: receiverTimeout, WriteTimeout: receiverTimeout,
	}
	return r, nil
}

// Address returns the host and port of the receiver.
func (r *Receiver) Address() string { return r.listener.Addr().String() }

// Serve serves until Close.
func (r *Receiver) Serve() { _ = r.server.Serve(r.listener) }

// Close ends Serve, and closes the listener if Serve was never called.
func (r *Receiver) Close() {
	_ = r.server.Close()
	_ = r.listener.Close()
}

// accept accepts a delivery, as slowly as a real receiver. Now and then it is too busy, so that the
// log shows a retry.
func (r *Receiver) accept(w http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body)
	n := r.count.Add(1)
	time.Sleep(time.Duration(20+n*13%40) * time.Millisecond)
	if n%busyEvery == 2 {
		http.Error(w, "the planning board is restarting; try again", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, `{"card":"updated"}`)
}
