package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// lite is the SQLite engine: a pool of readers and one writer (see writer.go).
type lite struct {
	readers chan *liteConn
	size    int          // of the pool
	waits   atomic.Int64 // for a reader
	writer  *writer
	indexer *indexer

	versions sync.Map // org → *atomic.Uint64
	revoked  *revocations
}

func openSQLite(path string, o Options, met *metrics, revoked *revocations) (_ *lite, err error) {
	n := o.ReadConns
	if n <= 0 {
		n = max(4, 2*runtime.GOMAXPROCS(0))
	}
	e := &lite{readers: make(chan *liteConn, n), size: n, revoked: revoked}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open %s: %w", path, err), e.closeReaders(len(e.readers)))
		}
	}()
	// FULL: a commit is on disk before it is acknowledged. The WAL lets readers go
	// on while the writer commits.
	conn, err := openLite(path, "journal_mode=WAL", "synchronous=FULL", "foreign_keys=1", "cache_size=-32768",
		"wal_autocheckpoint=8000", "journal_size_limit=67108864", "temp_store=MEMORY")
	if err != nil {
		return nil, err
	}
	for range n {
		r, err := openLite(path, "query_only=1", "cache_size=-32768", "temp_store=MEMORY")
		if err != nil {
			return nil, errors.Join(err, conn.close())
		}
		e.readers <- r
	}
	e.writer = newWriter(conn, met, e.committed)
	met.observeLite(e)
	met.observeQueue(e.writer.queue)
	return e, nil
}

// query runs on one of the readers, which its rows hold until they are closed.
func (e *lite) query(ctx context.Context, sql string, args ...any) (rows, error) {
	c, err := e.reader(ctx)
	if err != nil {
		return nil, err
	}
	if ctx.Done() != nil {
		c.conn.SetInterrupt(ctx.Done())
	}
	done := func() {
		c.conn.SetInterrupt(nil)
		e.readers <- c
	}
	rs, err := c.read(sql, args, done)
	if err != nil {
		done()
		return nil, translate(err)
	}
	return rs, nil
}

func (e *lite) reader(ctx context.Context) (*liteConn, error) {
	select {
	case c := <-e.readers:
		return c, nil
	default:
	}
	e.waits.Add(1)
	select {
	case c := <-e.readers:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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

// committed runs after a commit and before anybody is told of it: who has the
// answer to its write sees it in every later read.
func (e *lite) committed(t *tx) {
	for org := range t.touched {
		e.version(org).Add(1)
	}
	e.indexer.add(t.unindexed)
	e.revoked.tell(t)
}

func (e *lite) readySearch(ctx context.Context) error { return e.indexer.catchUp(ctx) }

// migrate uses the writer's connection before its first write.
func (e *lite) migrate(ctx context.Context) error {
	conn := e.writer.conn
	// IMMEDIATE takes the write lock, so two processes cannot migrate at once.
	if err := conn.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := migrateAll(ctx, &sqliteDialect, e.writer, conn.exec); err != nil {
		return errors.Join(err, conn.exec("ROLLBACK"))
	}
	if err := conn.exec("COMMIT"); err != nil {
		return err
	}
	e.indexer = newIndexer(e.write)
	e.indexer.start()
	return nil
}

func (e *lite) ping(ctx context.Context) error {
	if err := e.write(ctx, func(*tx) error { return nil }); err != nil {
		return err
	}
	var n int
	_, err := one(ctx, e, []any{&n}, `SELECT count(*) FROM identity_epoch`)
	return err
}

// close ends the writer, then the readers as they come back.
func (e *lite) close() error {
	if e.indexer != nil {
		e.indexer.close()
	}
	return errors.Join(e.writer.close(), e.closeReaders(e.size))
}

func (e *lite) closeReaders(n int) (err error) {
	for range n {
		err = errors.Join(err, (<-e.readers).close())
	}
	return err
}
