package httpx

import (
	"context"
	"net"
	"time"
)

// detach lets a worker's request continue after its client has closed its side of the connection. A
// client that has only finished sending (a half-close) looks like one that is gone, but still waits
// for its response. The report of a client that is gone must still be stored as a whole.
func (x *exchange) detach() {
	x.client, x.Context = x.Context, context.WithoutCancel(x.Context)
}

// ClientClosed reports whether the client of a worker's request has closed its side of the
// connection. The HTTP server notices that in another goroutine, a moment late, so the kernel is
// asked too.
func ClientClosed(ctx context.Context) bool {
	x := exchangeOf(ctx)
	if x == nil || x.client == nil {
		return false
	}
	conn, ok := ctx.Value(connKey{}).(net.Conn)
	return x.client.Err() != nil || ok && finished(conn)
}

type connKey struct{}

// WithConn lets this package find the connection of a request. Use it as the ConnContext of a server
// with TCP connections. A connection may also have two methods: Gather(body int) announces a
// response of HTTP/1 without TLS whose body of that size follows at once, and Keep() a stream that
// takes over the connection.
func WithConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

const (
	// receivedWait is how long Received waits for a client that acknowledges no more bytes.
	receivedWait = 5 * time.Second
	// Received polls with these intervals, from the first to the second.
	receivedLook, receivedLookMost = 2 * time.Millisecond, 50 * time.Millisecond
)

// Received reports whether the client has received what was written. It is for a client that closed
// its side of the connection: a write to it succeeds whether or not it still reads, but only the
// kernel of a client that reads acknowledges the bytes. If the connection cannot be inspected, a
// successful write counts. Received waits for a slow client as long as it makes progress, but no
// longer than most.
func Received(ctx context.Context, most time.Duration) bool {
	if x := exchangeOf(ctx); x != nil && x.request.ProtoMajor > 1 {
		return false // the stream was reset; HTTP/2 has no half-closed clients here
	}
	conn, ok := ctx.Value(connKey{}).(net.Conn)
	if !ok {
		return true
	}
	return awaitTaken(func() delivery { return acknowledged(conn) }, most, time.Now, time.Sleep)
}

// delivery is how much of the sent data a peer has acknowledged.
type delivery struct {
	acked uint64 // bytes that it has acknowledged
	taken bool   // all bytes are acknowledged
	over  bool   // final: all is acknowledged, or the connection is closed
}

func awaitTaken(look func() delivery, most time.Duration, now func() time.Time, sleep func(time.Duration)) bool {
	start := now()
	progress, acked := start, uint64(0)
	for pause := receivedLook; ; pause = min(2*pause, receivedLookMost) {
		d, at := look(), now()
		if d.acked > acked {
			progress, acked = at, d.acked
		}
		if d.over || at.Sub(progress) >= receivedWait || at.Sub(start) >= most {
			return d.taken
		}
		sleep(pause)
	}
}
