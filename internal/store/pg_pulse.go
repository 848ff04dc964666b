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
	// pulseTimeout is how long the database may take to answer a statement that does
	// nothing. With pulseEvery it bounds how long a request can wait for a database
	// that does not respond.
	pulseTimeout = 3 * time.Second
)

// pulse notices that the database does not respond at all: a frozen machine, a
// network that drops packets. No deadline of a statement can do that well, since a
// statement may take long. It asks on a connection of its own. When no answer comes,
// it ends whatever waits for the database, and everything fails at once until an
// answer comes. A database that refuses connections or closes them needs no pulse:
// statements fail by themselves.
type pulse struct {
	connect func(context.Context) (*pgx.Conn, error)
	silent  func() // is called while no answers come
	revived func() // is called when answers come again

	// beating ends when the database stops to respond.
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

// start takes over conn.
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

// end ends whatever waits for the database.
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

// beat asks once. It returns the connection to ask on next; nil: a new one.
func (p *pulse) beat(ctx context.Context, conn *pgx.Conn) *pgx.Conn {
	limited, cancel := context.WithTimeout(ctx, pulseTimeout)
	defer cancel()
	var err error
	if conn != nil {
		err = conn.Ping(limited)
	}
	if conn == nil || err != nil && limited.Err() == nil { // closed, as by a restart
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

// timedOut reports whether a connection attempt ran out of time at any host. The
// error of another host may come first.
func timedOut(err error) bool {
	return pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded)
}

// errSilent is what everything fails with while the database does not respond.
func errSilent() error { return unavailable(nil, faultSilent) }

// bind returns a context that ends with ctx, after timeout (0: no limit), and when
// the database stops to respond.
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

// blame says what err means. If limited, which bind made of ctx, has ended and ctx
// has not, the fault is the store's.
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
