package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// InsertTask implements task.Store. Nothing has to be read for it: a taken key
// fails the insert. SQLite looks all the same, because a failed statement would
// cost the other writes of the batch their shared commit.
func (s *Store) InsertTask(ctx context.Context, c task.Change, lease time.Duration) error {
	write := s.eng.add
	if c.Task.FollowupID != "" {
		write = s.eng.write
	}
	t := &c.Task
	events, err := encodeEvents(t, c.Events) // outside of the one writer
	if err != nil {
		return err
	}
	return write(ctx, func(x *tx) error {
		if x.d == &sqliteDialect {
			taken, err := x.exists(ctx, `SELECT 1 FROM tasks WHERE org_id = $1 AND agent_id = $2 AND sender_org = $3 AND sender = $4 AND id = $5`,
				t.Org, t.Agent, t.Sender.Org, t.Sender.Ref(), t.ID)
			if err != nil {
				return err
			}
			if taken {
				return errTaken
			}
		}
		expires, arg := x.d.leaseUntil("$15", lease, t.Lease.ExpiresAt)
		x.exec(`INSERT INTO tasks (org_id, uid, agent_id, sender_org, sender, id, context_id, followup_id, state, queued, seq, size,
				lease, lease_worker, lease_expires, attempts, delivered, last_turn, created_at, updated_at, metadata)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, `+expires+`, $16, $17, $18, $19, $20, $21)`,
			t.Org, t.UID, t.Agent, t.Sender.Org, t.Sender.Ref(), t.ID, t.ContextID, t.FollowupID, string(t.State), flag(t.Queued), t.Seq,
			t.Size, t.Lease.Token, t.Lease.Worker, arg, t.Attempts, t.Delivered, t.LastTurn, micros(t.CreatedAt), micros(t.UpdatedAt),
			string(t.Metadata))
		x.insertEvents(events)
		return x.mirror(ctx, t, true)
	})
}

// encodeEvents makes the rows of events, six values each.
func encodeEvents(t *task.Task, events []task.Event) ([]any, error) {
	out := make([]any, 0, 6*len(events))
	for i := range events {
		e := &events[i]
		data, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encode an event: %w", err)
		}
		out = append(out, t.Org, t.UID, e.Seq, micros(e.At), string(e.Kind), string(data))
	}
	return out, nil
}

// insertEvents queues the rows, up to four a statement: a task's first events are
// three, and few distinct statements stay prepared.
func (x *tx) insertEvents(values []any) {
	for len(values) > 0 {
		n := min(len(values)/6, len(insertEventRows))
		x.exec(insertEventRows[n-1], values[:6*n]...)
		values = values[6*n:]
	}
}

var insertEventRows = func() (out [4]string) {
	var tuples []string
	for i := range out {
		p := 6 * i
		tuples = append(tuples, fmt.Sprintf("($%d, $%d, $%d, $%d, $%d, $%d)", p+1, p+2, p+3, p+4, p+5, p+6))
		out[i] = `INSERT INTO task_events (org_id, uid, seq, at, kind, data) VALUES ` + strings.Join(tuples, ", ")
	}
	return out
}()

// UpdateTask implements task.Store.
func (s *Store) UpdateTask(ctx context.Context, org, uid string, decide func(task.Current) (task.Change, error)) (task.Change, error) {
	return s.updateTask(ctx, decide, `org_id = $1 AND uid = $2`, org, uid)
}

// UpdateTaskByKey implements task.Store.
func (s *Store) UpdateTaskByKey(ctx context.Context, k task.Key, decide func(task.Current) (task.Change, error)) (task.Change, error) {
	return s.updateTask(ctx, decide, keyCondition, k.Org, k.Agent, k.Sender.Org, k.Sender.Ref(), k.ID)
}

const keyCondition = `org_id = $1 AND agent_id = $2 AND sender_org = $3 AND sender = $4 AND id = $5`

func (s *Store) updateTask(ctx context.Context, decide func(task.Current) (task.Change, error), where string, args ...any) (task.Change, error) {
	var out task.Change
	err := s.eng.write(ctx, func(x *tx) error {
		found := false
		var cur task.Current
		err := each(ctx, x, func(r rows) (err error) {
			found = true
			cur, err = s.scanTask(r)
			return err
		}, `SELECT `+taskColumns+`, `+x.d.clock+` FROM tasks WHERE `+where+x.d.forUpdate, args...)
		if err != nil {
			return err
		}
		if !found {
			return errs.ErrNotFound
		}
		out, err = x.applyTask(ctx, cur, decide)
		return err
	})
	return out, err
}

// applyTask runs a decision and queues what it asks for.
func (x *tx) applyTask(ctx context.Context, cur task.Current, decide func(task.Current) (task.Change, error)) (task.Change, error) {
	c, err := decide(cur)
	if err != nil {
		return c, err
	}
	old, t := &cur.Task, &c.Task
	if len(c.Events) == 0 && t.Lease == old.Lease && t.Delivered == old.Delivered {
		return c, nil
	}
	events, err := encodeEvents(t, c.Events)
	if err != nil {
		return c, err
	}
	x.exec(`UPDATE tasks SET state = $3, queued = $4, seq = $5, size = $6, lease = $7, lease_worker = $8, lease_expires = $9,
			attempts = $10, delivered = $11, last_turn = $12, updated_at = $13
		WHERE org_id = $1 AND uid = $2`,
		t.Org, t.UID, string(t.State), flag(t.Queued), t.Seq, t.Size, t.Lease.Token, t.Lease.Worker, micros(t.Lease.ExpiresAt),
		t.Attempts, t.Delivered, t.LastTurn, micros(t.UpdatedAt))
	x.insertEvents(events)
	if t.State == old.State {
		return c, nil
	}
	return c, x.mirror(ctx, t, false)
}

// ClaimTasks implements task.Store.
func (s *Store) ClaimTasks(ctx context.Context, org, agent string, most int, decide func(task.Current) (task.Change, error)) ([]task.Change, error) {
	// Most look-ups find nothing. They need not wait for the writer.
	waiting := false
	if err := each(ctx, s.eng, func(rows) error { waiting = true; return nil },
		`SELECT 1 FROM tasks WHERE org_id = $1 AND agent_id = $2 AND queued = 1 LIMIT 1`, org, agent); err != nil || !waiting {
		return nil, err
	}
	return s.updateMany(ctx, decide, `org_id = $1 AND agent_id = $2 AND queued = 1 ORDER BY uid LIMIT $3`, org, agent, most)
}

// ExpireLeases implements task.Store.
func (s *Store) ExpireLeases(ctx context.Context, most int, decide func(task.Current) (task.Change, error)) ([]task.Change, error) {
	now := s.d.clockNow(s.now)
	expired := false
	if err := each(ctx, s.eng, func(rows) error { expired = true; return nil },
		`SELECT 1 FROM tasks WHERE lease_expires > 0 AND lease_expires <= `+now.sql+` LIMIT 1`, now.args...); err != nil || !expired {
		return nil, err
	}
	return s.updateMany(ctx, decide, `lease_expires > 0 AND lease_expires <= `+now.sql+fmt.Sprintf(` ORDER BY lease_expires LIMIT %d`, most), now.args...)
}

// LeasesOf implements task.Store.
func (s *Store) LeasesOf(ctx context.Context, workerPrefix string, most int, decide func(task.Current) (task.Change, error)) ([]task.Change, error) {
	return s.updateMany(ctx, decide, `lease_expires > 0 AND substr(lease_worker, 1, length($1)) = $1 ORDER BY lease_expires LIMIT $2`,
		workerPrefix, most)
}

// updateMany runs a decision on several rows; rows that another node is at are
// passed over.
func (s *Store) updateMany(ctx context.Context, decide func(task.Current) (task.Change, error), where string, args ...any) ([]task.Change, error) {
	var out []task.Change
	err := s.eng.write(ctx, func(x *tx) error {
		out = nil
		var found []task.Current
		err := each(ctx, x, func(r rows) error {
			cur, err := s.scanTask(r)
			found = append(found, cur)
			return err
		}, `SELECT `+taskColumns+`, `+x.d.clock+` FROM tasks WHERE `+where+x.d.skipLocked, args...)
		if err != nil {
			return err
		}
		for _, cur := range found {
			c, err := x.applyTask(ctx, cur, decide)
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
	lease, lease_worker, lease_expires, attempts, delivered, last_turn, created_at, updated_at, metadata`

func (s *Store) scanTask(r rows, more ...any) (task.Current, error) {
	var cur task.Current
	t := &cur.Task
	var sender, state, metadata string
	var queued, expires, created, updated, clock int64
	dest := []any{
		&t.Org, &t.UID, &t.Agent, &t.Sender.Org, &sender, &t.ID, &t.ContextID, &t.FollowupID, &state, &queued, &t.Seq, &t.Size,
		&t.Lease.Token, &t.Lease.Worker, &expires, &t.Attempts, &t.Delivered, &t.LastTurn, &created, &updated, &metadata, &clock,
	}
	if err := r.Scan(append(dest, more...)...); err != nil {
		return cur, err
	}
	kind, id, _ := strings.Cut(sender, ":")
	t.Sender.Kind, t.Sender.ID = identity.Kind(kind), id
	t.State, t.Queued, t.Lease.ExpiresAt = task.State(state), queued != 0, fromMicros(expires)
	t.CreatedAt, t.UpdatedAt = fromMicros(created), fromMicros(updated)
	if metadata != "" {
		t.Metadata = json.RawMessage(metadata)
	}
	if cur.Clock = fromMicros(clock); clock == 0 {
		cur.Clock = s.now()
	}
	return cur, nil
}

// TaskByKey implements task.Store.
func (s *Store) TaskByKey(ctx context.Context, k task.Key) (task.Task, error) {
	return s.wholeTask(ctx, keyCondition, k.Org, k.Agent, k.Sender.Org, k.Sender.Ref(), k.ID)
}

// TaskByUID implements task.Store.
func (s *Store) TaskByUID(ctx context.Context, org, uid string) (task.Task, error) {
	return s.wholeTask(ctx, `tasks.org_id = $1 AND tasks.uid = $2`, org, uid)
}

// wholeTask reads a task and its log in one query, so that both are of one moment.
func (s *Store) wholeTask(ctx context.Context, where string, args ...any) (task.Task, error) {
	var t task.Task
	found := false
	where = strings.Replace(where, "org_id = $1 AND agent_id", "tasks.org_id = $1 AND agent_id", 1)
	err := each(ctx, s.eng, func(r rows) error {
		var e task.Event
		var kind, data string
		var at int64
		cur, err := s.scanTask(r, &e.Seq, &at, &kind, &data)
		if err != nil {
			return err
		}
		if !found {
			found, t = true, cur.Task
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("decode an event: %w", err)
		}
		e.At, e.Kind = fromMicros(at), task.EventKind(kind)
		updated := t.UpdatedAt
		t.Apply(&e)
		t.UpdatedAt = updated
		return nil
	}, `SELECT `+taskColumns+`, 0, e.seq, e.at, e.kind, e.data FROM tasks JOIN task_events e ON e.org_id = tasks.org_id AND e.uid = tasks.uid
		WHERE `+where+` ORDER BY e.seq`, args...)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return t, err
}

// TaskEvents implements task.Store.
func (s *Store) TaskEvents(ctx context.Context, org, uid string, after int64, most int) ([]task.Event, error) {
	var out []task.Event
	err := each(ctx, s.eng, func(r rows) error {
		var e task.Event
		var kind, data string
		var at int64
		if err := r.Scan(&e.Seq, &at, &kind, &data); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("decode an event: %w", err)
		}
		e.At, e.Kind = fromMicros(at), task.EventKind(kind)
		out = append(out, e)
		return nil
	}, `SELECT seq, at, kind, data FROM task_events WHERE org_id = $1 AND uid = $2 AND seq > $3 ORDER BY seq LIMIT $4`, org, uid, after, most)
	return out, err
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
	args = append(args, f.Limit)
	out := []task.Task{}
	err := each(ctx, s.eng, func(r rows) error {
		cur, err := s.scanTask(r)
		out = append(out, cur.Task)
		return err
	}, fmt.Sprintf(`SELECT %s, 0 FROM tasks WHERE %s ORDER BY uid DESC LIMIT $%d`, taskColumns, strings.Join(where, " AND "), len(args)), args...)
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
	orgs, err := s.Orgs(ctx)
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
			if err := r.Scan(&uid); err != nil {
				return err
			}
			n++
			x.exec(`DELETE FROM task_events WHERE org_id = $1 AND uid = $2`, org, uid)
			x.exec(`DELETE FROM tasks WHERE org_id = $1 AND uid = $2`, org, uid)
			return nil
		}, `SELECT uid FROM tasks WHERE org_id = $1 AND updated_at < $2 AND created_at < $2
			AND state IN ('completed', 'failed', 'canceled', 'rejected') ORDER BY uid LIMIT $3`, org, micros(endedBefore), most)
	})
	return n, err
}
