package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/trace"
)

// acquireWrite takes a connection for a write; releaseWrite returns it.
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

// write runs fn in its own transaction, again if it lost a race against another transaction. It
// continues if its caller cancels.
func (e *pg) write(ctx context.Context, fn func(*tx) error) (err error) {
	if err := e.fence.err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if e.tracer != nil {
		span := e.startSpan(ctx)
		defer func() {
			if err != nil && errs.KindOf(err) == errs.Internal {
				span.Fail("the write failed")
			}
			span.End()
		}()
	}
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

// startSpan starts the span of a write that is a transaction of its own.
func (e *pg) startSpan(ctx context.Context) trace.Span {
	mark, ok := trace.MarkOf(ctx)
	if !ok {
		return trace.Span{}
	}
	return e.tracer.StartFor([]trace.Mark{mark}, "store.write", trace.Int("parley.writes", 1))
}

// writePatiently waits for its turn, and then for a lock until the deadline.
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
	if wait < time.Millisecond { // 0 would mean no limit
		return unavailable(context.DeadlineExceeded, faultLocked)
	}
	// The server's limit is the shorter one, so the connection stays open.
	return e.writeOnce(ctx, until, wait, fn)
}

func (e *pg) writeOnce(ctx context.Context, until time.Time, lockWait time.Duration, fn func(*tx) error) error {
	h, err := e.acquireWrite(ctx, until)
	if err != nil {
		return err
	}
	defer e.releaseWrite(&h)
	c := &pgConn{conn: h.Conn.Conn(), ctx: ctx, fence: e.fence}
	if e.pooled || lockWait != shortLockWait { // else the session sets the limits
		c.limits = setLimits(e.limits.statement, lockWait)
	}
	t := newTx(c, &postgresDialect, e.hooks)
	if err = decide(t, fn); err == nil {
		t.finish(c.conn)
		err = c.finish(t.statements)
		e.committed(t) // also after an error: the connection can break after the commit
	}
	if err != nil {
		if c.begun { // the pool closes a connection that cannot roll back
			_, _ = c.conn.Exec(ctx, "ROLLBACK")
		}
		e.notice(c.conn, err)
		if fault := h.leash.pulled(); fault != "" {
			err = unavailable(err, fault)
		}
	}
	return err
}

// setLimits sets the limits of one transaction.
func setLimits(statementTime, lockWait time.Duration) []statement {
	return []statement{{
		sql:  `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true)`,
		args: []any{milliseconds(statementTime), milliseconds(lockWait)},
	}}
}

// notice closes a connection to a server that accepts no writes.
func (e *pg) notice(conn *pgx.Conn, err error) {
	if readOnly(err) {
		closeSoon(conn)
		e.failOver()
	}
}

// pgConn is the transaction of a write. It begins with the first read, in the same round trip,
// and ends with the statements that the write has queued. A write that reads nothing takes one
// round trip in all.
//
// It uses the write's context, not the request's: a caller that cancels must not break the
// connection in the middle of a transaction.
type pgConn struct {
	conn   *pgx.Conn
	ctx    context.Context // see above
	fence  *fence
	limits []statement // set for the transaction; empty if the session has set them
	locks  []statement // sent before the next read
	begun  bool
}

// opening returns what is sent before the next read, and the index of the fence's query, or -1.
func (c *pgConn) opening() (before []statement, fenced int) {
	before, fenced = c.locks, -1
	c.locks = nil
	if !c.begun {
		c.begun = true
		begin := append([]statement{{sql: beginWrite}}, c.limits...)
		fenced = len(begin)
		before = append(append(begin, statement{sql: c.fence.moves}), before...)
	}
	return before, fenced
}

func (c *pgConn) query(_ context.Context, sql string, args ...any) (rows, error) {
	before, fenced := c.opening()
	if len(before) == 0 {
		return c.conn.Query(c.ctx, sql, args...)
	}
	var b pgx.Batch
	for _, s := range before {
		b.Queue(s.sql, s.args...)
	}
	b.Queue(sql, args...)
	results := c.conn.SendBatch(c.ctx, &b)
	moved, err := false, error(nil)
	for i := range before {
		var tag pgconn.CommandTag
		if tag, err = results.Exec(); err != nil {
			break
		}
		moved = moved || i == fenced && tag.RowsAffected() > 0
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
	return &batchRows{rs, results}, nil
}

// pgQuery is a query whose rows are passed to a function.
type pgQuery struct {
	statement
	row func(rows) error
}

// queryAll runs the locks and the queries in one round trip.
func (c *pgConn) queryAll(queries []pgQuery) (err error) {
	before, fenced := c.opening()
	var b pgx.Batch
	for _, s := range before {
		b.Queue(s.sql, s.args...)
	}
	for _, q := range queries {
		b.Queue(q.sql, q.args...)
	}
	results := c.conn.SendBatch(c.ctx, &b)
	moved := false
	for i := range before {
		tag, err := results.Exec()
		if err != nil {
			return errors.Join(err, results.Close())
		}
		moved = moved || i == fenced && tag.RowsAffected() > 0
	}
	for _, q := range queries {
		if err == nil {
			err = scanRows(results, q.row)
		}
	}
	if err = errors.Join(err, results.Close()); err == nil && moved {
		err = c.fence.refuse(c.ctx, c)
	}
	return err
}

// scanRows passes the rows of the next query of a batch to a function.
func scanRows(results pgx.BatchResults, row func(rows) error) error {
	rs, err := results.Query()
	if err != nil {
		return err
	}
	defer rs.Close()
	for rs.Next() {
		if err := row(rs); err != nil {
			return err
		}
	}
	return rs.Err()
}

// readAndCommit runs the locks, a query of one row and the commit in one round trip. So a process
// that stops in the middle of it, such as a frozen machine, holds no lock. It must be the only read
// of the write. found reports whether each lock and the query found a row.
func (c *pgConn) readAndCommit(dest []any, sql string, args ...any) (found bool, err error) {
	before := slices.Concat([]statement{{sql: beginWrite}}, c.limits, []statement{c.fence.check}, c.locks)
	firstLock := len(before) - len(c.locks)
	c.locks, c.begun = nil, true
	var b pgx.Batch
	for _, s := range before {
		b.Queue(s.sql, s.args...)
	}
	b.Queue(sql, args...)
	b.Queue("COMMIT")
	results := c.conn.SendBatch(c.ctx, &b)
	locked := true
	for i := range before {
		var tag pgconn.CommandTag
		if tag, err = results.Exec(); err != nil {
			break
		}
		locked = locked && (i < firstLock || tag.RowsAffected() > 0)
	}
	if err == nil {
		err = results.QueryRow().Scan(dest...)
		found = err == nil && locked
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	if err = errors.Join(err, results.Close()); err == nil { // Close waits for the commit
		c.begun = false
		return found, nil
	}
	if isCode(err, codeMoved) {
		if _, undo := c.conn.Exec(c.ctx, "ROLLBACK"); undo == nil {
			if refusal := c.fence.refuse(c.ctx, c); refusal != nil {
				return false, refusal
			}
		}
	}
	return false, err
}

// beginWrite begins the transaction of a write. Statements after a lock must see what was committed
// before it was taken, whatever the default of the database is.
const beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED"

// finish runs the statements and commits, in one round trip.
func (c *pgConn) finish(ss []statement) error {
	switch {
	case c.begun:
		return send(c.ctx, c.conn, append(ss, statement{sql: "COMMIT"}))
	case len(ss) == 0:
		return nil
	}
	// PostgreSQL runs the statements as one transaction.
	err := send(c.ctx, c.conn, slices.Concat(c.limits, []statement{c.fence.check}, ss))
	if isCode(err, codeMoved) {
		c.begun = true // the failed batch is over, so reads need no BEGIN
		if refusal := c.fence.refuse(c.ctx, c); refusal != nil {
			return refusal
		}
		if ss[0].unless != nil {
			return ss[0].unless
		}
	}
	return err
}

// batchRows are the rows of the last statement of a batch.
type batchRows struct {
	pgx.Rows
	batch pgx.BatchResults
}

// Close implements rows.
func (r *batchRows) Close() {
	r.Rows.Close()
	_ = r.batch.Close() // the rows or the next statement return the error
}
