package httpx

import (
	"context"
	"net"
	"time"
)

// detach lets the request go on when its client closes its side of the connection, which
// is for the requests of workers. A client that has only finished sending (a half-close)
// looks like one that is gone, and is not: it waits for its response. One that is gone
// may have had its report stored, and must find it stored whole.
func (x *exchange) detach() {
	x.client, x.Context = x.Context, context.WithoutCancel(x.Context)
}

// ClientClosed reports whether the client of a worker's request has closed its side of
// the connection.
func ClientClosed(ctx context.Context) bool {
	x := exchangeOf(ctx)
	return x != nil && x.client != nil && x.client.Err() != nil
}

type connKey struct{}

// WithConn lets Received find the connection of a request. It is the ConnContext of a
// server whose connections are TCP.
func WithConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// How long Received waits for the client's acknowledgment, and how often it looks.
const (
	receivedWait = 5 * time.Second
	receivedLook = 2 * time.Millisecond
)

// Received reports whether the client has taken what was written. It is for a client that
// closed its side of the connection before: a write to it succeeds whether or not someone
// reads, but only the kernel of one that still reads acknowledges what it gets. Without a
// connection that can be asked, the write that succeeded counts.
func Received(ctx context.Context) bool {
	if x := exchangeOf(ctx); x != nil && x.request.ProtoMajor > 1 {
		return false // the stream was reset: there is no half-closed one
	}
	conn, ok := ctx.Value(connKey{}).(net.Conn)
	if !ok {
		return true
	}
	for deadline := time.Now().Add(receivedWait); ; time.Sleep(receivedLook) {
		taken, over := acknowledged(conn)
		if over || time.Now().After(deadline) {
			return taken
		}
	}
}
