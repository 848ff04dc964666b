package store

import (
	"context"
	"errors"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// CountLive implements dispatch.Stock. A live task is queued, leased, waits for its next attempt, or
// requires input or an authorization. The indexes of queued and leased tasks are not sorted by sender, because every
// send and claim would pay for it, so a count reads the live tasks of all senders. Counts are
// rare, and slow reads, so they take no connection from other requests.
func (ts Tasks) CountLive(ctx context.Context, sender identity.Principal, most int64) (int64, error) {
	total := 0
	err := ts.stale(ctx, sender.Org, func(ctx context.Context, r reader) error {
		total = 0
		for _, which := range []string{
			`tasks` + ts.d.queue + ` WHERE queued = 1`,
			`tasks` + ts.d.by("tasks_leases") + ` WHERE lease_expires > 0`,
			`tasks` + ts.d.by("tasks_wake") + ` WHERE wake_at > 0 AND queued = 0 AND lease_expires = 0 AND state = 'working'`,
			`tasks` + ts.d.by("tasks_asking") + ` WHERE ` + inTasksAsking,
		} {
			n, err := countUpTo(ctx, r, int(most)-total, which+` AND sender_org = $1 AND sender = $2`,
				sender.Org, sender.Ref())
			if total += n; err != nil || total >= int(most) {
				return err
			}
		}
		return nil
	})
	return int64(total), err
}

// Count implements dispatch.Stock. The limit on stored tasks is large, so this is a
// slow read.
func (ts Tasks) Count(ctx context.Context, org string, most int64) (int64, error) {
	n := 0
	err := ts.stale(ctx, org, func(ctx context.Context, r reader) (err error) {
		n, err = countUpTo(ctx, r, int(most), `tasks WHERE org_id = $1`, org)
		return err
	})
	return int64(n), err
}

// Sweep implements dispatch.Stock. Ids sort by time of creation, so the oldest tasks of each org
// come first.
func (ts Tasks) Sweep(ctx context.Context, endedBefore time.Time, most int) (int, error) {
	log, err := ts.sweptLog(ctx, ts.now().Sub(endedBefore))
	if err != nil {
		return 0, err
	}
	var orgs []string
	if err := each(ctx, ts.eng, func(r rows) error {
		var id string
		err := r.Scan(&id)
		orgs = append(orgs, id)
		return err
	}, `SELECT id FROM orgs ORDER BY id`); err != nil {
		return 0, err
	}
	n := 0
	var failed error
	for _, org := range orgs {
		if n >= most || ctx.Err() != nil {
			break
		}
		m, err := ts.sweepOrg(ctx, org, log, endedBefore, most-n)
		n += m
		failed = errors.Join(failed, err) // the tasks of other orgs are deleted all the same
	}
	return n, failed
}

// sweepOrg deletes tasks of one org. It looks for them outside of the write: other writes must not wait
// while it passes many old tasks that are kept.
func (ts Tasks) sweepOrg(ctx context.Context, org, log string, endedBefore time.Time, most int) (int, error) {
	const expired = `FROM tasks WHERE org_id = $1 AND uid < $2 AND updated_at < $3 AND created_at < $3
		AND state IN ('completed', 'failed', 'canceled', 'rejected')`
	until, first, last := task.UIDsFrom(endedBefore), "", ""
	found, err := one(ctx, ts.eng, []any{&first, &last}, `SELECT coalesce(min(uid), ''), coalesce(max(uid), '') FROM (
		SELECT uid `+expired+` ORDER BY uid LIMIT $4) k`, org, until, micros(endedBefore), most)
	if err != nil || !found || first == "" {
		return 0, err
	}
	n := 0
	err = ts.eng.write(ctx, func(x *tx) error {
		n = 0
		err := each(ctx, x, func(r rows) error {
			var uid string
			var push int64
			if err := r.Scan(&uid, &push); err != nil {
				return err
			}
			n++
			x.exec(`DELETE FROM `+log+` WHERE org_id = $1 AND uid = $2`, org, uid)
			x.exec(`DELETE FROM tasks WHERE org_id = $1 AND uid = $2`, org, uid)
			if push != 0 {
				x.exec(`DELETE FROM push_configs WHERE org_id = $1 AND uid = $2`, org, uid)
			}
			return nil
		}, `SELECT uid, push `+expired+` AND uid >= $4 AND uid <= $5 ORDER BY uid LIMIT $6`+x.d.skipLocked,
			org, until, micros(endedBefore), first, last, most)
		x.auditDeleted(ctx, org, sweptTasks, n, ts.now(), endedBefore)
		return err
	})
	return n, err
}
