package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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

// writeWide is write: there are many connections.
func (e *pg) writeWide(ctx context.Context, fn func(*tx) error) error { return e.write(ctx, fn) }

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
		time.Sleep(time.Duration(rand.IntN(try*2000)) * time.Microsecond) // jitter
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
	c := &pgConn{conn: h.Conn.Conn(), ctx: ctx, fence: e.fence}
	if e.pooled || lockWait != shortLockWait { // else as the session has it
		c.limits = setLimits(e.limits.statement, lockWait)
	}
	t := newTx(c, &postgresDialect)
	if err = decide(t, fn); err == nil {
		t.finish()
		err = c.finish(t.statements)
		e.revoked.tell(t) // also after an error: a connection can break behind the commit
	}
	if err != nil {
		if c.begun { // a connection that cannot even roll back is closed by the pool
			_, _ = c.conn.Exec(ctx, "ROLLBACK")
		}
		e.notice(c.conn, err)
		if fault := h.leash.pulled(); fault != "" {
			err = unavailable(err, fault)
		}
	}
	return err
}

// setLimits are the limits of one transaction.
func setLimits(statementTime, lockWait time.Duration) []statement {
	return []statement{{
		sql:  `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true)`,
		args: []any{milliseconds(statementTime), milliseconds(lockWait)},
	}}
}

// notice closes a connection to a server that takes no writes.
func (e *pg) notice(conn *pgx.Conn, err error) {
	if readOnly(err) {
		closeSoon(conn)
		e.failOver()
	}
}

// pgConn is the transaction of a write. It begins with the first read, in the same round
// trip, and ends with the statements that the write has queued. A write that reads
// nothing takes one round trip in all.
//
// It listens to the write's context, not to the request's: a caller going away must not
// break the connection in mid-transaction.
type pgConn struct {
	conn   *pgx.Conn
	ctx    context.Context // see above
	fence  *fence
	limits []statement // what it sets; none: what the session has
	begun  bool
}

func (c *pgConn) query(_ context.Context, sql string, args ...any) (rows, error) {
	if c.begun {
		return c.conn.Query(c.ctx, sql, args...)
	}
	c.begun = true
	var b pgx.Batch
	b.Queue("BEGIN")
	for _, s := range c.limits {
		b.Queue(s.sql, s.args...)
	}
	b.Queue(c.fence.moves)
	b.Queue(sql, args...)
	results := c.conn.SendBatch(c.ctx, &b)
	moved, err := false, error(nil)
	for range b.Len() - 1 {
		var tag pgconn.CommandTag
		if tag, err = results.Exec(); err != nil {
			break
		}
		moved = tag.RowsAffected() > 0 // of the last but one
	}
	var rs pgx.Rows
	if err == nil && !moved {
		rs, err = results.Query()
	}
	if err != nil || moved {
		err = errors.Join(err, results.Close())
	}
	switch {
	case err != nil:
		return nil, err
	case moved:
		return nil, c.fence.refuse(c.ctx, c)
	}
	return &firstRows{rs, results}, nil
}

// finish runs the statements and commits, in one round trip.
func (c *pgConn) finish(ss []statement) error {
	switch {
	case c.begun:
		return send(c.ctx, c.conn, append(ss, statement{sql: "COMMIT"}))
	case len(ss) == 0:
		return nil
	}
	// PostgreSQL runs them as one transaction.
	err := send(c.ctx, c.conn, slices.Concat(c.limits, []statement{c.fence.check}, ss))
	if isCode(err, codeMoved) {
		c.begun = true // reads are alone from now on
		if refusal := c.fence.refuse(c.ctx, c); refusal != nil {
			return refusal
		}
		if ss[0].unless != nil {
			return ss[0].unless
		}
	}
	return err
}

// firstRows are the rows of a write's first read.
type firstRows struct {
	pgx.Rows
	batch pgx.BatchResults
}

// Close implements rows.
func (r *firstRows) Close() {
	r.Rows.Close()
	_ = r.batch.Close() // what was wrong, the rows say, or the next statement
}
