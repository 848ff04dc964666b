package store

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connPool is a pool of connections. Callers wait for a token instead of waiting in the pool,
// which would need a context for each caller that combines its context, the deadline and the
// pulse.
type connPool struct {
	*pgxpool.Pool
	tokens chan struct{}
	waits  atomic.Int64 // for the metrics
}

func newConnPool(p *pgxpool.Pool) *connPool {
	return &connPool{Pool: p, tokens: make(chan struct{}, p.Config().MaxConns)}
}

// turn is the context of all callers that began to wait for a connection at about the same
// time. It ends when they have waited for long enough or the database stops responding.
type turn struct {
	context.Context // a period, not a call
	end             context.CancelFunc
	beating         *lifetime
	over            time.Time // when the next one begins
}

// turnsOf is the number of turns in the time that a caller may wait.
const turnsOf = 8

// turn returns the context to wait with.
func (e *pg) turn() (*turn, error) {
	beating := e.pulse.beating.Load()
	if beating.Err() != nil {
		return nil, errSilent()
	}
	t, now := e.turns.Load(), time.Now()
	if t != nil && t.beating == beating && now.Before(t.over) {
		return t, nil
	}
	length := e.limits.acquire / turnsOf
	next := &turn{beating: beating, over: now.Add(length)}
	next.Context, next.end = context.WithDeadline(beating, now.Add(length+e.limits.acquire))
	if !e.turns.CompareAndSwap(t, next) {
		next.end() // another caller has started one
		return e.turn()
	}
	return next, nil
}

// fault returns why the wait has ended without a connection.
func (t *turn) fault(err error) error {
	switch {
	case t.beating.Err() != nil:
		return unavailable(err, faultSilent)
	case t.Err() != nil:
		return unavailable(err, faultBusy)
	}
	return unavailable(err, faultUnreachable)
}

// wait puts a token into tokens, whose capacity is the number of tokens.
func (t *turn) wait(ctx context.Context, tokens chan<- struct{}, waits *atomic.Int64) error {
	select {
	case tokens <- struct{}{}:
		return nil
	default:
	}
	if waits != nil {
		waits.Add(1)
	}
	select {
	case tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.Done():
		return t.fault(t.Err())
	}
}

// held is a connection in use.
type held struct {
	*pgxpool.Conn
	pool  *connPool
	leash *leash
}

// acquire takes a connection from a pool. The connection can be used until the given time.
func (e *pg) acquire(ctx context.Context, pool *connPool, until time.Time) (held, error) {
	t, err := e.turn()
	if err != nil {
		return held{}, err
	}
	if err := t.wait(ctx, pool.tokens, &pool.waits); err != nil {
		return held{}, err
	}
	conn, err := pool.Acquire(t)
	if err != nil {
		<-pool.tokens
		return held{}, t.fault(err)
	}
	h := held{conn, pool, leashOf(conn.Conn())}
	h.leash.hold(until)
	if t.beating.Err() != nil { // the pulse may have stopped before the leash was held
		h.release()
		return held{}, errSilent()
	}
	return h, nil
}

// release returns the connection. Further calls do nothing.
func (h *held) release() {
	if h.pool == nil {
		return
	}
	h.leash.drop(h.Conn.Conn().IsClosed())
	h.Conn.Release()
	<-h.pool.tokens
	h.pool = nil
}

// blame returns the error for the caller whose statement failed with err on the connection.
func (h *held) blame(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if fault := h.leash.pulled(); fault != "" {
		return unavailable(err, fault)
	}
	return translate(err)
}

// read runs a query on any connection of a pool.
func (e *pg) read(ctx context.Context, pool *connPool, limit time.Duration, sql string, args []any) (rows, error) {
	if err := e.fence.err(); err != nil {
		return nil, err
	}
	h, err := e.acquire(ctx, pool, time.Now().Add(limit))
	if err != nil {
		return nil, err
	}
	rs, err := h.Query(ctx, sql, args...)
	if err != nil {
		err = h.blame(ctx, err)
		h.release()
		return nil, err
	}
	return &pgRows{rs, h, ctx}, nil
}

// pgRows are rows together with their connection.
type pgRows struct {
	pgx.Rows
	held held
	ctx  context.Context // lives as long as the rows
}

// Err implements rows.
func (r *pgRows) Err() error {
	err := r.Rows.Err()
	if err == nil {
		return nil
	}
	return r.held.blame(r.ctx, err)
}

// Close implements rows.
func (r *pgRows) Close() {
	r.Rows.Close()
	r.held.release()
}

// slowReads reads on the connections for slow reads.
type slowReads struct{ eng *pg }

func (s slowReads) query(ctx context.Context, sql string, args ...any) (rows, error) {
	return s.eng.read(ctx, s.eng.slowPool, s.eng.slowLimit, sql, args)
}
