package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// recount are the statements of Repair.
var recount = []string{
	`UPDATE proposals SET votes_for = wrong.votes_for, votes_against = wrong.votes_against,
			score = wrong.votes_for - wrong.votes_against
		FROM (` + wrongVotes + `) wrong WHERE proposals.org_id = wrong.org_id AND proposals.id = wrong.id`,
	// SQLite needs the condition to tell ON CONFLICT from a join.
	`INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
			SELECT org_id, kind, who, status, category, priority, 0, n FROM (` + wrongCounters + `) wrong WHERE 1 = 1
		ON CONFLICT (org_id, kind, who, status, category, priority, slot) DO UPDATE SET n = counters.n + excluded.n`,
}

// Repair computes the numbers of votes and the totals of lists again, from the rows, and has servers
// build damaged text indexes again. Writes of proposals and follow-ups wait meanwhile. It returns how
// many numbers and indexes it changed.
func Repair(ctx context.Context, o Options) (changed int64, err error) {
	if o.URL != "" {
		return repairPostgres(ctx, o)
	}
	conn, err := openLite(filepath.Join(o.Dir, fileName), "synchronous=FULL", "foreign_keys=1", "temp_store=MEMORY")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	if err := conn.exec("BEGIN IMMEDIATE"); err != nil {
		return 0, fmt.Errorf("begin to write: %w", err)
	}
	for _, sql := range recount {
		n, err := conn.run(sql, nil)
		if err != nil {
			return 0, errors.Join(err, conn.exec("ROLLBACK"))
		}
		changed += int64(n)
	}
	n, err := rebuildIndexes(ctx, bareLite{conn}, &sqliteDialect, conn.exec)
	if err != nil {
		return 0, errors.Join(err, conn.exec("ROLLBACK"))
	}
	return changed + n, conn.exec("COMMIT")
}

// repairLocks are the tables that must not change between counting and correcting. A write locks them
// in the same order.
const repairLocks = `LOCK TABLE search_orgs, proposals, votes, followups, counters IN EXCLUSIVE MODE`

func repairPostgres(ctx context.Context, o Options) (changed int64, err error) {
	conn, err := connectBare(ctx, o)
	if err != nil {
		return 0, err
	}
	defer closeSoon(conn)
	tx, err := conn.Begin(ctx)
	if err != nil {
		return 0, err
	}
	to := postgresTarget{barePostgres{tx}, ctx}
	for _, sql := range []string{noLimits, `SET LOCAL lock_timeout = '30s'`, repairLocks} {
		if err := to.exec(sql); err != nil {
			return 0, fmt.Errorf("begin to write: %w", err)
		}
	}
	for _, sql := range recount {
		tag, err := tx.Exec(ctx, sql)
		if err != nil {
			return 0, err
		}
		changed += tag.RowsAffected()
	}
	n, err := rebuildIndexes(ctx, to, &postgresDialect, to.exec)
	if err != nil {
		return 0, err
	}
	changed += n
	// Servers drop the lists that they keep.
	if err := to.exec(`INSERT INTO data_versions (org_id, slot, version) SELECT id, 0, 1 FROM orgs
		ON CONFLICT (org_id, slot) DO UPDATE SET version = data_versions.version + 1`); err != nil {
		return 0, err
	}
	return changed, tx.Commit(ctx)
}
