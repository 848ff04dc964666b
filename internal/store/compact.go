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
}

// Compact gives space of deleted rows back, while servers use the store. On SQLite the file shrinks in
// small steps. On PostgreSQL the space becomes free for new rows, and indexes are built anew. With full,
// everything is written anew: on SQLite no server may use the store, and on PostgreSQL requests wait for
// the table that is written.
func Compact(ctx context.Context, o Options, full bool, progress func(what string)) (Compacted, error) {
	if o.URL != "" {
		return compactPostgres(ctx, o, full, progress)
	}
	path := filepath.Join(o.Dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return Compacted{}, fmt.Errorf("the folder %s has no store: %w", o.Dir, err)
	}
	if full {
		return rewriteLite(o.Dir, path, progress)
	}
	return shrinkLite(ctx, path, progress)
}

// liteShrinks is the pragma with which a new file can shrink in small steps. It must come first, since it
// has no effect on a file that is not empty.
const liteShrinks = "auto_vacuum=INCREMENTAL"

// vacuumIncremental is the value of PRAGMA auto_vacuum for files that can shrink in small steps.
const vacuumIncremental = 2

// compactPages is the number of pages that one step moves. A step is one write, for which those of
// servers wait.
const compactPages = 100

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
	pages, err := conn.number("PRAGMA page_count") // the file may lack some that are in the WAL
	if err != nil {
		return out, err
	}
	out.Before = pages * litePage
	if mode != vacuumIncremental {
		return out, fmt.Errorf("an older parley made this store, which cannot give space back while servers use it (%d "+
			"of %d KiB are free); stop the server once and run \"parley compact --full\"",
			free*litePage/1024, out.Before/1024)
	}
	for left := free; left > 0; {
		began := time.Now()
		if left, err = conn.shrink(ctx); err != nil {
			return out, err
		}
		progress(fmt.Sprintf("%d of %d free pages are left", left, free))
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-time.After(compactShare * time.Since(began)):
		}
	}
	out.After, err = conn.cut(ctx, path)
	return out, err
}

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
		if sqlite.ErrCode(err).ToPrimary() != sqlite.ResultBusy || time.Since(began) > compactWait || ctx.Err() != nil {
			return 0, errors.Join(ctx.Err(), err)
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

// cut copies the WAL into the file, whose end is then cut off, and returns its size. It waits a moment
// for readers that still need pages of the WAL; else a later checkpoint of the server does it.
func (c *liteConn) cut(ctx context.Context, path string) (int64, error) {
	want, err := c.number("PRAGMA page_count")
	for range 50 {
		if err == nil {
			_, err = c.number("PRAGMA wal_checkpoint(PASSIVE)")
		}
		size := int64(fileSize(path)())
		if err != nil || size <= want*litePage {
			return size, err
		}
		select {
		case <-ctx.Done():
			return size, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return want * litePage, nil
}

// rewriteLite writes the whole file anew, in the order of the tables, so that it can shrink in small
// steps from then on.
func rewriteLite(dir, path string, progress func(string)) (out Compacted, err error) {
	out.Engine, out.Before = sqliteDialect.name, int64(fileSize(path)())
	release, by, err := tryLock(dir, "parley compact")
	if err != nil {
		return out, fmt.Errorf("lock the data folder: %w", err)
	}
	if release == nil {
		return out, fmt.Errorf("a server uses the store (%s); stop it first, or run \"parley compact\" without --full", by)
	}
	defer release()
	need := 2 * uint64(out.Before)
	if free, known := FreeBytes(dir); known && free < need {
		return out, fmt.Errorf("writing the store anew needs %d MiB on the disk of %s, which has %d MiB; free some, "+
			"or move the store with parley backup and parley restore", need>>20, dir, free>>20)
	}
	conn, err := openLite(path, "synchronous=FULL", "temp_store=FILE", liteShrinks)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	progress("writing the store anew")
	if err := conn.exec("VACUUM"); err != nil {
		return out, err
	}
	if _, err := conn.number("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return out, err
	}
	out.After = int64(fileSize(path)())
	return out, nil
}

// storeSize is the size of all tables with their indexes.
const storeSize = `SELECT CAST(coalesce(sum(pg_total_relation_size(c.oid)), 0) AS BIGINT) FROM pg_class c
	JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'`

// halfBuilt are indexes that an interrupted REINDEX left.
const halfBuilt = `SELECT quote_ident(c.relname) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
	JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = current_schema() AND NOT i.indisvalid AND c.relname LIKE '%\_ccnew%' ORDER BY 1`

// compactPostgres needs a session of its own, because VACUUM cannot run in a transaction.
func compactPostgres(ctx context.Context, o Options, full bool, progress func(string)) (out Compacted, err error) {
	out.Engine = postgresDialect.name
	conn, err := connectBare(ctx, o)
	if err != nil {
		return out, err
	}
	defer closeSoon(conn)
	pooled, err := behindPooler(ctx, conn.PgConn())
	if err != nil {
		return out, err
	}
	if pooled {
		return out, errors.New("--database leads to a pooler, which cannot run VACUUM; give the address of PostgreSQL itself")
	}
	lockTimeout := "30s" // for VACUUM FULL, which waits for all requests that use the table
	if !full {
		lockTimeout = "0"
	}
	if _, err := conn.Exec(ctx, `SET statement_timeout = 0; SET lock_timeout = '`+lockTimeout+`'`); err != nil {
		return out, err
	}
	if err := conn.QueryRow(ctx, storeSize).Scan(&out.Before); err != nil {
		return out, err
	}
	if err := dropHalfBuilt(ctx, conn); err != nil {
		return out, err
	}
	tables, err := pgStrings(ctx, conn, `SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema()
		ORDER BY tablename`)
	if err != nil {
		return out, err
	}
	for _, table := range tables {
		progress(table)
		if err := compactTable(ctx, conn, table, full); err != nil {
			// What was done stays done. A REINDEX that failed leaves a useless index.
			_ = dropHalfBuilt(context.WithoutCancel(ctx), conn)
			return out, fmt.Errorf("compact the table %s: %w", table, err)
		}
	}
	return out, conn.QueryRow(ctx, storeSize).Scan(&out.After)
}

func compactTable(ctx context.Context, conn *pgx.Conn, table string, full bool) error {
	statements := []string{`VACUUM (ANALYZE) ` + table, `REINDEX TABLE CONCURRENTLY ` + table}
	if full {
		statements = []string{`VACUUM (FULL, ANALYZE) ` + table}
	}
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func dropHalfBuilt(ctx context.Context, conn *pgx.Conn) error {
	names, err := pgStrings(ctx, conn, halfBuilt)
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
