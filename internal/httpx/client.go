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
// the connection. The HTTP server notices that in a goroutine of its own, a moment late,
// so the kernel is asked, too.
func ClientClosed(ctx context.Context) bool {
	x := exchangeOf(ctx)
	if x == nil || x.client == nil {
		return false
	}
	conn, ok := ctx.Value(connKey{}).(net.Conn)
	return x.client.Err() != nil || ok && finished(conn)
}

type connKey struct{}

// WithConn lets Received find the connection of a request. It is the ConnContext of a
// server whose connections are TCP.
func WithConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

const (
	// receivedWait is how long Received waits for a client that acknowledges nothing more.
	receivedWait = 5 * time.Second
	// Received looks often at first, then less often.
	receivedLook, receivedLookMost = 2 * time.Millisecond, 50 * time.Millisecond
)

// Received reports whether the client has taken what was written. It is for a client that
// closed its side of the connection before: a write to it succeeds whether or not someone
// reads, but only the kernel of one that still reads acknowledges what it gets. Without a
// connection that can be asked, the write that succeeded counts. A client on a slow link
// is waited for as long as it goes on taking, but not longer than most.
func Received(ctx context.Context, most time.Duration) bool {
	if x := exchangeOf(ctx); x != nil && x.request.ProtoMajor > 1 {
		return false // the stream was reset: there is no half-closed one
	}
	conn, ok := ctx.Value(connKey{}).(net.Conn)
	if !ok {
		return true
	}
	return awaitTaken(func() delivery { return acknowledged(conn) }, most, time.Now, time.Sleep)
}

// delivery is how far a peer has taken what was sent to it.
type delivery struct {
	acked uint64 // bytes that it has acknowledged
	taken bool   // all of them
	over  bool   // nothing more will change: all is taken, or the connection is closed
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
