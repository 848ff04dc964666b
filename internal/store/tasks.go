package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// Tasks stores tasks and their logs.
type Tasks struct{ *db }

// Tasks returns the implementation of the task interfaces of dispatch and of stream.Log.
func (s *Store) Tasks() Tasks { return Tasks{s.db} }

// Insert implements dispatch.TaskWriter. It reads nothing: a taken key makes the insert fail on
// PostgreSQL and changes no row on SQLite, where a failed statement would undo the shared commit
// of the batch.
func (ts Tasks) Insert(ctx context.Context, c task.Change, lease time.Duration) error {
	return ts.insert(ctx, c, lease, nil)
}

// InsertOnce implements dispatch.TaskWriter.
func (ts Tasks) InsertOnce(ctx context.Context, c task.Change, lease time.Duration) error {
	uid := c.Task.UID
	err := ts.insert(ctx, c, lease, func(ctx context.Context, fn func(*tx) error) error {
		return ts.writeOnce(ctx, &uid, fn)
	})
	if err == nil && uid != c.Task.UID {
		err = &dispatch.Inserted{UID: uid}
	}
	return err
}

// insert writes a new task, with write if it is not nil.
func (ts Tasks) insert(
	ctx context.Context, c task.Change, lease time.Duration, write func(context.Context, func(*tx) error) error,
) error {
	t := &c.Task
	events, err := encodeEvents(c.Events) // not in the only writer
	if err != nil {
		return err
	}
	policy, err := encodePolicy(t.Policy)
	if err != nil {
		return err
	}
	actor := senderOf(t)
	created := ts.hooks.taskEvent(event.TaskCreated, t, actor)
	switch {
	case write != nil:
	case (t.FollowupID != "" || c.Charge != nil) && sizeOf(events) < wideWrite:
		write = ts.eng.write // it reads the follow-up, or the count
	default:
		write = ts.insertFor(events)
	}
	insert := func(x *tx) error {
		count := func() {}
		if c.Charge != nil {
			var err error
			if count, err = x.charge(ctx, t, c.Charge); err != nil {
				return err
			}
		}
		expires, arg := x.d.leaseUntil("$14", lease, t.Lease.ExpiresAt)
		more, values := "", ""
		args := []any{
			t.Org, t.UID, t.Agent, t.Sender.Org, t.Sender.Ref(), t.ID, t.ContextID, string(t.State), flag(t.Queued),
			t.Seq, t.Size, t.Lease.Token, t.Lease.Worker, arg, t.Delivered, t.LastTurn, micros(t.CreatedAt),
		}
		if t.FollowupID != "" || len(t.Metadata) > 0 { // rare, and each parameter has a cost
			more, values = ", followup_id, metadata", ", $18, $19"
			args = append(args, t.FollowupID, string(t.Metadata))
		}
		if t.Trace != "" {
			args = append(args, t.Trace)
			more, values = more+", trace", values+fmt.Sprintf(", $%d", len(args))
		}
		if policy != "" {
			args = append(args, policy, micros(t.WakeAt))
			more, values = more+", policy, wake_at", values+fmt.Sprintf(", $%d, $%d", len(args)-1, len(args))
		}
		if c.Push != nil {
			more, values = more+", push", values+", 1"
		}
		if as := listedAs(t.State); as != "" {
			more, values = more+", listed", values+", '"+as+"'"
		}
		x.insertUnless(errTaken, `INSERT INTO tasks (org_id, uid, agent_id, sender_org, sender, id, context_id, state,
				queued, seq, size, lease, lease_worker, lease_expires, delivered, last_turn, created_at, updated_at,
				status_seq`+more+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, `+expires+`, $15, $16, $17, $17,
				$10`+values+`)`, args...)
		x.insertEvents(t, events)
		if c.Push != nil {
			if err := x.insertPush(t, c.Push); err != nil {
				return err
			}
		}
		count()
		x.emit(created)
		return x.mirror(ctx, t, true, c.Replaces, actor)
	}
	if c.Charge != nil {
		return ts.charged(ctx, t, func() error { return write(ctx, insert) })
	}
	return write(ctx, insert)
}

// Finish implements dispatch.TaskWriter. It does not read the row again, but changes it only if
// it is still the known one.
func (ts Tasks) Finish(ctx context.Context, known task.Task, c task.Change) error {
	events, err := encodeEvents(c.Events)
	if err != nil {
		return err
	}
	t := &c.Task
	if t.FollowupID != "" || known.Push || !t.Policy.IsZero() {
		_, err := ts.Update(ctx, known.Org, known.UID, 0, func(cur task.Current) (task.Change, error) {
			if cur.Task.Seq != known.Seq || cur.Task.Push != known.Push || cur.Task.Policy.Overdue(cur.Clock) ||
				cur.Task.Lease.Token != known.Lease.Token || !cur.Clock.Before(cur.Task.Lease.ExpiresAt) {
				return task.Change{}, dispatch.ErrChanged
			}
			return c, nil
		})
		return err
	}
	changed := ts.hooks.taskChange(&known, &c)
	return ts.insertFor(events)(ctx, func(x *tx) error {
		x.finishTask(t, &known)
		x.list(t, known.State)
		x.insertEvents(t, events)
		x.emit(changed...)
		return nil
	})
}

// finishTask queues the update of a task by Finish. finishTasks does the same for many tasks, with
// the same parameters for each.
func (x *tx) finishTask(t, known *task.Task) {
	x.statements = append(x.statements, statement{
		sql: x.d.orFail(`UPDATE tasks SET state = $3, seq = $4, size = $5, lease = '', lease_expires = 0,
				delivered = $4, last_turn = $6, updated_at = $7, status_seq = $10
			WHERE org_id = $1 AND uid = $2 AND seq = $8 AND lease = $9
				AND lease_expires > ` + x.d.leaseClock("$7") + ` AND push = 0`),
		args: []any{
			t.Org, t.UID, string(t.State), t.Seq, t.Size, t.LastTurn, micros(t.UpdatedAt), known.Seq,
			known.Lease.Token, t.StatusSeq,
		},
		unless: dispatch.ErrChanged, many: x.d.finishTasks,
	})
}

// finishTasks looks up each task in an index, whatever PostgreSQL knows about the table; OFFSET 0
// keeps the planner from another order. The update repeats the conditions. If it waits for another
// transaction, PostgreSQL tests them again on the new version of the row, but not those of the
// subquery, and before the minor releases of November 2025 not the ctid either. Without them it
// would overwrite what the other transaction has changed.
var finishTasks = many{
	`WITH done (org_id, uid, state, seq, size, last_turn, updated_at, known, lease, status_seq) AS (
		VALUES ($1::text, $2::text, $3::text, $4::bigint, $5::bigint, $6::text, $7::bigint, $8::bigint,
			$9::text, $10::bigint)`,
	`), changed AS (
		UPDATE tasks SET state = done.state, seq = done.seq, size = done.size, lease = '', lease_expires = 0,
			delivered = done.seq, last_turn = done.last_turn, updated_at = done.updated_at,
			status_seq = done.status_seq
		FROM done CROSS JOIN LATERAL (SELECT ctid FROM tasks
			WHERE org_id = done.org_id AND uid = done.uid AND seq = done.known AND lease = done.lease
				AND lease_expires > ` + postgresClock + ` AND push = 0 OFFSET 0) found
		WHERE tasks.ctid = found.ctid AND tasks.seq = done.known AND tasks.lease = done.lease
			AND tasks.lease_expires > ` + postgresClock + ` AND tasks.push = 0
		RETURNING 1
	) SELECT 1 / (CASE WHEN count(*) = (SELECT count(*) FROM done) THEN 1 ELSE 0 END) FROM changed`, // codeMoved
}

// insertFor returns how to write events: large ones are kept out of batches, because all writes
// of a batch wait for each other.
func (ts Tasks) insertFor(events []logRow) func(context.Context, func(*tx) error) error {
	switch {
	case sizeOf(events) >= wideWrite:
		return ts.eng.writeWide
	case wideRows(events):
		return ts.eng.write
	}
	return ts.eng.add
}

// Update implements dispatch.TaskWriter.
func (ts Tasks) Update(
	ctx context.Context, org, uid string, bytes int64, decide dispatch.Decision,
) (task.Change, error) {
	return ts.update(ctx, ts.writeFor(bytes), bytes, decide, `org_id = $1 AND uid = $2`, org, uid)
}

// UpdateOnce implements dispatch.TaskWriter.
func (ts Tasks) UpdateOnce(
	ctx context.Context, org, uid string, bytes int64, decide dispatch.Decision,
) (task.Change, error) {
	// The kept outcome comes from the change that is written, not from a variable that decide
	// sets: of several runs, the last one need not be the one that is written.
	var out task.Change
	write := func(ctx context.Context, fn func(*tx) error) error {
		return ts.writeOnce(ctx, &out.Reported, fn)
	}
	err := ts.updateTo(ctx, &out, write, bytes, decide, `org_id = $1 AND uid = $2`, org, uid)
	if idempotency.From(ctx).Replayed() {
		out = task.Change{Reported: out.Reported} // nothing else was written
	}
	return out, err
}

// UpdateByKey implements dispatch.TaskWriter.
func (ts Tasks) UpdateByKey(
	ctx context.Context, k task.Key, bytes int64, decide dispatch.Decision,
) (task.Change, error) {
	return ts.update(ctx, ts.writeFor(bytes), bytes, decide, keyCondition,
		k.Org, k.Agent, k.Sender.Org, k.Sender.Ref(), k.ID)
}

// writeFor returns how to write a task that may get so many bytes of text.
func (ts Tasks) writeFor(bytes int64) func(context.Context, func(*tx) error) error {
	if bytes >= wideWrite {
		return ts.eng.writeWide
	}
	return ts.eng.write
}

const keyCondition = `tasks.org_id = $1 AND agent_id = $2 AND sender_org = $3 AND sender = $4 AND id = $5`

func (ts Tasks) update(
	ctx context.Context, write func(context.Context, func(*tx) error) error, bytes int64,
	decide dispatch.Decision, where string, args ...any,
) (out task.Change, err error) {
	err = ts.updateTo(ctx, &out, write, bytes, decide, where, args...)
	return out, err
}

func (ts Tasks) updateTo(
	ctx context.Context, out *task.Change, write func(context.Context, func(*tx) error) error, bytes int64,
	decide dispatch.Decision, where string, args ...any,
) error {
	decided := encoded(decide)
	if ts.d == &sqliteDialect && bytes >= wideRow {
		decided = ts.decideAhead(ctx, decided, where, args...)
	}
	return write(ctx, func(x *tx) error {
		cur, err := ts.current(ctx, x, where+x.d.forUpdate, args...)
		if err == nil {
			*out, err = x.applyTask(ctx, cur, decided)
		}
		return err
	})
}

// current reads the row that a decision depends on.
func (ts Tasks) current(ctx context.Context, r reader, where string, args ...any) (task.Current, error) {
	found := false
	var cur task.Current
	err := each(ctx, r, func(r rows) (err error) {
		found = true
		cur, err = ts.scanTask(r)
		return err
	}, `SELECT `+taskColumns+`, `+ts.d.clock+` FROM tasks WHERE `+where, args...)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return cur, err
}

// applyTask runs a decision and queues its writes.
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
	woken := !t.WakeAt.Equal(old.WakeAt)
	if len(c.Events) == 0 && t.Lease == old.Lease && t.Delivered == old.Delivered && !woken {
		return c, nil
	}
	set := ""
	args := []any{
		t.Org, t.UID, string(t.State), flag(t.Queued), t.Seq, t.Size, t.Lease.Token, t.Lease.Worker,
		micros(t.Lease.ExpiresAt), t.Attempts, t.Delivered, t.LastTurn, micros(t.UpdatedAt), t.StatusSeq,
		t.Lease.Beats,
	}
	if t.Trace != old.Trace { // rare, and each parameter has a cost
		set, args = ", trace = $16", append(args, t.Trace)
	}
	if woken {
		args = append(args, micros(t.WakeAt))
		set += fmt.Sprintf(", wake_at = $%d", len(args))
	}
	x.exec(`UPDATE tasks SET state = $3, queued = $4, seq = $5, size = $6, lease = $7, lease_worker = $8,
			lease_expires = $9, attempts = $10, delivered = $11, last_turn = $12, updated_at = $13, status_seq = $14,
			lease_beats = $15`+set+`
		WHERE org_id = $1 AND uid = $2`, args...)
	x.list(t, old.State)
	x.insertEvents(t, events)
	if t.State == old.State {
		return c, nil
	}
	x.emit(x.hooks.taskChange(old, &c)...)
	return c, x.mirror(ctx, t, false, "", actorOf(&c))
}

const taskColumns = `tasks.org_id, tasks.uid, agent_id, sender_org, sender, id, context_id, followup_id, state, queued,
	tasks.seq, size, lease, lease_worker, lease_expires, attempts, delivered, last_turn, created_at, updated_at,
	metadata, tasks.push, status_seq, lease_beats, trace, policy, wake_at`

func (ts Tasks) scanTask(r rows, more ...any) (task.Current, error) {
	var cur task.Current
	t := &cur.Task
	var sender, state, metadata, policy string
	var queued, expires, created, updated, push, wake, clock int64
	dest := []any{
		&t.Org, &t.UID, &t.Agent, &t.Sender.Org, &sender, &t.ID, &t.ContextID, &t.FollowupID, &state, &queued,
		&t.Seq, &t.Size, &t.Lease.Token, &t.Lease.Worker, &expires, &t.Attempts, &t.Delivered, &t.LastTurn,
		&created, &updated, &metadata, &push, &t.StatusSeq, &t.Lease.Beats, &t.Trace, &policy, &wake, &clock,
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
		cur.Clock = ts.now()
	}
	if t.WakeAt = fromMicros(wake); policy == "" {
		return cur, nil
	}
	var err error
	t.Policy, err = decodePolicy(policy)
	return cur, err
}
