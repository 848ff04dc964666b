package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// restoreName is the file that a restore fills. It becomes the store when it is complete.
const restoreName = "parley.db.restore"

// intoSQLite fills a new file, which needs no journal: if anything fails, the file is removed.
func (r *restore) intoSQLite(ctx context.Context, o Options) (err error) {
	release, err := LockDir(o.Dir, "parley restore")
	if err != nil {
		return err
	}
	defer release()
	path, part := filepath.Join(o.Dir, fileName), filepath.Join(o.Dir, restoreName)
	if err := refuseOccupied(path); err != nil {
		return err
	}
	if err := remove(part); err != nil {
		return err
	}
	if err := createPrivate(part); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, remove(part))
		}
	}()
	if err := r.fillFile(ctx, part, o); err != nil {
		return err
	}
	if err := remove(path, path+"-wal", path+"-shm"); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	o.Locked = true
	return finishRestore(ctx, o)
}

// finishRestore applies the migrations that the back-up did not have. If it fails, the rows are there.
func finishRestore(ctx context.Context, o Options) error {
	s, err := Open(ctx, o)
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		return fmt.Errorf("all rows were restored, but the store is not ready yet; run \"parley migrate\" on it (%w)", err)
	}
	return nil
}

// refuseOccupied returns an error if the file is a store with an org, or no store.
func refuseOccupied(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	conn, err := openLite(path, "query_only=1")
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	n := 0
	_, err = one(context.Background(), bareLite{conn}, []any{&n}, `SELECT count(*) FROM sqlite_schema WHERE name = 'orgs'`)
	if err == nil && n > 0 {
		_, err = one(context.Background(), bareLite{conn}, []any{&n}, `SELECT count(*) FROM orgs`)
	}
	if err := errors.Join(err, conn.close()); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if n > 0 {
		return errOccupied
	}
	return nil
}

func remove(paths ...string) (err error) {
	for _, p := range paths {
		if e := os.Remove(p); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// fillFile makes the schema of the back-up in a new file and adds the rows.
func (r *restore) fillFile(ctx context.Context, path string, o Options) (err error) {
	conn, err := openLite(path, liteShrinks, "journal_mode=OFF", "synchronous=OFF", "foreign_keys=0", "cache_size=-65536",
		"temp_store=MEMORY", "locking_mode=EXCLUSIVE")
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	conn.conn.SetInterrupt(ctx.Done())
	if err := conn.exec("BEGIN"); err != nil {
		return err
	}
	to := liteTarget{bareLite{conn}}
	s := &Store{
		db:    &db{d: &sqliteDialect, now: func() time.Time { return time.Now().UTC() }},
		fence: newFence(len(r.schema)),
	}
	if err := s.migrateAll(ctx, migrator{
		reader: to, exec: conn.exec,
		stopWriters: func() error { return nil },
		others:      func(int) ([]Node, error) { return nil, nil },
	}, Options{schema: r.schema, Version: o.Version}); err != nil {
		return err
	}
	if err := r.all(ctx, to, &sqliteForm); err != nil {
		return err
	}
	var table string
	lost, err := one(ctx, to, []any{&table}, `SELECT "table" FROM pragma_foreign_key_check LIMIT 1`)
	if err != nil {
		return err
	}
	if lost {
		return fmt.Errorf("the back-up is damaged: a row of %s refers to a row that is missing", table)
	}
	if err := conn.exec("COMMIT"); err != nil {
		return err
	}
	return syncFile(path)
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// liteTarget fills a SQLite file.
type liteTarget struct{ bareLite }

// fill implements target.
func (t liteTarget) fill(_ context.Context, table *copyTable, next func() ([]any, error)) (n int64, err error) {
	insert, packed := table.insert()
	var p packer
	for {
		values, err := next()
		switch {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		}
		if packed >= 0 {
			values[packed] = p.compress([]string{values[packed].(string)})
		}
		if err := t.exec(insert, values...); err != nil {
			return n, err
		}
		n++
	}
}

// insert returns the statement that adds a row, and the position of the column that SQLite stores
// compressed, or -1.
func (t *copyTable) insert() (sql string, packed int) {
	marks := make([]string, len(t.columns))
	packed = -1
	for i, c := range t.columns {
		marks[i] = fmt.Sprintf("$%d", i+1)
		if t.name == "events" && c.name == "data" {
			packed = i
		}
	}
	return `INSERT INTO ` + t.name + ` (` + strings.Join(t.names(), ", ") + `) VALUES (` + strings.Join(marks, ", ") + `)`,
		packed
}
