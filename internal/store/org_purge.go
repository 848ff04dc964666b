package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// first are the tables of which rows go first: servers work on them by themselves, or they belong to
// rows of other tables.
var first = []string{
	"push_configs", "webhook_deliveries", "webhooks", "task_events", "tasks", "votes", "history", "friction_reports",
	"oauth_tokens", "oauth_refresh",
	// Without an owner no server can add to the others.
	"search_orgs", "search_segments", "search_pages", "search_waiting",
}

const (
	purgeRows  = 250
	purgeLarge = 50 // of tables whose rows can have megabytes
)

// purge deletes the rows of an org in small steps, except those of orgs and org_settings. allowed
// runs in each of them, and returns an error if the rows must not be deleted.
func (s *db) purge(
	ctx context.Context, org string, progress func(table string, rows int64), allowed func(context.Context, *tx) error,
) error {
	form := &sqliteForm
	if s.d == &postgresDialect {
		form = &postgresForm
	}
	all, err := form.list(ctx, s.eng)
	if err != nil {
		return err
	}
	names := slices.Clone(first)
	for _, t := range slices.Backward(all) { // rows that refer to others first
		if !slices.Contains(names, t.name) {
			names = append(names, t.name)
		}
	}
	if s.d == &postgresDialect {
		names = append(names, "events_new", "data_versions")
	}
	for _, name := range names {
		of := orgTables[name].of
		if of == "" || name == "orgs" || name == "org_settings" {
			continue
		}
		if err := s.purgeTable(ctx, name, of, org, progress, allowed); err != nil {
			return fmt.Errorf("delete rows of %s: %w", name, err)
		}
	}
	exists, n := false, 0
	if exists, err = one(ctx, s.eng, []any{&n}, `SELECT 1 FROM orgs WHERE id = $1`, org); err != nil || exists {
		return err
	}
	return s.eng.write(ctx, func(t *tx) error {
		if err := allowed(ctx, t); err != nil {
			return err
		}
		t.exec(`DELETE FROM org_settings WHERE org_id = $1`, org)
		return nil
	})
}

// purgeLeft deletes what is left of an org that does not exist, and reports whether there was
// something: an import that was killed leaves rows, and so does a server that writes after a deletion.
// The next org with this id must not get them.
func (s *db) purgeLeft(
	ctx context.Context, org string, progress func(table string, rows int64), allowed func(context.Context, *tx) error,
) (found bool, err error) {
	rows, sent := 0, 0
	if _, err := one(ctx, s.eng, []any{&rows, &sent}, s.countLeft(), org); err != nil || rows+sent == 0 {
		return false, err
	}
	if err := s.eng.write(ctx, func(t *tx) error {
		// An import that still runs ends with its next step.
		t.exec(`UPDATE org_settings SET value = $3 WHERE org_id = $1 AND name = $2`, org, settingImporting, newToken())
		return allowed(ctx, t)
	}); err != nil {
		return false, err
	}
	if err := s.purge(ctx, org, progress, allowed); err != nil || sent == 0 {
		return true, err
	}
	run := &orgRun{db: s, org: org, salt: newToken(), progress: progress, allowed: allowed, searched: map[string]int64{}}
	return true, run.forgetSenders(ctx)
}

// countLeft returns a query of two numbers, 0 or 1: whether there are rows of an org, and whether there
// are tasks that it sent to another.
func (s *db) countLeft() string {
	var some []string
	for name, r := range orgTables {
		onlyPostgres := name == "events_new" || name == "data_versions"
		if r.of != "" && (!onlyPostgres || s.d == &postgresDialect) {
			some = append(some, `EXISTS (SELECT 1 FROM `+name+` WHERE `+r.of+`)`)
		}
	}
	slices.Sort(some)
	return `SELECT CASE WHEN ` + strings.Join(some, " OR ") + ` THEN 1 ELSE 0 END,
		CASE WHEN EXISTS (SELECT 1 FROM tasks WHERE sender_org = $1 AND org_id <> $1) THEN 1 ELSE 0 END`
}

// lockOrgID makes other writes wait that create an org with this id, or delete rows because there is
// none. SQLite has one writer at a time.
func (t *tx) lockOrgID(ctx context.Context, org string) error {
	if t.d == &postgresDialect {
		_, err := t.exists(ctx, lockOrgID, "org "+org)
		return err
	}
	return nil
}

const lockOrgID = `SELECT 1 FROM pg_advisory_xact_lock(hashtextextended($1, 0))`

func (s *db) purgeTable(
	ctx context.Context, table, of, org string, progress func(table string, rows int64),
	allowed func(context.Context, *tx) error,
) error {
	size := purgeRows
	if slices.Contains([]string{"task_events", "messages", "events", "idempotency", "search_pages"}, table) {
		size = purgeLarge
	}
	statements, err := s.deletes(ctx, table, of, size)
	if err != nil {
		return err
	}
	for n := int64(0); ; n += int64(size) {
		found := 0
		left, err := one(ctx, s.eng, []any{&found}, `SELECT 1 FROM `+table+` WHERE `+of+` LIMIT 1`, org)
		if err != nil || !left {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		began := time.Now()
		if err := s.eng.write(ctx, func(t *tx) error {
			if err := allowed(ctx, t); err != nil {
				return err
			}
			for _, sql := range statements {
				t.exec(sql, org)
			}
			return nil
		}); err != nil {
			return err
		}
		progress(table, n)
		if s.d == &sqliteDialect {
			time.Sleep(min(time.Since(began), 20*time.Millisecond)) // a server may wait for the lock, which is not fair
		}
	}
}

// deletes returns the statements that delete up to size rows of an org.
func (s *db) deletes(ctx context.Context, table, of string, size int) ([]string, error) {
	if s.d == &postgresDialect {
		if table == "task_events" { // the address of a row is unique only within a partition
			return []string{`DELETE FROM task_events WHERE (org_id, uid, seq) IN (
				SELECT org_id, uid, seq FROM task_events WHERE ` + of + limit(size) + `)`}, nil
		}
		return []string{`DELETE FROM ` + table + ` WHERE ctid = ANY (ARRAY(SELECT ctid FROM ` + table + ` WHERE ` + of +
			limit(size) + `))`}, nil
	}
	key, err := strs(ctx, s.eng, `SELECT name FROM pragma_table_info($1) WHERE pk > 0 ORDER BY pk`, table)
	if err != nil {
		return nil, err
	}
	columns := strings.Join(key, ", ")
	return []string{`DELETE FROM ` + table + ` WHERE (` + columns + `) IN (SELECT ` + columns + ` FROM ` + table +
		` WHERE ` + of + limit(size) + `)`}, nil
}
