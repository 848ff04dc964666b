package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/parley-dev/parley/internal/proposal"
)

// lite is the SQLite engine: two pools of readers and one writer (see lite_writer.go).
type lite struct {
	readers     *litePool
	slowReaders *litePool // see lane.go
	writer      *writer
	checkpoints *checkpointer
	fence       *fence
	path        string
	dir         string // to lock during a migration; empty if the caller holds the lock
	log         *slog.Logger

	orgs  sync.Map // org → *liteOrg
	epoch atomic.Int64
	packs *packCache
	hooks *hooks
}

// liteOrg is the state of an org's proposals in this process.
type liteOrg struct {
	version atomic.Uint64
}

func openSQLite(path string, o Options, met *metrics, hooks *hooks) (_ *lite, err error) {
	n := o.ReadConns
	if n <= 0 {
		n = max(4, 2*runtime.GOMAXPROCS(0))
	}
	// SQLite runs in this process, so slow reads must not use all processors.
	slow := max(1, runtime.GOMAXPROCS(0)/2)
	e := &lite{
		path: path, readers: newLitePool(n), slowReaders: newLitePool(slow), hooks: hooks, fence: o.fence, log: o.Log,
		packs: newPackCache(),
	}
	if !o.Locked {
		e.dir = filepath.Dir(path)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open %s: %w", path, err), e.readers.closeIdle(), e.slowReaders.closeIdle())
		}
	}()
	// FULL: a commit is on disk before it is acknowledged. WAL: readers continue while the
	// writer commits.
	pragmas := []string{
		"journal_mode=WAL", "synchronous=FULL", "foreign_keys=1", "cache_size=-32768",
		fmt.Sprintf("wal_autocheckpoint=%d", writerFrames), "journal_size_limit=67108864", "temp_store=MEMORY",
		"secure_delete=" + secureDelete(o),
	}
	if st, err := os.Stat(path); err == nil && st.Size() == 0 {
		pragmas = append([]string{liteShrinks}, pragmas...)
	}
	conn, err := openLite(path, pragmas...)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(e.readers.open(path), e.slowReaders.open(path)); err != nil {
		return nil, errors.Join(err, conn.close())
	}
	if e.checkpoints, err = startCheckpointer(path, o.Log); err != nil {
		return nil, errors.Join(err, conn.close())
	}
	e.writer = newWriter(conn, newQueue(met, o.Tracer), hooks, e.committed)
	e.writer.fence = o.fence
	met.observeLite(e)
	met.observeQueue(e.writer.queue)
	return e, nil
}

// secureDelete says what happens to bytes that are not used any more. Servers overwrite them in pages
// that they write anyway.
func secureDelete(o Options) string {
	if o.Shred {
		return "ON"
	}
	return "FAST"
}

func (e *lite) query(ctx context.Context, sql string, args ...any) (rows, error) {
	return guarded{e.readers, e.fence}.query(ctx, sql, args...)
}

func (e *lite) slow() reader { return guarded{e.slowReaders, e.fence} }

func (e *lite) stale() reader { return e.slow() }

func (e *lite) slowConns() int { return e.slowReaders.size }

func (e *lite) write(ctx context.Context, fn func(*tx) error) error {
	if err := e.fence.err(); err != nil {
		return err
	}
	return translate(e.writer.do(ctx, fn))
}

func (e *lite) writeWide(ctx context.Context, fn func(*tx) error) error {
	if err := e.fence.err(); err != nil {
		return err
	}
	return translate(e.writer.doWide(ctx, fn))
}

// add is write: the writer combines all writes that wait.
func (e *lite) add(ctx context.Context, fn func(*tx) error) error { return e.write(ctx, fn) }

func (e *lite) change(ctx context.Context, c *change) error {
	return e.write(ctx, func(t *tx) error { return c.run(ctx, t, aloneReader{t}) })
}

// dataVersion needs no query: other processes only add and delete whole orgs and erase members; see
// noticed.
func (e *lite) dataVersion(_ context.Context, org string) (uint64, error) {
	return e.org(org).version.Load(), nil
}

// seenVersion implements engine. The current version costs as little.
func (e *lite) seenVersion(string) (none proposal.SeenVersion) { return none }

// noticed is called with the identity epoch. If it has changed, another process may have deleted an org,
// and another one may have its id now. So pages of lists that were kept are not valid any more.
func (e *lite) noticed(epoch int64) {
	if e.epoch.Swap(epoch) == epoch {
		return
	}
	e.orgs.Range(func(_, v any) bool {
		v.(*liteOrg).version.Add(1)
		return true
	})
}

func (e *lite) org(id string) *liteOrg {
	if v, ok := e.orgs.Load(id); ok {
		return v.(*liteOrg)
	}
	v, _ := e.orgs.LoadOrStore(id, new(liteOrg))
	return v.(*liteOrg)
}

// committed runs after a commit and before the writes return, so that a caller sees its
// write in every later read.
func (e *lite) committed(t *tx) {
	e.checkpoints.committed()
	for _, id := range t.touched {
		e.org(id).version.Add(1)
	}
	e.hooks.awaiting(t.awaiting)
	e.hooks.tellRevoked(t)
	e.hooks.tellEvents(t)
}

// migrate uses the writer's connection, before its first write.
func (e *lite) migrate(_ context.Context, fn func(migrator) error) error {
	conn := e.writer.conn
	// IMMEDIATE takes the write lock, so two processes cannot migrate at once.
	if err := conn.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	unlock := func() {}
	defer func() { unlock() }()
	m := migrator{
		reader: e.writer, exec: conn.exec,
		stopWriters: func() error { return nil }, // BEGIN IMMEDIATE has stopped them
		others: func(int) ([]Node, error) {
			if e.dir == "" {
				return nil, nil
			}
			// Keep the lock, so that no server starts before the migration ends.
			release, by, err := tryLock(e.dir, "parley migrate")
			if err != nil {
				return nil, fmt.Errorf("lock the data folder: %w", err)
			}
			if release == nil {
				return []Node{{Host: by}}, nil
			}
			unlock = release
			return nil, nil
		},
	}
	if err := fn(m); err != nil {
		return errors.Join(err, conn.exec("ROLLBACK"))
	}
	return conn.exec("COMMIT")
}

// ping writes, because a file that can be read but not written is useless. The row keeps its
// value, but its page is written to disk. SQLite would not write a page for an update that
// changes nothing.
func (e *lite) ping(ctx context.Context) error {
	if err := e.write(ctx, func(t *tx) error {
		t.exec(`UPDATE identity_epoch SET epoch = epoch + 1 WHERE id = 1`)
		t.exec(`UPDATE identity_epoch SET epoch = epoch - 1 WHERE id = 1`)
		return nil
	}); err != nil {
		return err
	}
	var n int
	_, err := one(ctx, e, []any{&n}, `SELECT count(*) FROM identity_epoch`)
	return err
}

// close closes the writer, then the readers as they are returned.
func (e *lite) close() error {
	return errors.Join(e.writer.close(), e.checkpoints.close(), e.readers.close(), e.slowReaders.close())
}
