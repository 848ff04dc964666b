package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

// Claim implements dispatch.Queue.
func (ts Tasks) Claim(
	ctx context.Context, org, agent string, b dispatch.Batch, decide dispatch.Decision,
) ([]task.Change, error) {
	// Most look-ups find nothing. They must not wait for the writer.
	waiting := false
	if err := each(ctx, ts.eng, func(rows) error { waiting = true; return nil },
		`SELECT 1 FROM tasks`+ts.d.queue+` WHERE org_id = $1 AND agent_id = $2 AND queued = 1 LIMIT 1`,
		org, agent); err != nil || !waiting {
		return nil, err
	}
	var got claimed
	err := ts.eng.write(ctx, func(x *tx) (err error) {
		got, err = ts.claimIn(ctx, x, org, agent, b, decide)
		return err
	})
	if err != nil {
		return nil, err
	}
	got.fold()
	return got.changes, nil
}

// Expire implements dispatch.Queue. Leases that end later than any new lease could were granted
// before the clock was set back.
func (ts Tasks) Expire(ctx context.Context, most int, decide dispatch.Decision) ([]task.Change, error) {
	now := ts.d.clockNow(ts.now)
	var out []task.Change
	for _, over := range []string{
		`lease_expires > 0 AND lease_expires <= ` + now.sql,
		fmt.Sprintf(`lease_expires > 0 AND lease_expires > %s + %d`, now.sql, task.MaxAhead.Microseconds()),
	} {
		d := timed{"expire the lease", "lease_expires", over, now.args}
		changes, err := ts.updateDue(ctx, most, decide, &d)
		if out = append(out, changes...); err != nil {
			return out, err
		}
	}
	return out, nil
}

// Wake implements dispatch.Queue.
func (ts Tasks) Wake(ctx context.Context, most int, decide dispatch.Decision) ([]task.Change, error) {
	now := ts.d.clockNow(ts.now)
	d := timed{"wake", "wake_at", `wake_at > 0 AND wake_at <= ` + now.sql, now.args}
	return ts.updateDue(ctx, most, decide, &d)
}

// timed selects tasks by a column with a time. The column is 0 if there is nothing to do, and has an
// index of the other rows.
type timed struct {
	verb   string // what is done to a task, for errors
	column string
	where  string
	args   []any
}

// updateDue runs a decision on tasks that are due, the earliest first.
func (ts Tasks) updateDue(ctx context.Context, most int, decide dispatch.Decision, d *timed) ([]task.Change, error) {
	// Most look-ups find nothing. They must not wait for the writer.
	found := false
	if err := each(ctx, ts.eng, func(rows) error { found = true; return nil },
		`SELECT 1 FROM tasks WHERE `+d.where+` LIMIT 1`, d.args...); err != nil || !found {
		return nil, err
	}
	changes, err := ts.updateMany(ctx, decide,
		fmt.Sprintf(` WHERE %s ORDER BY %s LIMIT %d`, d.where, d.column, most), d.args...)
	if err != nil {
		return ts.updateEach(ctx, most, decide, d)
	}
	return changes, nil
}

// updateEach is updateDue in transactions of their own, so that one row that cannot be changed does not
// keep the others.
func (ts Tasks) updateEach(
	ctx context.Context, most int, decide dispatch.Decision, d *timed,
) (out []task.Change, failed error) {
	type key struct{ org, uid string }
	var keys []key
	if err := each(ctx, ts.eng, func(r rows) error {
		var k key
		err := r.Scan(&k.org, &k.uid)
		keys = append(keys, k)
		return err
	}, fmt.Sprintf(`SELECT org_id, uid FROM tasks WHERE %s ORDER BY %s LIMIT %d`, d.where, d.column, 10*most),
		d.args...); err != nil {
		return nil, err
	}
	for _, k := range keys {
		changes, err := ts.updateMany(ctx, decide,
			` WHERE org_id = $1 AND uid = $2 AND `+d.column+` > 0`, k.org, k.uid)
		if out = append(out, changes...); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s of task %s of org %s: %w", d.verb, k.uid, k.org, err))
		}
	}
	return out, failed
}

// LeasesOf implements dispatch.Queue.
func (ts Tasks) LeasesOf(
	ctx context.Context, workerPrefix string, most int, decide dispatch.Decision,
) ([]task.Change, error) {
	return ts.updateMany(ctx, decide, ` WHERE lease_expires > 0
			AND substr(lease_worker, 1, length($1)) = $1
		ORDER BY lease_expires LIMIT $2`, workerPrefix, most)
}

// updateMany runs a decision on several rows in one transaction.
func (ts Tasks) updateMany(
	ctx context.Context, decide dispatch.Decision, which string, args ...any,
) ([]task.Change, error) {
	var out []task.Change
	err := ts.eng.write(ctx, func(x *tx) (err error) {
		out, err = ts.updateFound(ctx, x, 0, decide, which, args...)
		return err
	})
	return out, err
}

// updateFound runs a decision on several rows. It skips rows that another node has locked, and
// stops before the tasks exceed the given number of bytes; 0 means no limit.
func (ts Tasks) updateFound(
	ctx context.Context, x *tx, bytes int64, decide dispatch.Decision, which string, args ...any,
) ([]task.Change, error) {
	var found []task.Current
	err := each(ctx, x, func(r rows) error {
		cur, err := ts.scanTask(r)
		found = append(found, cur)
		return err
	}, `SELECT `+taskColumns+`, `+x.d.clock+` FROM tasks`+which+x.d.skipLocked, args...)
	if err != nil {
		return nil, err
	}
	var out []task.Change
	size := int64(0)
	for i, cur := range found {
		if size += cur.Task.Size; bytes > 0 && size > bytes && i > 0 {
			break
		}
		c, err := x.applyTask(ctx, cur, encoded(decide))
		if err != nil {
			return nil, err
		}
		if len(c.Events) > 0 {
			out = append(out, c)
		}
	}
	return out, nil
}
