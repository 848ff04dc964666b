package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// oldStep is the number of tasks that one statement adds.
const oldStep = 20_000

// firstOld is the end of the id of the first old task: from here on all numbers have 16 digits, as the
// end of an id has.
const firstOld = 1_000_000_000_000_000

// addOldTasks adds n finished tasks with their logs, beside the server if there is one. They are copies
// of tasks in the store, one of each agent, from a time that long ago. A store that has so many tasks
// got them over weeks: only their rows matter here, so they are written without syncing.
func addOldTasks(ctx context.Context, engine string, data []string, n int, age time.Duration) error {
	db, err := openSQL(engine, data, "synchronous(OFF)", "cache_size(-262144)", "wal_autocheckpoint(50000)")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	copies, err := newCopies(ctx, db)
	if err != nil {
		return err
	}
	progress("%s: adding %d old tasks", engine, n)
	begun := time.Now()
	for done := 0; done < n; done += oldStep {
		from := firstOld + done
		to := firstOld + min(n, done+oldStep) - 1
		// Each step is a little later, so that the ids grow with the time.
		at := begun.Add(-age).Add(time.Duration(done/oldStep) * time.Minute)
		if err := copies[done/oldStep%len(copies)].add(ctx, db, at, from, to); err != nil {
			return err
		}
	}
	progress("%s: added them in %s", engine, time.Since(begun).Round(time.Second))
	if engine == "postgres" {
		_, err = db.ExecContext(ctx, "VACUUM (ANALYZE) tasks, task_events") // as autovacuum does
	} else {
		_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	}
	return err
}

// copies adds copies of a task.
type copies struct {
	org, uid    string
	tasks, logs []string // columns
}

// newCopies finds a finished task of each agent.
func newCopies(ctx context.Context, db *sql.DB) ([]copies, error) {
	columns := map[string][]string{}
	for _, table := range []string{"tasks", "task_events"} {
		rows, err := db.QueryContext(ctx, `SELECT * FROM `+table+` LIMIT 0`)
		if err != nil {
			return nil, err
		}
		columns[table], err = rows.Columns()
		_ = rows.Close()
		if err != nil {
			return nil, err
		}
	}
	rows, err := db.QueryContext(ctx, `SELECT org_id, max(uid) FROM tasks WHERE state = 'completed'
		GROUP BY org_id, agent_id ORDER BY org_id, agent_id`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var out []copies
	for rows.Next() {
		c := copies{tasks: columns["tasks"], logs: columns["task_events"]}
		if err := rows.Scan(&c.org, &c.uid); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the store has no finished task to copy")
	}
	return out, nil
}

// add adds copies whose ids end with the numbers from one up to another.
func (c *copies) add(ctx context.Context, db *sql.DB, at time.Time, from, to int) error {
	var id ulid.ULID
	if err := id.SetTime(ulid.Timestamp(at)); err != nil {
		return err
	}
	uid := fmt.Sprintf("'%s' || CAST(n.i AS TEXT)", strings.ToLower(id.String()[:10]))
	now := fmt.Sprintf("%d", at.UnixMicro())
	own := map[string]string{"uid": uid, "id": "'t-' || " + uid, "created_at": now, "updated_at": now, "at": now}
	for table, columns := range map[string][]string{"tasks": c.tasks, "task_events": c.logs} {
		values := make([]string, len(columns))
		for i, name := range columns {
			if values[i] = own[name]; values[i] == "" {
				values[i] = "t." + name
			}
		}
		if _, err := db.ExecContext(ctx, fmt.Sprintf(`INSERT INTO %s (%s)
			WITH RECURSIVE n (i) AS (SELECT CAST(%d AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			SELECT %s FROM %s t CROSS JOIN n WHERE t.org_id = $1 AND t.uid = $2`,
			table, strings.Join(columns, ", "), from, to, strings.Join(values, ", "), table), c.org, c.uid); err != nil {
			return fmt.Errorf("copy %s: %w", table, err)
		}
	}
	return nil
}
