package store

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// acquireWrite takes a connection for a write; releaseWrite gives it back.
func (e *pg) acquireWrite(ctx context.Context, until time.Time) (held, error) {
	t, err := e.turn()
	if err != nil {
		return held{}, err
	}
	if err := t.wait(ctx, e.writes, nil); err != nil {
		return held{}, err
	}
	h, err := e.acquire(ctx, e.pool, until)
	if err != nil {
		<-e.writes
	}
	return h, err
}

func (e *pg) releaseWrite(h *held) {
	h.release()
	<-e.writes
}

// write runs fn in a transaction of its own. When it lost a race against another
// transaction it is run again. It goes on when its caller goes away.
func (e *pg) write(ctx context.Context, fn func(*tx) error) error {
	if err := e.fence.err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	start := time.Now()
	until := start.Add(writeTimeout)
	for try := 1; ; try++ {
		err := e.writeOnce(ctx, until, shortLockWait, fn)
		if isCode(err, "55P03") {
			err = e.writePatiently(ctx, until, start.Add(e.limits.lock), fn)
		}
		if try == maxTries || !retryable(err) || time.Now().After(until) {
			return translate(err)
		}
		time.Sleep(time.Duration(rand.IntN(try*2000)) * time.Microsecond) //nolint:gosec // jitter
	}
}

// writePatiently waits for a lock until the deadline, when it is its turn.
func (e *pg) writePatiently(ctx context.Context, until, deadline time.Time, fn func(*tx) error) error {
	beating := e.pulse.beating.Load()
	limited, cancel := context.WithDeadline(beating, deadline)
	defer cancel()
	select {
	case e.patience <- struct{}{}:
		defer func() { <-e.patience }()
	case <-limited.Done():
		if beating.Err() != nil {
			return errSilent()
		}
		return unavailable(limited.Err(), faultLocked)
	}
	wait := time.Until(deadline)
	if wait < time.Millisecond { // 0 would mean for ever
		return unavailable(context.DeadlineExceeded, faultLocked)
	}
	// The server's limit is the shorter one, so the connection is kept.
	return e.writeOnce(ctx, until, wait, fn)
}

func (e *pg) writeOnce(ctx context.Context, until time.Time, lockWait time.Duration, fn func(*tx) error) error {
	h, err := e.acquireWrite(ctx, until)
	if err != nil {
		return err
	}
	defer e.releaseWrite(&h)
	conn := h.Conn.Conn()
	moved, err := e.begin(ctx, conn, lockWait)
	t := newTx(pgConn{conn, ctx}, &postgresDialect)
	switch {
	case err != nil:
	case moved:
		err = e.fence.refuse(ctx, t)
	default:
		err = decide(t, fn)
	}
	if err == nil {
		t.finish()
		t.exec("COMMIT")
		err = send(ctx, conn, t.statements)
		e.revoked.tell(t) // also after an error: a connection can break behind the commit
	}
	if err != nil {
		// A connection that cannot even roll back is closed by the pool.
		_, _ = conn.Exec(ctx, "ROLLBACK")
		e.notice(conn, err)
		if fault := h.leash.pulled(); fault != "" {
			err = unavailable(err, fault)
		}
	}
	return err
}

// begin starts a transaction with its limits, in one round trip, and reports whether the
// fence is to close.
func (e *pg) begin(ctx context.Context, conn *pgx.Conn, lockWait time.Duration) (moved bool, err error) {
	if !e.pooled && lockWait == shortLockWait { // as the session has it
		return e.fence.begin(ctx, conn, "")
	}
	return e.fence.begin(ctx, conn, `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true)`,
		milliseconds(e.limits.statement), milliseconds(lockWait))
}

// notice closes a connection to a server that takes no writes.
func (e *pg) notice(conn *pgx.Conn, err error) {
	if readOnly(err) {
		closeSoon(conn)
		e.failOver()
	}
}

// pgConn reads inside a write. It listens to the write's context, not to the
// request's: a caller going away must not break the connection in mid-transaction.
type pgConn struct {
	conn *pgx.Conn
	ctx  context.Context //nolint:containedctx // see above
}

func (c pgConn) query(_ context.Context, sql string, args ...any) (rows, error) {
	return c.conn.Query(c.ctx, sql, args...)
}
