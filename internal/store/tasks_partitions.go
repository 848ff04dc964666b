package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/parley-dev/parley/internal/errs"
)

// On PostgreSQL the log of tasks has partitions, because to delete many rows costs as much as to write
// them. A partition holds the logs of the tasks that were created in a period. The sweep deletes the
// rows of ended tasks, and leaves their logs until the partition can be dropped with all of them. The
// few logs of tasks that are kept longer then move to the rest, a partition for all other periods, from
// which the sweep deletes row by row.

const (
	// keptPeriods is the number of partitions in the time for which ended tasks are kept. More would
	// make each read slower, and fewer would keep logs longer.
	keptPeriods = 4
	// minPeriod and endlessPeriod are the lengths of a partition if tasks are kept shortly, or for ever.
	minPeriod, endlessPeriod = 24 * time.Hour, 90 * 24 * time.Hour
	// partitionLead is how long before the first task a partition is made. No node's clock is ahead by
	// as much, so no row of the period is in the rest.
	partitionLead = time.Hour
)

// periodOf returns the length of a partition for tasks that are kept for so long; 0: for ever.
func periodOf(retention time.Duration) time.Duration {
	if retention <= 0 {
		return endlessPeriod
	}
	return max(minPeriod, retention/keptPeriods)
}

// partition is a table with the logs of the tasks whose ids are from one up to another, exclusively.
// Ids begin with the time of creation.
type partition struct{ table, from, to string }

// idAt returns the start of the ids of tasks that are created at a time.
func idAt(t time.Time) string {
	var id ulid.ULID
	if err := id.SetTime(ulid.Timestamp(t)); err != nil {
		panic(err) // after the year 10889
	}
	return strings.ToLower(id.String()[:10])
}

// timeOf is the inverse of idAt. It is false for other text.
func timeOf(id string) (time.Time, bool) {
	const random = 16 // digits after the time
	parsed, err := ulid.ParseStrict(strings.ToUpper(id) + strings.Repeat("0", random))
	return ulid.Time(parsed.Time()), err == nil
}

func newPartition(from, to time.Time) partition {
	p := partition{from: idAt(from), to: idAt(to)}
	p.table = "task_events_" + p.from
	return p
}

// wide reports whether the partition would keep the logs of deleted tasks for too long.
func (p *partition) wide(retention time.Duration) bool {
	from, known := timeOf(p.from)
	to, ends := timeOf(p.to)
	return !known || !ends || to.Sub(from) > 2*periodOf(retention)
}

// missing returns the partitions to make, so that there is always one for the next period.
func missing(have []partition, now time.Time, retention time.Duration) (out []partition) {
	period, last := periodOf(retention), now.Add(partitionLead)
	for _, p := range have {
		if to, ok := timeOf(p.to); ok && to.After(last) {
			last = to
		}
	}
	for last.Before(now.Add(period)) {
		next := last.Add(period)
		out = append(out, newPartition(last, next))
		last = next
	}
	return out
}

// due returns the partitions whose tasks were all created before a time.
func due(have []partition, before time.Time) (out []partition) {
	for _, p := range have {
		if to, ok := timeOf(p.to); ok && !to.After(before) {
			out = append(out, p)
		}
	}
	return out
}

const selectPartitions = `SELECT quote_ident(c.relname), pg_get_expr(c.relpartbound, c.oid)
	FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
	WHERE i.inhparent = to_regclass('task_events') AND NOT i.inhdetachpending ORDER BY 1`

var partitionBounds = regexp.MustCompile(`^FOR VALUES FROM \((?:MINVALUE|'(\w+)')\) TO \('(\w+)'\)$`)

// logPartitions returns the partitions other than the rest.
func logPartitions(ctx context.Context, r reader) (out []partition, err error) {
	err = each(ctx, r, func(r rows) error {
		var table, bounds string
		if err := r.Scan(&table, &bounds); err != nil {
			return err
		}
		if f := partitionBounds.FindStringSubmatch(bounds); f != nil {
			out = append(out, partition{table, f[1], f[2]})
		}
		return nil
	}, selectPartitions)
	return out, err
}

// KeepPartitions makes partitions of the log of tasks for the time to come, and drops those of tasks
// that were all created before the retention. It does nothing on SQLite.
func (s *Store) KeepPartitions(ctx context.Context, now time.Time, retention time.Duration) error {
	if s.d != &postgresDialect {
		return nil
	}
	have, err := logPartitions(ctx, s.eng)
	if err != nil {
		return err
	}
	var failed error // the others are made or dropped all the same
	for _, p := range missing(have, now, retention) {
		if err := s.changePartitions(ctx, func(t *tx) error { return t.makePartition(ctx, &p) }); err != nil {
			failed = errors.Join(failed, fmt.Errorf("make the table %s: %w", p.table, err))
		}
	}
	if retention <= 0 {
		return failed
	}
	before := now.Add(-retention)
	for _, p := range due(have, before) {
		// A partition with many tasks that are kept gets some more time until they end.
		most := fewKept
		if to, _ := timeOf(p.to); to.Before(before.Add(-periodOf(retention))) {
			most = manyKept
		}
		if err := s.changePartitions(ctx, func(t *tx) error { return t.dropPartition(ctx, &p, most) }); err != nil {
			failed = errors.Join(failed, fmt.Errorf("drop the table %s: %w", p.table, err))
		}
	}
	return failed
}

// partitionLock is an advisory lock for changes of the partitions.
const partitionLock = 7_202_611_170_029

// changePartitions runs change unless another node changes partitions. If the table is in use, as by a
// back-up, it gives up soon, because requests wait behind it: the next sweep tries again.
func (s *Store) changePartitions(ctx context.Context, change func(*tx) error) error {
	err := s.eng.write(ctx, func(t *tx) error {
		var alone bool
		if _, err := one(ctx, t, []any{&alone}, `SELECT pg_try_advisory_xact_lock($1)`, int64(partitionLock)); err != nil {
			return err
		}
		if !alone {
			return nil
		}
		t.exec(`SET LOCAL lock_timeout = 50`)
		return change(t)
	})
	if errs.KindOf(err) == errs.Unavailable {
		return nil
	}
	return err
}

// makePartition makes a partition, unless another node was faster.
func (t *tx) makePartition(ctx context.Context, p *partition) error {
	have, err := logPartitions(ctx, t)
	if err != nil {
		return err
	}
	for _, other := range have {
		if other.to > p.from && other.from < p.to {
			return nil
		}
	}
	t.exec(`CREATE TABLE ` + p.table + ` PARTITION OF task_events FOR VALUES FROM ('` + p.from + `') TO ('` + p.to + `')`)
	return nil
}

// kept limits what moves to the rest when a partition is dropped. Meanwhile requests for tasks wait.
type kept struct{ tasks, bytes int64 }

var (
	fewKept  = kept{200, 1 << 20}
	manyKept = kept{20_000, 64 << 20}
)

// keptTasks are the tasks of a partition ($1, $2) that are not deleted, at most $3 of each org.
const keptTasks = `SELECT k.org_id, k.uid, k.size FROM orgs o CROSS JOIN LATERAL (
		SELECT org_id, uid, size FROM tasks WHERE org_id = o.id AND uid >= $1 AND uid < $2 ORDER BY uid LIMIT $3) k`

// dropPartition moves the logs of tasks that are not deleted to the rest, unless there are too many, and
// drops the partition with the others.
func (t *tx) dropPartition(ctx context.Context, p *partition, most kept) error {
	var found kept
	if _, err := one(ctx, t, []any{&found.tasks, &found.bytes},
		`SELECT count(*), CAST(coalesce(sum(size), 0) AS BIGINT) FROM (`+keptTasks+`) k`,
		p.from, p.to, most.tasks+1); err != nil {
		return err
	}
	if found.tasks > most.tasks || found.bytes > most.bytes {
		return nil
	}
	// The tasks of an org that is being imported may come after their logs.
	if importing, err := t.exists(ctx, `SELECT 1 FROM org_settings WHERE name = $1 LIMIT 1`, settingImporting); importing ||
		err != nil {
		return err
	}
	t.exec(`ALTER TABLE task_events DETACH PARTITION ` + p.table)
	t.exec(`INSERT INTO task_events (org_id, uid, seq, at, data)
		SELECT e.org_id, e.uid, e.seq, e.at, e.data FROM (`+keptTasks+`) k
		CROSS JOIN LATERAL (SELECT * FROM `+p.table+` WHERE org_id = k.org_id AND uid = k.uid OFFSET 0) e`,
		p.from, p.to, most.tasks+1)
	t.exec(`DROP TABLE ` + p.table)
	return nil
}

// sweptLog returns the table from which the sweep deletes the logs of tasks. The logs in partitions that
// are dropped soon are left.
func (ts Tasks) sweptLog(ctx context.Context, retention time.Duration) (string, error) {
	if ts.d != &postgresDialect {
		return "task_events", nil
	}
	have, err := logPartitions(ctx, ts.eng)
	for _, p := range have {
		if p.wide(retention) {
			return "task_events", err
		}
	}
	return "task_events_rest", err
}
