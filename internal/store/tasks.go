package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// InsertTask implements task.Store. Nothing has to be read for it: a taken key
// fails the insert on PostgreSQL and changes no row on SQLite, where a failed
// statement would cost the other writes of the batch their shared commit.
func (s *Store) InsertTask(ctx context.Context, c task.Change, lease time.Duration) error {
	t := &c.Task
	events, err := encodeEvents(c.Events) // outside of the one writer
	if err != nil {
		return err
	}
	write := s.insertFor(events)
	if t.FollowupID != "" && sizeOf(events) < wideWrite {
		write = s.eng.write // it reads the follow-up
	}
	return write(ctx, func(x *tx) error {
		expires, arg := x.d.leaseUntil("$14", lease, t.Lease.ExpiresAt)
		more, values := "", ""
		args := []any{
			t.Org, t.UID, t.Agent, t.Sender.Org, t.Sender.Ref(), t.ID, t.ContextID, string(t.State), flag(t.Queued), t.Seq, t.Size,
			t.Lease.Token, t.Lease.Worker, arg, t.Delivered, t.LastTurn, micros(t.CreatedAt),
		}
		if t.FollowupID != "" || len(t.Metadata) > 0 { // seldom; each parameter costs
			more, values = ", followup_id, metadata", ", $18, $19"
			args = append(args, t.FollowupID, string(t.Metadata))
		}
		if c.Push != nil {
			more, values = more+", push", values+", 1"
		}
		x.execUnless(errTaken, `INSERT INTO tasks (org_id, uid, agent_id, sender_org, sender, id, context_id, state, queued, seq, size,
				lease, lease_worker, lease_expires, delivered, last_turn, created_at, updated_at, status_seq`+more+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, `+expires+`, $15, $16, $17, $17, $10`+values+`)`+x.d.orNothing, args...)
		x.insertEvents(t, events)
		if c.Push != nil {
			x.insertPush(t, c.Push)
		}
		return x.mirror(ctx, t, true)
	})
}

// FinishTask implements task.Store. The row is not read again: it is changed if it still is
// what the caller knows.
func (s *Store) FinishTask(ctx context.Context, known task.Task, c task.Change) error {
	events, err := encodeEvents(c.Events)
	if err != nil {
		return err
	}
	t := &c.Task
	if t.FollowupID != "" || known.Push {
		_, err := s.UpdateTask(ctx, known.Org, known.UID, 0, func(cur task.Current) (task.Change, error) {
			if cur.Task.Seq != known.Seq || cur.Task.Push != known.Push || cur.Task.Lease.Token != known.Lease.Token ||
				!cur.Clock.Before(cur.Task.Lease.ExpiresAt) {
				return task.Change{}, task.ErrChanged
			}
			return c, nil
		})
		return err
	}
	return s.insertFor(events)(ctx, func(x *tx) error {
		x.execUnless(task.ErrChanged, x.d.orFail(`UPDATE tasks SET state = $3, seq = $4, size = $5, lease = '', lease_expires = 0,
				delivered = $4, last_turn = $6, updated_at = $7, status_seq = $10
			WHERE org_id = $1 AND uid = $2 AND seq = $8 AND lease = $9 AND lease_expires > `+x.d.clockOr("$7")+` AND push = 0`),
			t.Org, t.UID, string(t.State), t.Seq, t.Size, t.LastTurn, micros(t.UpdatedAt), known.Seq, known.Lease.Token, t.StatusSeq)
		x.insertEvents(t, events)
		return nil
	})
}

// insertFor is how events are written with others. What shares a batch with a large one
// waits for it.
func (s *Store) insertFor(events []logRow) func(context.Context, func(*tx) error) error {
	switch {
	case sizeOf(events) >= wideWrite:
		return s.eng.writeWide
	case wideRows(events):
		return s.eng.write
	}
	return s.eng.add
}

// UpdateTask implements task.Store.
func (s *Store) UpdateTask(
	ctx context.Context, org, uid string, bytes int64, decide func(task.Current) (task.Change, error),
) (task.Change, error) {
	return s.updateTask(ctx, s.writeFor(bytes), bytes, decide, `org_id = $1 AND uid = $2`, org, uid)
}

// UpdateTaskOnce implements task.Store.
func (s *Store) UpdateTaskOnce(
	ctx context.Context, org, uid string, bytes int64, decide func(task.Current) (task.Change, error),
) (task.Change, error) {
	// What is kept is taken from the change that is written, not from a variable that
	// decide sets: of several runs, the last need not be the one that is written.
	var out task.Change
	write := func(ctx context.Context, fn func(*tx) error) error { return s.writeOnce(ctx, &out.Reported, fn) }
	err := s.updateTaskTo(ctx, &out, write, bytes, decide, `org_id = $1 AND uid = $2`, org, uid)
	if idempotency.From(ctx).Replayed() {
		out = task.Change{Reported: out.Reported} // nothing else was written
	}
	return out, err
}

// UpdateTaskByKey implements task.Store.
func (s *Store) UpdateTaskByKey(
	ctx context.Context, k task.Key, bytes int64, decide func(task.Current) (task.Change, error),
) (task.Change, error) {
	return s.updateTask(ctx, s.writeFor(bytes), bytes, decide, keyCondition, k.Org, k.Agent, k.Sender.Org, k.Sender.Ref(), k.ID)
}

// writeFor is how a task is changed that may get so many bytes of text.
func (s *Store) writeFor(bytes int64) func(context.Context, func(*tx) error) error {
	if bytes >= wideWrite {
		return s.eng.writeWide
	}
	return s.eng.write
}

const keyCondition = `tasks.org_id = $1 AND agent_id = $2 AND sender_org = $3 AND sender = $4 AND id = $5`

func (s *Store) updateTask(
	ctx context.Context, write func(context.Context, func(*tx) error) error, bytes int64,
	decide func(task.Current) (task.Change, error), where string, args ...any,
) (out task.Change, err error) {
	err = s.updateTaskTo(ctx, &out, write, bytes, decide, where, args...)
	return out, err
}

func (s *Store) updateTaskTo(
	ctx context.Context, out *task.Change, write func(context.Context, func(*tx) error) error, bytes int64,
	decide func(task.Current) (task.Change, error), where string, args ...any,
) error {
	decided := encoded(decide)
	if s.d == &sqliteDialect && bytes >= wideRow {
		decided = s.decideAhead(ctx, decided, where, args...)
	}
	return write(ctx, func(x *tx) error {
		cur, err := s.currentTask(ctx, x, where+x.d.forUpdate, args...)
		if err == nil {
			*out, err = x.applyTask(ctx, cur, decided)
		}
		return err
	})
}

// currentTask reads the row that a decision is made on.
func (s *Store) currentTask(ctx context.Context, r reader, where string, args ...any) (task.Current, error) {
	found := false
	var cur task.Current
	err := each(ctx, r, func(r rows) (err error) {
		found = true
		cur, err = s.scanTask(r)
		return err
	}, `SELECT `+taskColumns+`, `+s.d.clock+` FROM tasks WHERE `+where, args...)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return cur, err
}

// applyTask runs a decision and queues what it asks for.
func (x *tx) applyTask(ctx context.Context, cur task.Current, decided decision) (task.Change, error) {
	c, events, err := decided(cur)
	if err != nil {
		return c, err
	}
	old, t := &cur.Task, &c.Task
	if old.Push || c.Push != nil {
		if err := x.pushChange(ctx, &cur, &c); err != nil {
			return c, err
		}
	}
	if len(c.Events) == 0 && t.Lease == old.Lease && t.Delivered == old.Delivered {
		return c, nil
	}
	x.exec(`UPDATE tasks SET state = $3, queued = $4, seq = $5, size = $6, lease = $7, lease_worker = $8, lease_expires = $9,
			attempts = $10, delivered = $11, last_turn = $12, updated_at = $13, status_seq = $14
		WHERE org_id = $1 AND uid = $2`,
		t.Org, t.UID, string(t.State), flag(t.Queued), t.Seq, t.Size, t.Lease.Token, t.Lease.Worker, micros(t.Lease.ExpiresAt),
		t.Attempts, t.Delivered, t.LastTurn, micros(t.UpdatedAt), t.StatusSeq)
	x.insertEvents(t, events)
	if t.State == old.State {
		return c, nil
	}
	return c, x.mirror(ctx, t, false)
}

// ClaimTasks implements task.Store.
func (s *Store) ClaimTasks(
	ctx context.Context, org, agent string, b task.Batch, decide func(task.Current) (task.Change, error),
) ([]task.Change, error) {
	// Most look-ups find nothing. They need not wait for the writer.
	waiting := false
	if err := each(ctx, s.eng, func(rows) error { waiting = true; return nil },
		`SELECT 1 FROM tasks`+s.d.queue+` WHERE org_id = $1 AND agent_id = $2 AND queued = 1 LIMIT 1`, org, agent); err != nil || !waiting {
		return nil, err
	}
	return s.updateMany(ctx, b.Bytes, decide,
		s.d.queue+fmt.Sprintf(` WHERE org_id = $1 AND agent_id = $2 AND queued = 1 ORDER BY uid LIMIT %d`, b.Most), org, agent)
}

// ExpireLeases implements task.Store. Leases that end further ahead than any can
// were made before the clock was set back.
func (s *Store) ExpireLeases(ctx context.Context, most int, decide func(task.Current) (task.Change, error)) ([]task.Change, error) {
	now := s.d.clockNow(s.now)
	var out []task.Change
	for _, over := range []string{
		` WHERE lease_expires > 0 AND lease_expires <= ` + now.sql,
		fmt.Sprintf(` WHERE lease_expires > 0 AND lease_expires > %s + %d`, now.sql, task.MaxAhead.Microseconds()),
	} {
		found := false
		if err := each(ctx, s.eng, func(rows) error { found = true; return nil },
			`SELECT 1 FROM tasks`+over+` LIMIT 1`, now.args...); err != nil {
			return out, err
		}
		if !found {
			continue
		}
		changes, err := s.updateMany(ctx, 0, decide, over+fmt.Sprintf(` ORDER BY lease_expires LIMIT %d`, most), now.args...)
		if out = append(out, changes...); err != nil {
			return out, err
		}
	}
	return out, nil
}

// LeasesOf implements task.Store.
func (s *Store) LeasesOf(ctx context.Context, workerPrefix string, most int, decide func(task.Current) (task.Change, error)) ([]task.Change, error) {
	return s.updateMany(ctx, 0, decide, ` WHERE lease_expires > 0 AND substr(lease_worker, 1, length($1)) = $1 ORDER BY lease_expires LIMIT $2`,
		workerPrefix, most)
}

// updateMany runs a decision on several rows; rows that another node is at are
// passed over. It stops before a row with which the tasks would hold more than the
// given bytes; 0: no bound.
func (s *Store) updateMany(
	ctx context.Context, bytes int64, decide func(task.Current) (task.Change, error), which string, args ...any,
) ([]task.Change, error) {
	var out []task.Change
	err := s.eng.write(ctx, func(x *tx) error {
		out = nil
		var found []task.Current
		err := each(ctx, x, func(r rows) error {
			cur, err := s.scanTask(r)
			found = append(found, cur)
			return err
		}, `SELECT `+taskColumns+`, `+x.d.clock+` FROM tasks`+which+x.d.skipLocked, args...)
		if err != nil {
			return err
		}
		size := int64(0)
		for i, cur := range found {
			if size += cur.Task.Size; bytes > 0 && size > bytes && i > 0 {
				break
			}
			c, err := x.applyTask(ctx, cur, encoded(decide))
			if err != nil {
				return err
			}
			if len(c.Events) > 0 {
				out = append(out, c)
			}
		}
		return nil
	})
	return out, err
}

const taskColumns = `tasks.org_id, tasks.uid, agent_id, sender_org, sender, id, context_id, followup_id, state, queued, tasks.seq, size,
	lease, lease_worker, lease_expires, attempts, delivered, last_turn, created_at, updated_at, metadata, tasks.push, status_seq`

func (s *Store) scanTask(r rows, more ...any) (task.Current, error) {
	var cur task.Current
	t := &cur.Task
	var sender, state, metadata string
	var queued, expires, created, updated, push, clock int64
	dest := []any{
		&t.Org, &t.UID, &t.Agent, &t.Sender.Org, &sender, &t.ID, &t.ContextID, &t.FollowupID, &state, &queued, &t.Seq, &t.Size,
		&t.Lease.Token, &t.Lease.Worker, &expires, &t.Attempts, &t.Delivered, &t.LastTurn, &created, &updated, &metadata, &push, &t.StatusSeq, &clock,
	}
	if err := r.Scan(append(dest, more...)...); err != nil {
		return cur, err
	}
	kind, id, _ := strings.Cut(sender, ":")
	t.Sender.Kind, t.Sender.ID = identity.Kind(kind), id
	t.State, t.Queued, t.Lease.ExpiresAt = task.State(state), queued != 0, fromMicros(expires)
	t.CreatedAt, t.UpdatedAt, t.Push = fromMicros(created), fromMicros(updated), push != 0
	if metadata != "" {
		t.Metadata = json.RawMessage(metadata)
	}
	if cur.Clock = fromMicros(clock); clock == 0 {
		cur.Clock = s.now()
	}
	return cur, nil
}

// Tasks implements task.Store.
func (s *Store) Tasks(ctx context.Context, f task.Filter) ([]task.Task, error) {
	where, args := []string{"org_id = $1"}, []any{f.Org}
	add := func(condition string, value any) {
		args = append(args, value)
		where = append(where, fmt.Sprintf(condition, len(args)))
	}
	if f.Agent != "" {
		add("agent_id = $%d", f.Agent)
	}
	if f.Sender != nil {
		add("sender_org = $%d", f.Sender.Org)
		add("sender = $%d", f.Sender.Ref())
	}
	if f.State != "" {
		add("state = $%d", string(f.State))
	}
	if f.ContextID != "" {
		add("context_id = $%d", f.ContextID)
	}
	if f.FollowupID != "" {
		add("followup_id = $%d", f.FollowupID)
	}
	if f.Before != "" {
		add("uid < $%d", f.Before)
	}
	// No index holds the filters in the order of the list: a rare match is found by
	// walking the tasks of the org.
	large, filtered := false, f.Agent != "" || f.Sender != nil || f.State != "" || f.ContextID != "" || f.FollowupID != ""
	if filtered {
		var err error
		if large, err = s.large(ctx, `tasks WHERE org_id = $1`, f.Org); err != nil {
			return nil, err
		}
	}
	args = append(args, f.Limit)
	out := []task.Task{}
	err := s.slowIf(ctx, large, f.Org, func(ctx context.Context, r reader) error {
		return each(ctx, r, func(r rows) error {
			cur, err := s.scanTask(r)
			out = append(out, cur.Task)
			return err
		}, fmt.Sprintf(`SELECT %s, 0 FROM tasks WHERE %s ORDER BY uid DESC LIMIT $%d`, taskColumns, strings.Join(where, " AND "), len(args)), args...)
	})
	return out, err
}

// TaskSeqs implements task.Store.
func (s *Store) TaskSeqs(ctx context.Context, refs []task.Ref) (map[task.Ref]int64, error) {
	out := make(map[task.Ref]int64, len(refs))
	byOrg := map[string][]any{}
	for _, r := range refs {
		byOrg[r.Org] = append(byOrg[r.Org], r.UID)
	}
	for org, uids := range byOrg {
		marks := make([]string, len(uids))
		for i := range uids {
			marks[i] = fmt.Sprintf("$%d", i+2)
		}
		err := each(ctx, s.eng, func(r rows) error {
			ref := task.Ref{Org: org}
			var seq int64
			err := r.Scan(&ref.UID, &seq)
			out[ref] = seq
			return err
		}, `SELECT uid, seq FROM tasks WHERE org_id = $1 AND uid IN (`+strings.Join(marks, ", ")+`)`, append([]any{org}, uids...)...)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// SweepTasks implements task.Store. Ids are sortable by time of creation, so each
// org's oldest come first.
func (s *Store) SweepTasks(ctx context.Context, endedBefore time.Time, most int) (int, error) {
	orgs, err := s.Identity().Orgs(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, o := range orgs {
		if n >= most {
			break
		}
		m, err := s.sweepOrg(ctx, o.ID, endedBefore, most-n)
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (s *Store) sweepOrg(ctx context.Context, org string, endedBefore time.Time, most int) (int, error) {
	n := 0
	err := s.eng.write(ctx, func(x *tx) error {
		n = 0
		return each(ctx, x, func(r rows) error {
			var uid string
			var push int64
			if err := r.Scan(&uid, &push); err != nil {
				return err
			}
			n++
			x.exec(`DELETE FROM task_events WHERE org_id = $1 AND uid = $2`, org, uid)
			x.exec(`DELETE FROM tasks WHERE org_id = $1 AND uid = $2`, org, uid)
			if push != 0 {
				x.exec(`DELETE FROM push_configs WHERE org_id = $1 AND uid = $2`, org, uid)
			}
			return nil
		}, `SELECT uid, push FROM tasks WHERE org_id = $1 AND updated_at < $2 AND created_at < $2
			AND state IN ('completed', 'failed', 'canceled', 'rejected') ORDER BY uid LIMIT $3`, org, micros(endedBefore), most)
	})
	return n, err
}
