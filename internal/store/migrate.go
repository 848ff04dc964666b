package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema, written for one engine.
type migration struct {
	number     int
	name       string
	statements []string
}

// migrations lists all steps in order. They only ever go forward.
func (d *dialect) migrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var out []migration
	for i, name := range names { // Glob sorts
		number, err := strconv.Atoi(strings.SplitN(strings.TrimPrefix(name, "migrations/"), "_", 2)[0])
		if err != nil || number != i+1 {
			return nil, fmt.Errorf("%s: migrations are numbered 0001, 0002 and so on without gaps", name)
		}
		text, err := fs.ReadFile(migrationFiles, name)
		if err != nil {
			return nil, err
		}
		out = append(out, migration{number, name, d.statementsOf(string(text))})
	}
	return out, nil
}

// statementsOf picks the blocks of this engine and splits them at the
// semicolons that end a line.
func (d *dialect) statementsOf(text string) []string {
	text = strings.NewReplacer("{{rowid}}", d.rowid, "{{without_rowid}}", d.withoutRowid).Replace(text)
	block := "all"
	var kept strings.Builder
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(trimmed, "-- @"); ok {
			block = name
		}
		if !strings.HasPrefix(trimmed, "--") && (block == "all" || block == d.name) {
			kept.WriteString(line)
		}
	}
	var out []string
	for s := range strings.SplitSeq(kept.String(), ";\n") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// pending lists the steps that the store has not taken yet. A store that is
// ahead of this program is refused: an older program would write rows that lack
// what the newer schema expects.
func (d *dialect) pending(ctx context.Context, r reader) ([]migration, error) {
	all, err := d.migrations()
	if err != nil {
		return nil, err
	}
	done := 0
	if _, err := one(ctx, r, []any{&done}, `SELECT coalesce(max(number), 0) FROM schema_migrations`); err != nil {
		return nil, err
	}
	if done > len(all) {
		return nil, fmt.Errorf("the store has schema version %d and this program knows %d; run a newer parley", done, len(all))
	}
	return all[done:], nil
}

// migrateAll takes the pending steps inside a transaction of the caller's.
func migrateAll(ctx context.Context, d *dialect, r reader, exec func(sql string, args ...any) error) error {
	if err := exec(`CREATE TABLE IF NOT EXISTS schema_migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL)`); err != nil {
		return err
	}
	todo, err := d.pending(ctx, r)
	if err != nil {
		return err
	}
	for _, m := range todo {
		for _, s := range m.statements {
			if err := exec(s); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
		if err := exec(`INSERT INTO schema_migrations (number, name) VALUES ($1, $2)`, m.number, m.name); err != nil {
			return err
		}
	}
	return nil
}
