package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/parley-dev/parley/internal/backup"
	"github.com/parley-dev/parley/internal/secret"
)

// Snapshot is a whole store as of one moment, for a back-up. Servers keep working meanwhile: it holds
// no locks, but reads old versions of the rows. It reads any schema that this program knows.
type Snapshot struct {
	Engine string
	Schema int

	reader reader
	form   *copyForm
	close  func() error
	keys   *secret.Keyring // Options.Keys
}

// copyForm is what the two engines do differently when rows are copied.
type copyForm struct {
	tables  string // names of all tables
	columns string // name and type of the columns of table $1
	refers  string // tables that table $1 refers to
	// from are the rows to read if they are not those of the table itself.
	from map[string]string
	// values are expressions for columns, by table and column.
	values map[string]string
	order  map[string]string // the order of rows, where it matters

	// For Check.
	intact  string // what is wrong with the database itself, or "ok"
	damaged string // ends what is wrong with what to do, unless it says so itself
	indexes string // names of all indexes
	// referring are the rows that need another row, by table, if not all rows of the table do.
	referring map[string]string
	badPacks  string // packs of events that cannot be read, by org; empty: the engine knows none
}

// derived are the tables that are not copied: they describe the database rather than the data, or
// can be made from other tables.
var derived = map[string]bool{
	"schema_migrations": true, "nodes": true, "data_versions": true, "events_new": true,
	"search_orgs": true, "search_segments": true, "search_pages": true, "search_waiting": true,
	"proposal_search": true, // the index of schemas before 28
}

// own are columns that only one engine has. proposals.seq is the row number.
var own = map[string]bool{"proposals.seq": true, "event_heads.seen": true}

func copied(table string) bool {
	return !derived[table] && !strings.HasPrefix(table, "sqlite_") && !strings.HasPrefix(table, "proposal_search_")
}

var sqliteForm = copyForm{
	tables:  `SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`,
	columns: `SELECT name, type FROM pragma_table_info($1) ORDER BY name`,
	refers:  `SELECT DISTINCT "table" FROM pragma_foreign_key_list($1)`,
	values:  map[string]string{"events.data": "pack_text(data)"},

	intact:   `PRAGMA integrity_check(50)`,
	damaged:  "; the file is damaged: stop the server, and restore a back-up",
	indexes:  `SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL`,
	badPacks: `SELECT org_id, count(*) FROM events WHERE pack_text(data) IS NULL GROUP BY org_id ORDER BY org_id`,
}

// In a snapshot, packs without numbers follow those with numbers in the order that numberPacks would
// give them.
var postgresForm = copyForm{
	tables: `SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace
		AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname`,
	columns: `SELECT column_name::text, data_type::text FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1 ORDER BY column_name COLLATE "C"`,
	refers: `SELECT DISTINCT t.relname::text FROM pg_constraint c JOIN pg_class t ON t.oid = c.confrelid
		WHERE c.contype = 'f' AND c.conrelid = to_regclass(quote_ident($1))`,
	from: map[string]string{
		"events": `(SELECT org_id, last_seq, n, at, types, data FROM events UNION ALL
			SELECT n.org_id, CAST(h.seq + sum(n.n) OVER (PARTITION BY n.org_id ORDER BY n.id) AS BIGINT), n.n, n.at, n.types,
				n.data
			FROM events_new n JOIN event_heads h ON h.org_id = n.org_id) events`,
		// Logs of deleted tasks are left until their partition is dropped.
		"task_events": `(SELECT e.* FROM task_events e JOIN tasks t ON t.org_id = e.org_id AND t.uid = e.uid) task_events`,
	},
	values: map[string]string{
		"event_heads.seq": `CAST(seq + coalesce((SELECT sum(n) FROM events_new e WHERE e.org_id = event_heads.org_id), 0)
			AS BIGINT)`,
	},
	order: map[string]string{"proposals": ` ORDER BY id COLLATE "C"`}, // the order of their row numbers on SQLite

	intact: `SELECT 'the index ' || c.relname || CASE WHEN ` + leftOver + `
				THEN ' is left from a compaction that did not end; run "parley compact"'
				ELSE ' is not valid; run REINDEX INDEX CONCURRENTLY with its name' END
		FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = current_schema() AND NOT (i.indisvalid AND i.indisready)
			AND NOT (` + leftOver + ` AND ` + compacting + `) ORDER BY c.relname`,
	indexes:   `SELECT indexname::text FROM pg_indexes WHERE schemaname = current_schema()`,
	referring: map[string]string{"task_events": "task_events_rest"}, // see tasks_partitions.go
}

// OpenSnapshot opens the store for reading.
func OpenSnapshot(ctx context.Context, o Options) (_ *Snapshot, err error) {
	var s *Snapshot
	if o.URL != "" {
		s, err = openPostgresSnapshot(ctx, o)
	} else {
		s, err = openSQLiteSnapshot(ctx, o.Dir)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.keys = o.Keys
	files, err := schemaFiles()
	if err != nil {
		return nil, err
	}
	tables, err := strs(ctx, s.reader, s.form.tables)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(tables, "orgs") || !slices.Contains(tables, "schema_migrations") {
		return nil, errors.New("the store is empty: there is nothing to back up")
	}
	if _, err := one(ctx, s.reader, []any{&s.Schema}, `SELECT max(number) FROM schema_migrations`); err != nil {
		return nil, err
	}
	if s.Schema > len(files) {
		return nil, fmt.Errorf("the store has schema %d, and this parley knows schema %d; use the version that the "+
			"servers have", s.Schema, len(files))
	}
	return s, nil
}

// openSQLiteSnapshot does not create a store, and does not lock one.
func openSQLiteSnapshot(ctx context.Context, dir string) (*Snapshot, error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no store in the folder %s; name it with --data", dir)
	}
	conn, err := openLite(path, "query_only=1", "cache_size=-8192", "temp_store=MEMORY")
	switch code := sqlite.ErrCode(err).ToPrimary(); {
	case code == sqlite.ResultCorrupt, code == sqlite.ResultNotADB:
		return nil, fmt.Errorf("%s is damaged: stop the server, and restore a back-up (%w)", path, err)
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err := conn.exec("BEGIN"); err != nil {
		return nil, errors.Join(err, conn.close())
	}
	conn.conn.SetInterrupt(ctx.Done())
	return &Snapshot{Engine: sqliteDialect.name, reader: bareLite{conn}, form: &sqliteForm, close: conn.close}, nil
}

// bareLite reads on one connection.
type bareLite struct{ *liteConn }

func (c bareLite) query(_ context.Context, sql string, args ...any) (rows, error) {
	return c.read(sql, args, func() {})
}

// Close ends the snapshot.
func (s *Snapshot) Close() error { return s.close() }

// Write writes all rows. After each table, and every some thousand rows, it calls progress.
func (s *Snapshot) Write(ctx context.Context, w *backup.Writer, progress func(table string, rows int64)) error {
	all, err := s.form.list(ctx, s.reader)
	if err != nil {
		return err
	}
	for _, t := range all {
		if err := s.writeTable(ctx, w, &t, nil, progress, s.form.query(&t)); err != nil {
			return fmt.Errorf("read the table %s: %w", t.name, err)
		}
	}
	return nil
}

// errDamagedPack is returned for a pack whose text cannot be read: SQLite has none for it.
var errDamagedPack = errors.New("a pack of events is damaged; \"parley check\" says of which org, and an older back-up " +
	"may have it")

const progressRows = 10_000

// writeTable writes the rows of a query for the columns of the table, which change, if any, changes
// before.
func (s *Snapshot) writeTable(
	ctx context.Context, w *backup.Writer, t *copyTable, change func(values []any) error,
	progress func(table string, rows int64), sql string, args ...any,
) error {
	if err := w.Table(backup.Table{Name: t.name, Columns: t.names()}); err != nil {
		return err
	}
	scan := t.scanner()
	n := int64(0)
	err := each(ctx, s.reader, func(r rows) error {
		values, err := scan(r)
		if err == nil && change != nil {
			err = change(values)
		}
		if err != nil {
			return err
		}
		if n++; n%progressRows == 0 {
			progress(t.name, n)
		}
		return w.Row(values)
	}, sql, args...)
	progress(t.name, n)
	return err
}

// scanner returns a function that reads the columns of the current row. What it returns is valid until
// the next call.
func (t *copyTable) scanner() func(rows) ([]any, error) {
	dest, values := make([]any, len(t.columns)), make([]any, len(t.columns))
	for i, c := range t.columns {
		if dest[i] = new(string); c.integer {
			dest[i] = new(int64)
		}
	}
	return func(r rows) ([]any, error) {
		if err := r.Scan(dest...); err != nil {
			return nil, err
		}
		for i, d := range dest {
			switch d := d.(type) {
			case *string:
				if values[i] = *d; *d == "" && t.name+"."+t.columns[i].name == "events.data" {
					return nil, errDamagedPack
				}
			case *int64:
				values[i] = *d
			}
		}
		return values, nil
	}
}

// copyTable is a table whose rows are copied.
type copyTable struct {
	name    string
	columns []copyColumn
	refers  []string
}

type copyColumn struct {
	name    string
	integer bool // otherwise it is text
}

func (t *copyTable) names() []string {
	out := make([]string, len(t.columns))
	for i, c := range t.columns {
		out[i] = c.name
	}
	return out
}

// query returns the query for all rows of a table.
func (f *copyForm) query(t *copyTable) string { return f.queryWhere(t, "", nil) }

// queryWhere returns the query for the rows of a table for which a condition holds; empty: for all.
// changed are expressions for columns, by table and column, that take precedence over those of f.
func (f *copyForm) queryWhere(t *copyTable, where string, changed map[string]string) string {
	values := t.names()
	for i, name := range values {
		if v, ok := f.values[t.name+"."+name]; ok {
			values[i] = v
		}
		if v, ok := changed[t.name+"."+name]; ok {
			values[i] = v
		}
	}
	from := t.name
	if f.from[from] != "" {
		from = f.from[from]
	}
	if where != "" {
		where = ` WHERE ` + where
	}
	return `SELECT ` + strings.Join(values, ", ") + ` FROM ` + from + where + f.order[t.name]
}

// list returns the tables to copy. Those that others refer to come first.
func (f *copyForm) list(ctx context.Context, r reader) ([]copyTable, error) {
	names, err := strs(ctx, r, f.tables)
	if err != nil {
		return nil, err
	}
	known := map[string]*copyTable{}
	for _, name := range names {
		if !copied(name) {
			continue
		}
		t := &copyTable{name: name}
		if err := each(ctx, r, func(r rows) error {
			var c copyColumn
			var kind string
			if err := r.Scan(&c.name, &kind); err != nil {
				return err
			}
			switch strings.ToLower(kind) {
			case "bigint", "integer":
				c.integer = true
			case "text":
			default:
				if !own[name+"."+c.name] {
					return fmt.Errorf("the column %s has the unknown type %s", c.name, kind)
				}
			}
			if !own[name+"."+c.name] {
				t.columns = append(t.columns, c)
			}
			return nil
		}, f.columns, name); err != nil {
			return nil, fmt.Errorf("table %s: %w", name, err)
		}
		if t.refers, err = strs(ctx, r, f.refers, name); err != nil {
			return nil, err
		}
		known[name] = t
	}
	return inOrder(known), nil
}

// inOrder sorts tables by name, but puts each one after those that it refers to.
func inOrder(tables map[string]*copyTable) []copyTable {
	var out []copyTable
	done := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		t := tables[name]
		if t == nil || done[name] {
			return
		}
		done[name] = true
		for _, other := range t.refers {
			add(other)
		}
		out = append(out, *t)
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		add(name)
	}
	return out
}
