package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
)

// Compacted is the outcome of Compact.
type Compacted struct {
	Engine        string
	Before, After int64 // bytes of the store
	// Later is set if SQLite's file shrinks later: a reader still needs pages that were given back.
	Later bool
}

// Compact gives space of deleted rows back, while servers use the store. On SQLite the file shrinks in
// small steps. On PostgreSQL the space becomes free for new rows, and indexes are built anew. With full,
// everything is written anew: on SQLite no server may use the store, and on PostgreSQL each table is locked
// while it is written.
func Compact(ctx context.Context, o Options, full bool, progress func(what string)) (Compacted, error) {
	if o.URL != "" {
		return compactPostgres(ctx, o, full, progress)
	}
	path := filepath.Join(o.Dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return Compacted{}, fmt.Errorf("the folder %s has no store: %w", o.Dir, err)
	}
	if full {
		return rewriteLite(ctx, o.Dir, path, progress)
	}
	return shrinkLite(ctx, path, progress)
}

// liteShrinks is the pragma with which a new file can shrink in small steps. It must come first, since it
// has no effect on a file that is not empty, except that it writes.
const liteShrinks = "auto_vacuum=INCREMENTAL"

// vacuumIncremental is the value of PRAGMA auto_vacuum for files that can shrink in small steps.
const vacuumIncremental = 2

// compactPages is the number of pages that one step moves. A step is one write, for which those of
// servers wait.
const compactPages = 100

// checkpointSteps is the number of steps after which the WAL is copied into the file.
const checkpointSteps = 20

// compactShare is how much longer than a step the pause after it is.
const compactShare = 2

// shrinkLite moves pages from the end of the file to free places, a few at a time, and cuts the file.
func shrinkLite(ctx context.Context, path string, progress func(string)) (out Compacted, err error) {
	out.Engine = sqliteDialect.name
	conn, err := openLite(path, "synchronous=FULL", "wal_autocheckpoint=0")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	mode, err := conn.number("PRAGMA auto_vacuum")
	if err != nil {
		return out, err
	}
	free, err := conn.number("PRAGMA freelist_count")
	if err != nil {
		return out, err
	}
	if out.Before, err = conn.bytes(); err != nil {
		return out, err
	}
	if out.Before == 0 {
		return out, errors.New("the store is empty: start a server on it first")
	}
	if mode != vacuumIncremental {
		return out, fmt.Errorf("an older parley made this store, which cannot give space back while servers use it (%d "+
			"of %d KiB are free); stop the server once and run \"parley compact --full\"",
			free*litePage/1024, out.Before/1024)
	}
	for left, step := free, 1; left > 0; step++ {
		began := time.Now()
		if left, err = conn.shrink(ctx); err != nil {
			return out, err
		}
		if step%checkpointSteps == 0 { // else the WAL would grow by as much as the file is to shrink
			if _, err := conn.number("PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
				return out, err
			}
			if fileSize(path+"-wal")() > maxCompactWAL {
				break // a reader keeps it from being shortened
			}
		}
		progress(fmt.Sprintf("%d of %d free pages are left", left, free))
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-time.After(compactShare * time.Since(began)):
		}
	}
	out.After, out.Later, err = conn.cut(ctx, path)
	return out, err
}

// maxCompactWAL is the size of the WAL from which on a compaction stops.
const maxCompactWAL = 256 << 20

// compactWait is how long a step waits for the lock of writers.
const compactWait = 30 * time.Second

// shrink makes one step, and returns how many pages are free after it.
func (c *liteConn) shrink(ctx context.Context) (left int64, err error) {
	// SQLite waits ever longer between two looks at the lock, and a busy server leaves it for moments.
	c.conn.SetBusyTimeout(0)
	defer c.conn.SetBusyTimeout(busyTimeout)
	for began := time.Now(); ; {
		err := c.exec("BEGIN IMMEDIATE")
		if err == nil {
			break
		}
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case sqlite.ErrCode(err).ToPrimary() != sqlite.ResultBusy:
			return 0, err
		case time.Since(began) > compactWait:
			return 0, fmt.Errorf("another process has written to the store for %s without a pause; run the command again "+
				"when it is less busy: what was given back stays so (%w)", compactWait, err)
		}
		time.Sleep(200 * time.Microsecond)
	}
	if err := c.exec(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", compactPages)); err != nil {
		return 0, errors.Join(err, c.exec("ROLLBACK"))
	}
	if left, err = c.number("PRAGMA freelist_count"); err != nil {
		return 0, errors.Join(err, c.exec("ROLLBACK"))
	}
	return left, c.exec("COMMIT")
}

// litePage is the size of a page of SQLite's file.
const litePage = 4096

// number runs a statement that yields one number.
func (c *liteConn) number(sql string) (n int64, err error) {
	rs, err := c.read(sql, nil, func() {})
	if err != nil {
		return 0, err
	}
	defer rs.Close()
	if rs.Next() {
		err = rs.Scan(&n)
	}
	return n, errors.Join(err, rs.Err())
}

// cut copies the WAL into the file, whose end is then cut off, and returns the size of the store. It
// waits a moment for readers that still need pages of the WAL; else a later checkpoint cuts the file.
func (c *liteConn) cut(ctx context.Context, path string) (size int64, later bool, err error) {
	for range 50 {
		if _, err = c.number("PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
			return 0, false, err
		}
		if size, err = c.bytes(); err != nil || int64(fileSize(path)()) <= size {
			return size, false, err
		}
		select {
		case <-ctx.Done():
			return size, true, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return size, true, nil
}

// rewriteLite writes the whole file anew, in the order of the tables, so that it can shrink in small
// steps from then on.
func rewriteLite(ctx context.Context, dir, path string, progress func(string)) (out Compacted, err error) {
	out.Engine = sqliteDialect.name
	release, by, err := tryLock(dir, "parley compact")
	if err != nil {
		return out, fmt.Errorf("lock the data folder: %w", err)
	}
	if release == nil {
		return out, fmt.Errorf("a server uses the store (%s); stop it first, or run \"parley compact\" without --full", by)
	}
	defer release()
	conn, err := openLite(path, "synchronous=FULL", "temp_store=FILE", liteShrinks)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	if out.Before, err = conn.bytes(); err != nil {
		return out, err
	}
	free, err := conn.number("PRAGMA freelist_count")
	if err != nil {
		return out, err
	}
	if err := roomFor(out.Before-free*litePage, dir); err != nil {
		return out, err
	}
	progress("writing the store anew")
	conn.conn.SetInterrupt(ctx.Done())
	if err := conn.exec("VACUUM"); err != nil {
		if ctx.Err() != nil {
			return out, ctx.Err() // nothing has changed
		}
		return out, err
	}
	conn.conn.SetInterrupt(nil)
	out.After, out.Later, err = conn.cut(ctx, path)
	return out, err
}

// bytes returns the size of the store, with the pages that are still in the WAL.
func (c *liteConn) bytes() (int64, error) {
	pages, err := c.number("PRAGMA page_count")
	return pages * litePage, err
}

// roomFor returns an error unless a store of this size can be written anew: SQLite makes a copy in the
// folder for temporary files, and puts it into the WAL.
func roomFor(size int64, dir string) error {
	for _, c := range []struct {
		dir    string
		times  int64
		remedy string
	}{
		{dir, 2, "free some, or move the store with parley backup and parley restore"},
		{tempFolder(), 1, "free some, or name another folder in SQLITE_TMPDIR"},
	} {
		free, known := FreeBytes(c.dir)
		if need := c.times * size; known && free < uint64(need) {
			return fmt.Errorf("writing the store anew needs %d MiB on the disk of %s, which has %d MiB; %s",
				need>>20, c.dir, free>>20, c.remedy)
		}
	}
	return nil
}

// tempFolder returns the folder in which SQLite makes temporary files.
func tempFolder() string {
	for _, dir := range []string{os.Getenv("SQLITE_TMPDIR"), os.Getenv("TMPDIR"), "/var/tmp", "/usr/tmp"} {
		if st, err := os.Stat(dir); dir != "" && err == nil && st.IsDir() {
			return dir
		}
	}
	return os.TempDir()
}

// storeSize is the size of all tables with their indexes.
const storeSize = `SELECT CAST(coalesce(sum(pg_total_relation_size(c.oid)), 0) AS BIGINT) FROM pg_class c
	JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'`

// leftOver is the condition on an index i with the class c that a REINDEX left which did not end. A
// REINDEX builds new indexes under such names and drops the old ones at its end.
const leftOver = `NOT i.indisvalid AND c.relname ~ '_cc(new|old)[0-9]*$'`

// leftOvers are those indexes, also of the tables in which PostgreSQL keeps large values of ours.
const leftOvers = `SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
	JOIN pg_class t ON t.oid = i.indrelid LEFT JOIN pg_class owner ON owner.reltoastrelid = t.oid
	WHERE ` + leftOver + ` AND coalesce(owner.relnamespace, t.relnamespace) = current_schema()::regnamespace ORDER BY 1`

// compactLock is an advisory lock that a compaction holds while it runs.
const compactLock = 7_305_800_614

// compacting is the condition that a compaction runs.
var compacting = fmt.Sprintf(`EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
	AND classid = %d AND objid = %d)`, compactLock>>32, compactLock&0xffffffff)

// compactPostgres needs a session of its own, because VACUUM cannot run in a transaction.
func compactPostgres(ctx context.Context, o Options, full bool, progress func(string)) (out Compacted, err error) {
	out.Engine = postgresDialect.name
	conn, err := connectCompact(ctx, o, full)
	if err != nil {
		return out, err
	}
	defer closeSoon(conn)
	if err := conn.QueryRow(ctx, storeSize).Scan(&out.Before); err != nil {
		return out, err
	}
	if err := mayCompact(ctx, conn); err != nil {
		return out, err
	}
	if err := dropLeftOvers(ctx, conn); err != nil {
		return out, err
	}
	tables, err := pgStrings(ctx, conn, `SELECT quote_ident(relname) FROM pg_class
		WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname`)
	if err != nil {
		return out, err
	}
	for _, table := range tables {
		progress(table)
		if err := compactTable(ctx, conn, table, full); err != nil {
			closeSoon(conn) // gives the lock back
			return out, errors.Join(fmt.Errorf("compact the table %s: %w", table, err), cleanUp(ctx, o, full))
		}
	}
	return out, conn.QueryRow(ctx, storeSize).Scan(&out.After)
}

// mayCompact returns an error unless the role owns all tables: PostgreSQL passes over others.
func mayCompact(ctx context.Context, conn *pgx.Conn) error {
	foreign, err := pgStrings(ctx, conn, `SELECT quote_ident(tablename) FROM pg_tables
		WHERE schemaname = current_schema() AND NOT pg_has_role(tableowner, 'USAGE') ORDER BY tablename`)
	if err == nil && len(foreign) > 0 {
		err = fmt.Errorf("the role of --database does not own the table %s; use the role that does, with which servers "+
			"migrate", foreign[0])
	}
	return err
}

// connectCompact returns a connection without time limits that holds the lock.
func connectCompact(ctx context.Context, o Options, full bool) (_ *pgx.Conn, err error) {
	conn, err := connectBare(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closeSoon(conn)
		}
	}()
	pooled, err := behindPooler(ctx, conn.PgConn())
	if err != nil {
		return nil, err
	}
	if pooled {
		return nil, errors.New("--database leads to a pooler, which cannot run VACUUM; give the address of PostgreSQL itself")
	}
	lockTimeout := "0" // it waits beside others
	if full {
		lockTimeout = "'2s'" // requests wait behind it
	}
	if _, err := conn.Exec(ctx, `SET statement_timeout = 0; SET lock_timeout = `+lockTimeout); err != nil {
		return nil, err
	}
	var alone bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, int64(compactLock)).Scan(&alone); err != nil {
		return nil, err
	}
	if !alone {
		return nil, errors.New("another parley compact works on this database; wait until it has ended")
	}
	return conn, nil
}

// cleanUp drops what a compaction that failed has left, on a new connection: the old one may be closed.
func cleanUp(ctx context.Context, o Options, full bool) error {
	if full {
		return nil // it left nothing
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	conn, err := connectCompact(ctx, o, full)
	if err == nil {
		defer closeSoon(conn)
		err = dropLeftOvers(ctx, conn)
	}
	if err != nil {
		return fmt.Errorf("and it left indexes that are not finished, which slow writes down; run parley compact again (%w)",
			err)
	}
	return nil
}

// A table that others use is tried so often, with pauses in which requests that wait are served.
const (
	maxLockTries = 10
	lockPause    = 3 * time.Second
)

func compactTable(ctx context.Context, conn *pgx.Conn, table string, full bool) error {
	if full {
		for try := 1; ; try++ {
			_, err := conn.Exec(ctx, `VACUUM (FULL, ANALYZE) `+table)
			if !isCode(err, "55P03") {
				return err
			}
			if try == maxLockTries {
				return fmt.Errorf("others have used it all the time, such as a back-up; run the command again later (%w)", err)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(lockPause):
			}
		}
	}
	for _, sql := range []string{`VACUUM (ANALYZE) ` + table, `REINDEX TABLE CONCURRENTLY ` + table} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func dropLeftOvers(ctx context.Context, conn *pgx.Conn) error {
	names, err := pgStrings(ctx, conn, leftOvers)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := conn.Exec(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+name); err != nil {
			return err
		}
	}
	return nil
}

func pgStrings(ctx context.Context, conn *pgx.Conn, sql string) ([]string, error) {
	rs, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rs, pgx.RowTo[string])
}
