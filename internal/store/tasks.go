package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// InsertTask implements task.Store. Nothing has to be read for it: a taken key
// fails the insert on PostgreSQL and changes no row on SQLite, where a failed
// statement would cost the other writes of the batch their shared commit.
func (s *Store) InsertTask(ctx context.Context, c task.Change, lease time.Duration) error {
	write := s.eng.add
	if c.Task.FollowupID != "" {
		write = s.eng.write
	}
	t := &c.Task
	events, err := encodeEvents(c.Events) // outside of the one writer
	if err != nil {
		return err
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
				lease, lease_worker, lease_expires, delivered, last_turn, created_at, updated_at`+more+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, `+expires+`, $15, $16, $17, $17`+values+`)`+x.d.orNothing, args...)
		x.insertEvents(t, c.Events, events)
		if c.Push != nil {
			x.insertPush(t, c.Push)
		}
		return x.mirror(ctx, t, true)
	})
}

// storedEvent is an event in the log: without its number and time, which are the
// row's, and with its kind.
type storedEvent struct {
	K task.EventKind
	task.Event
}

// encodeEvents makes the data of a row from the events of one write.
func encodeEvents(events []task.Event) (string, error) {
	out := make([]storedEvent, len(events))
	for i := range events {
		out[i] = storedEvent{events[i].Kind, events[i]}
	}
	data, err := json.Marshal(out)
	if err != nil {
		return "", fmt.Errorf("encode events: %w", err)
	}
	return string(data), nil
}

// decodeEvents is the inverse of encodeEvents; seq is the last event's number.
func decodeEvents(data string, seq, at int64) ([]task.Event, error) {
	var stored []storedEvent
	if err := json.Unmarshal([]byte(data), &stored); err != nil {
		return nil, fmt.Errorf("decode events: %w", err)
	}
	out := make([]task.Event, len(stored))
	for i := range stored {
		out[i] = stored[i].Event
		out[i].Seq, out[i].At, out[i].Kind = seq-int64(len(stored)-1-i), fromMicros(at), stored[i].K
	}
	return out, nil
}

func (x *tx) insertEvents(t *task.Task, events []task.Event, data string) {
	if n := len(events); n > 0 {
		x.exec(`INSERT INTO task_events (org_id, uid, seq, at, data) VALUES ($1, $2, $3, $4, $5)`,
			t.Org, t.UID, events[n-1].Seq, micros(events[n-1].At), data)
	}
}

// FinishTask implements task.Store. On SQLite the row is not read again: it is
// changed if it still is what the caller knows.
func (s *Store) FinishTask(ctx context.Context, known task.Task, c task.Change) error {
	data, err := encodeEvents(c.Events)
	if err != nil {
		return err
	}
	t := &c.Task
	if s.d != &sqliteDialect || t.FollowupID != "" || known.Push {
		_, err := s.UpdateTask(ctx, known.Org, known.UID, func(cur task.Current) (task.Change, error) {
			if cur.Task.Seq != known.Seq || cur.Task.Push != known.Push || cur.Task.Lease.Token != known.Lease.Token || !cur.Clock.Before(cur.Task.Lease.ExpiresAt) {
				return task.Change{}, task.ErrChanged
			}
			return c, nil
		})
		return err
	}
	return s.eng.add(ctx, func(x *tx) error {
		x.execUnless(task.ErrChanged, `UPDATE tasks SET state = $3, seq = $4, size = $5, lease = '', lease_expires = 0, delivered = $4,
				last_turn = $6, updated_at = $7
			WHERE org_id = $1 AND uid = $2 AND seq = $8 AND lease = $9 AND lease_expires > $7 AND push = 0`,
			t.Org, t.UID, string(t.State), t.Seq, t.Size, t.LastTurn, micros(t.UpdatedAt), known.Seq, known.Lease.Token)
		x.insertEvents(t, c.Events, data)
		return nil
	})
}

// UpdateTask implements task.Store.
func (s *Store) UpdateTask(ctx context.Context, org, uid string, decide func(task.Current) (task.Change, error)) (task.Change, error) {
	return s.updateTask(ctx, decide, `org_id = $1 AND uid = $2`, org, uid)
}

// UpdateTaskByKey implements task.Store.
func (s *Store) UpdateTaskByKey(ctx context.Context, k task.Key, decide func(task.Current) (task.Change, error)) (task.Change, error) {
	return s.updateTask(ctx, decide, keyCondition, k.Org, k.Agent, k.Sender.Org, k.Sender.Ref(), k.ID)
}

const keyCondition = `tasks.org_id = $1 AND agent_id = $2 AND sender_org = $3 AND sender = $4 AND id = $5`

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
	if old.Push || c.Push != nil {
		if err := x.pushChange(ctx, &cur, &c); err != nil {
			return c, err
		}
	}
	if len(c.Events) == 0 && t.Lease == old.Lease && t.Delivered == old.Delivered {
		return c, nil
	}
	events, err := encodeEvents(c.Events)
	if err != nil {
		return c, err
	}
	x.exec(`UPDATE tasks SET state = $3, queued = $4, seq = $5, size = $6, lease = $7, lease_worker = $8, lease_expires = $9,
			attempts = $10, delivered = $11, last_turn = $12, updated_at = $13
		WHERE org_id = $1 AND uid = $2`,
		t.Org, t.UID, string(t.State), flag(t.Queued), t.Seq, t.Size, t.Lease.Token, t.Lease.Worker, micros(t.Lease.ExpiresAt),
		t.Attempts, t.Delivered, t.LastTurn, micros(t.UpdatedAt))
	x.insertEvents(t, c.Events, events)
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
		`SELECT 1 FROM tasks`+s.d.queue+` WHERE org_id = $1 AND agent_id = $2 AND queued = 1 LIMIT 1`, org, agent); err != nil || !waiting {
		return nil, err
	}
	return s.updateMany(ctx, decide, s.d.queue+` WHERE org_id = $1 AND agent_id = $2 AND queued = 1 ORDER BY uid LIMIT $3`, org, agent, most)
}

// ExpireLeases implements task.Store.
func (s *Store) ExpireLeases(ctx context.Context, most int, decide func(task.Current) (task.Change, error)) ([]task.Change, error) {
	now := s.d.clockNow(s.now)
	expired := false
	if err := each(ctx, s.eng, func(rows) error { expired = true; return nil },
		`SELECT 1 FROM tasks WHERE lease_expires > 0 AND lease_expires <= `+now.sql+` LIMIT 1`, now.args...); err != nil || !expired {
		return nil, err
	}
	return s.updateMany(ctx, decide, ` WHERE lease_expires > 0 AND lease_expires <= `+now.sql+fmt.Sprintf(` ORDER BY lease_expires LIMIT %d`, most), now.args...)
}

// LeasesOf implements task.Store.
func (s *Store) LeasesOf(ctx context.Context, workerPrefix string, most int, decide func(task.Current) (task.Change, error)) ([]task.Change, error) {
	return s.updateMany(ctx, decide, ` WHERE lease_expires > 0 AND substr(lease_worker, 1, length($1)) = $1 ORDER BY lease_expires LIMIT $2`,
		workerPrefix, most)
}

// updateMany runs a decision on several rows; rows that another node is at are
// passed over.
func (s *Store) updateMany(ctx context.Context, decide func(task.Current) (task.Change, error), which string, args ...any) ([]task.Change, error) {
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
	lease, lease_worker, lease_expires, attempts, delivered, last_turn, created_at, updated_at, metadata, tasks.push`

func (s *Store) scanTask(r rows, more ...any) (task.Current, error) {
	var cur task.Current
	t := &cur.Task
	var sender, state, metadata string
	var queued, expires, created, updated, push, clock int64
	dest := []any{
		&t.Org, &t.UID, &t.Agent, &t.Sender.Org, &sender, &t.ID, &t.ContextID, &t.FollowupID, &state, &queued, &t.Seq, &t.Size,
		&t.Lease.Token, &t.Lease.Worker, &expires, &t.Attempts, &t.Delivered, &t.LastTurn, &created, &updated, &metadata, &push, &clock,
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
	err := each(ctx, s.eng, func(r rows) error {
		var seq, at int64
		var data string
		cur, err := s.scanTask(r, &seq, &at, &data)
		if err != nil {
			return err
		}
		if !found {
			found, t = true, cur.Task
		}
		events, err := decodeEvents(data, seq, at)
		updated := t.UpdatedAt
		for i := range events {
			t.Apply(&events[i])
		}
		t.UpdatedAt = updated
		return err
	}, `SELECT `+taskColumns+`, 0, e.seq, e.at, e.data FROM tasks JOIN task_events e ON e.org_id = tasks.org_id AND e.uid = tasks.uid
		WHERE `+where+` ORDER BY e.seq`, args...)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return t, err
}

// TaskEvents implements task.Store.
func (s *Store) TaskEvents(ctx context.Context, org, uid string, after int64, most int) ([]task.Event, error) {
	var out []task.Event
	size := 0
	err := each(ctx, s.eng, func(r rows) error {
		if len(out) >= most || size >= manyBytes {
			return errEnough
		}
		var seq, at int64
		var data string
		if err := r.Scan(&seq, &at, &data); err != nil {
			return err
		}
		size += len(data)
		events, err := decodeEvents(data, seq, at)
		for _, e := range events {
			if e.Seq > after && len(out) < most {
				out = append(out, e)
			}
		}
		return err
	}, `SELECT seq, at, data FROM task_events WHERE org_id = $1 AND uid = $2 AND seq > $3 ORDER BY seq LIMIT $4`, org, uid, after, most)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, err
}

// manyBytes is how much of a log is read at once. A reader that stalls in the
// middle of large events must not hold, nor have decoded, what it never takes.
const manyBytes = 256 << 10

var errEnough = errors.New("enough rows were read")

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
