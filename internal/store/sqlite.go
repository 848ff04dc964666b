package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

// lite is the SQLite engine: a pool of readers and one writer (see writer.go).
type lite struct {
	readers *sql.DB
	writes  *sql.DB // one connection, held by the writer
	writer  *writer
	stmts   sync.Map // SQL → *prepared of the readers
	nstmts  atomic.Int64

	versions sync.Map // org → *atomic.Uint64
}

// maxStatements bounds the prepared statements kept for readers. The shapes of a
// list query are many but finite; past this number a query is prepared anew.
const maxStatements = 512

func openSQLite(path string, o Options, met *metrics) (*lite, error) {
	n := o.ReadConns
	if n <= 0 {
		n = max(4, 2*runtime.GOMAXPROCS(0))
	}
	dsn := func(extra string) string {
		// FULL: a commit is on disk before it is acknowledged. The WAL lets readers
		// go on while the writer commits.
		q := url.Values{"_pragma": {
			"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
			"cache_size(-32768)", "wal_autocheckpoint(4000)", "journal_size_limit(67108864)", "temp_store(MEMORY)", extra,
		}}
		return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
	}
	writes, err := sql.Open("sqlite", dsn("query_only(0)"))
	if err != nil {
		return nil, err
	}
	writes.SetMaxOpenConns(1)
	readers, err := sql.Open("sqlite", dsn("query_only(1)"))
	if err != nil {
		return nil, errors.Join(err, writes.Close())
	}
	readers.SetMaxOpenConns(n)
	readers.SetMaxIdleConns(n)
	e := &lite{readers: readers, writes: writes}
	conn, err := writes.Conn(context.Background())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), readers.Close(), writes.Close())
	}
	e.writer = newWriter(conn, met, e.bump)
	met.observeLite(e)
	met.observeQueue(e.writer.queue)
	return e, nil
}

// query runs on the pool of readers, each with its statement prepared.
func (e *lite) query(ctx context.Context, sql string, args ...any) (rows, error) {
	stmt, keep, err := e.prepared(ctx, sql)
	if err != nil {
		return nil, translate(err)
	}
	if !keep {
		defer stmt.Close() // the rows keep it open as long as they need it
	}
	rs, err := stmt.read(ctx, args)
	return rs, translate(err)
}

// prepared returns a statement, and whether it is kept for the next time.
func (e *lite) prepared(ctx context.Context, query string) (_ *prepared, keep bool, err error) {
	if s, ok := e.stmts.Load(query); ok {
		return s.(*prepared), true, nil
	}
	s, err := prepare(ctx, e.readers, query)
	if err != nil || e.nstmts.Load() >= maxStatements {
		return s, false, err
	}
	if old, loaded := e.stmts.LoadOrStore(query, s); loaded {
		return old.(*prepared), true, s.Close()
	}
	e.nstmts.Add(1)
	return s, true, nil
}

func (e *lite) write(ctx context.Context, fn func(*tx) error) error {
	return translate(e.writer.do(ctx, fn))
}

// add is write: the one writer combines whatever waits.
func (e *lite) add(ctx context.Context, fn func(*tx) error) error { return e.write(ctx, fn) }

// dataVersion needs no query: this process is the only one that writes proposals.
func (e *lite) dataVersion(_ context.Context, org string) (uint64, error) {
	return e.version(org).Load(), nil
}

func (e *lite) version(org string) *atomic.Uint64 {
	if v, ok := e.versions.Load(org); ok {
		return v.(*atomic.Uint64)
	}
	v, _ := e.versions.LoadOrStore(org, new(atomic.Uint64))
	return v.(*atomic.Uint64)
}

// bump runs after a commit and before anybody is told of it: who has the answer
// to its write sees it in every later read.
func (e *lite) bump(orgs map[string]struct{}) {
	for org := range orgs {
		e.version(org).Add(1)
	}
}

// migrate uses the writer's connection before its first write.
func (e *lite) migrate(ctx context.Context) error {
	conn := e.writer.conn
	// IMMEDIATE takes the write lock, so two processes cannot migrate at once.
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := migrateAll(ctx, &sqliteDialect, liteConn{conn}, func(sql string, args ...any) error {
		_, err := conn.ExecContext(ctx, sql, args...)
		return err
	})
	if err != nil {
		_, undo := conn.ExecContext(ctx, "ROLLBACK")
		return errors.Join(err, undo)
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

func (e *lite) ping(ctx context.Context) error {
	if err := e.write(ctx, func(*tx) error { return nil }); err != nil {
		return err
	}
	var n int
	_, err := one(ctx, e, []any{&n}, `SELECT count(*) FROM identity_epoch`)
	return err
}

func (e *lite) close() error {
	err := e.writer.close()
	e.stmts.Range(func(_, s any) bool {
		err = errors.Join(err, s.(*prepared).Close())
		return true
	})
	return errors.Join(err, e.readers.Close(), e.writes.Close())
}

// liteRows adapts *sql.Rows.
type liteRows struct{ *sql.Rows }

func (r liteRows) Close() { _ = r.Rows.Close() }

// liteConn reads on one connection without preparing.
type liteConn struct{ *sql.Conn }

func (c liteConn) query(ctx context.Context, sql string, args ...any) (rows, error) {
	rs, err := c.QueryContext(ctx, sql, args...)
	return liteRows{rs}, err
}
