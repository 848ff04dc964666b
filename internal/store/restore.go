package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/backup"
)

// Restore fills an empty store with the rows of a back-up, of this or of the other engine, and then
// brings its schema up to date. Either all rows are restored or none: the end of the back-up decides
// whether it is complete and unchanged. Every some thousand rows it calls progress.
func Restore(ctx context.Context, o Options, from *backup.Reader, progress func(table string, rows int64)) error {
	if org := from.Header().Org; org != "" {
		return fmt.Errorf("this is an export of the org %q, not a back-up of a store; add it to a store with "+
			"\"parley org import\"", org)
	}
	return restoreRows(ctx, o, from, progress)
}

// restoreRows is Restore for a back-up of a store or of an org.
func restoreRows(ctx context.Context, o Options, from *backup.Reader, progress func(table string, rows int64)) error {
	files, err := schemaFiles()
	if err != nil {
		return err
	}
	h := from.Header()
	switch {
	case h.Schema < 1:
		return fmt.Errorf("the back-up has the unknown schema %d", h.Schema)
	case h.Schema > len(files):
		return fmt.Errorf("the back-up was made by a newer parley%s, with schema %d; this one knows schema %d, "+
			"so use that version or a newer one", version(h.Version), h.Schema, len(files))
	}
	r := &restore{from: from, progress: progress, schema: files[:h.Schema], version: o.Version}
	if o.URL != "" {
		return r.intoPostgres(ctx, o)
	}
	return r.intoSQLite(ctx, o)
}

// restore is a running Restore.
type restore struct {
	from     *backup.Reader
	progress func(table string, rows int64)
	schema   []schemaFile // of the back-up
	version  string
}

var errOccupied = errors.New("the store has an org already; restore into an empty store: " +
	"name another folder with --data, or another database with --database")

// target is the store that is being filled, in one transaction.
type target interface {
	reader
	exec(sql string, args ...any) error
	// fill adds rows to an empty table until next returns io.EOF, and returns how many.
	fill(ctx context.Context, t *copyTable, next func() ([]any, error)) (int64, error)
}

// all copies all tables. form describes the target.
func (r *restore) all(ctx context.Context, to target, form *copyForm) error {
	tables, err := form.list(ctx, to)
	if err != nil {
		return err
	}
	// Migrations add rows to some tables. Those that refer to others are emptied first.
	for _, t := range slices.Backward(tables) {
		if err := to.exec(`DELETE FROM ` + t.name); err != nil {
			return err
		}
	}
	left := map[string]copyTable{}
	for _, t := range tables {
		left[t.name] = t
	}
	for {
		b, err := r.from.NextTable()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		t, ok := left[b.Name]
		if !ok {
			return fmt.Errorf("the back-up has the table %q, which schema %d does not have", b.Name, len(r.schema))
		}
		delete(left, b.Name)
		if err := r.one(ctx, to, b, &t); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("the back-up lacks tables: %s", strings.Join(slices.Sorted(maps.Keys(left)), ", "))
	}
	return r.await(to)
}

// await queues all proposals for the text index, which a back-up does not have. It belongs to the same
// transaction: a server may use the store right after it.
func (r *restore) await(to target) error {
	const firstIndex, firstPacks = 28, 30 // schemas
	switch n := len(r.schema); {
	case n < firstIndex:
		return nil // the migration does it
	case n < firstPacks:
		return to.exec(`INSERT INTO search_waiting (org_id, proposal_id, changed) SELECT org_id, id, 0 FROM proposals ORDER BY id`)
	}
	return to.exec(awaitProposals + ` ORDER BY id`)
}

// one copies one table.
func (r *restore) one(ctx context.Context, to target, b backup.Table, t *copyTable) error {
	columns, err := t.pick(b.Columns)
	if err != nil {
		return err
	}
	t.columns = columns
	n := int64(0)
	next := func() ([]any, error) {
		values, err := r.from.Row()
		if err != nil {
			return nil, err
		}
		n++
		for i, v := range values {
			if _, integer := v.(int64); integer != columns[i].integer {
				return nil, fmt.Errorf("the back-up is damaged: row %d of %s has a wrong type in the column %s", n, t.name,
					columns[i].name)
			}
		}
		if n%progressRows == 0 {
			r.progress(t.name, n)
		}
		return values, ctx.Err()
	}
	filled, err := to.fill(ctx, t, next)
	if err != nil {
		return fmt.Errorf("restore the table %s: %w", t.name, err)
	}
	if filled != n {
		return fmt.Errorf("restore the table %s: %d of %d rows were written", t.name, filled, n)
	}
	r.progress(t.name, n)
	return nil
}

// pick returns the columns with these names. All columns of the table must be among them.
func (t *copyTable) pick(names []string) ([]copyColumn, error) {
	out := make([]copyColumn, len(names))
	for i, name := range names {
		at := slices.IndexFunc(t.columns, func(c copyColumn) bool { return c.name == name })
		if at < 0 || slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("the back-up has the column %q in the table %s, which does not fit", name, t.name)
		}
		out[i] = t.columns[at]
	}
	if len(out) != len(t.columns) {
		return nil, fmt.Errorf("the back-up lacks columns of the table %s: it has %s", t.name, strings.Join(names, ", "))
	}
	return out, nil
}
