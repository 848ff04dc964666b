package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	pulseEvery = 500 * time.Millisecond
	// pulseTimeout is how long the database may take to respond to an empty statement.
	// Together with pulseEvery it limits how long a request can wait for a database that
	// does not respond.
	pulseTimeout = 3 * time.Second
)

// pulse notices that the database does not respond at all, for example because its machine is
// frozen or the network drops packets. Timeouts of statements cannot do that well, because a
// statement may take long. pulse pings on its own connection. If there is no response, it ends
// everything that waits for the database, and all statements fail at once until the database
// responds again. A database that refuses or closes connections needs no pulse: statements fail
// by themselves.
type pulse struct {
	connect func(context.Context) (*pgx.Conn, error)
	silent  func() // called while the database does not respond
	revived func() // called when the database responds again

	// beating ends when the database stops responding.
	beating atomic.Pointer[lifetime]
	stop    context.CancelFunc
	done    sync.WaitGroup
}

type lifetime struct {
	context.Context // a period, not a call
	end             context.CancelFunc
}

func newPulse(connect func(context.Context) (*pgx.Conn, error), silent, revived func()) *pulse {
	p := &pulse{connect: connect, silent: silent, revived: revived}
	p.revive()
	return p
}

func (p *pulse) revive() {
	ctx, cancel := context.WithCancel(context.Background())
	p.beating.Store(&lifetime{ctx, cancel})
}

// start starts the pulse, which takes over conn.
func (p *pulse) start(conn *pgx.Conn) {
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.done.Go(func() { p.run(ctx, conn) })
}

func (p *pulse) close() {
	p.stop()
	p.done.Wait()
	p.end()
}

// end ends everything that waits for the database.
func (p *pulse) end() {
	p.beating.Load().end()
	p.silent()
}

func (p *pulse) run(ctx context.Context, conn *pgx.Conn) {
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			if conn != nil {
				closeSoon(conn)
			}
			return
		case <-tick.C:
		}
		conn = p.beat(ctx, conn)
	}
}

// beat pings once. It returns the connection for the next ping, or nil for a new one.
func (p *pulse) beat(ctx context.Context, conn *pgx.Conn) *pgx.Conn {
	limited, cancel := context.WithTimeout(ctx, pulseTimeout)
	defer cancel()
	var err error
	if conn != nil {
		err = conn.Ping(limited)
	}
	if conn == nil || err != nil && limited.Err() == nil { // closed, for example by a restart
		if conn != nil {
			closeSoon(conn)
		}
		conn, err = p.connect(limited)
	}
	responds := err == nil || limited.Err() == nil && !timedOut(err)
	switch now := p.beating.Load(); {
	case ctx.Err() != nil:
	case !responds:
		p.end()
	case now.Err() != nil:
		p.revive()
		p.revived()
	}
	if err != nil && conn != nil {
		closeSoon(conn)
		conn = nil
	}
	return conn
}

// timedOut reports whether a connection attempt timed out at any host. The error of another
// host may come first.
func timedOut(err error) bool {
	return pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded)
}

// errSilent is the error of all calls while the database does not respond.
func errSilent() error { return unavailable(nil, faultSilent) }

// bind returns a context that ends with ctx, after timeout (0 means no limit), or when the
// database stops responding.
func (p *pulse) bind(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc, error) {
	now := p.beating.Load()
	if now.Err() != nil {
		return nil, nil, errSilent()
	}
	var cancel context.CancelFunc
	if timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, timeout)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	stop := context.AfterFunc(now, cancel)
	return ctx, func() {
		stop()
		cancel()
	}, nil
}

// blame returns the error for the caller. If limited, which bind derived from ctx, has ended
// and ctx has not, the store is at fault.
func blame(err error, ctx, limited context.Context) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(limited.Err(), context.Canceled):
		return unavailable(err, faultSilent)
	}
	return translate(err)
}

// closeSoon closes a connection without waiting for a server that does not respond.
func closeSoon(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = c.Close(ctx)
}
