package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/task"
)

const insertPush = `INSERT INTO push_configs (org_id, uid, id, url, receiver, token, scheme, credentials, form, created_at, sender_org, sender,
		cursor, head, state, due_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, `

func pushArgs(t *task.Task, p *task.PushConfig) []any {
	return []any{
		t.Org, t.UID, p.ID, p.URL, p.Receiver(), p.Token, p.Scheme, p.Credentials, string(p.Form), micros(p.CreatedAt),
		t.Sender.Org, t.Sender.Ref(),
	}
}

// insertPush queues the first configuration of a new task: all its events are due.
func (x *tx) insertPush(t *task.Task, p *task.PushConfig) {
	due, arg := x.d.leaseUntil("$14", time.Microsecond, t.CreatedAt)
	x.exec(insertPush+`0, $13, 'active', `+due+`)`, append(pushArgs(t, p), t.Seq, arg)...)
}

// pushChange queues what a change means for the task's configurations: they are
// due if there are events, and one may be set.
func (x *tx) pushChange(ctx context.Context, cur *task.Current, c *task.Change) error {
	t := &c.Task
	t.Push = cur.Task.Push || c.Push != nil
	if cur.Task.Push && len(c.Events) > 0 {
		x.exec(`UPDATE push_configs SET head = $3, due_at = CASE WHEN due_at = 0 AND state = 'active' THEN $4 ELSE due_at END
			WHERE org_id = $1 AND uid = $2`, t.Org, t.UID, t.Seq, micros(cur.Clock))
	}
	if c.Push == nil {
		return nil
	}
	if !cur.Task.Push {
		x.exec(`UPDATE tasks SET push = 1 WHERE org_id = $1 AND uid = $2`, t.Org, t.UID)
	}
	return x.setPush(ctx, cur, c)
}

// setPush queues a configuration, new or in place of another. One that is the same
// is left alone, with all that is on its way.
func (x *tx) setPush(ctx context.Context, cur *task.Current, c *task.Change) error {
	t := &c.Task
	p := *c.Push // the decision may be run again
	p.TaskID = t.ID
	c.Push = &p
	n, found := 0, false
	var old task.Push
	err := each(ctx, x, func(r rows) error {
		o, _, err := scanPush(r)
		if n++; o.ID == p.ID {
			n, found, old = n-1, true, o
		}
		return err
	}, `SELECT `+pushColumns+`, 0 FROM push_configs WHERE org_id = $1 AND uid = $2`+x.d.forUpdate, t.Org, t.UID)
	if err != nil {
		return err
	}
	if !found {
		if n >= task.MaxPushes {
			return task.ErrPushLimit
		}
		cursor := cur.Task.Seq
		if len(c.Events) == 0 && t.State.Terminal() {
			cursor-- // whoever asks too late still learns how it ended
		}
		due := int64(0)
		if cursor < t.Seq {
			due = micros(cur.Clock)
		}
		if err := guard(c, task.PushSet{New: true, Replay: due > 0 && len(c.Events) == 0}); err != nil {
			return err
		}
		x.exec(insertPush+`$13, $14, 'active', $15)`, append(pushArgs(t, &p), cursor, t.Seq, due)...)
		return nil
	}
	p.CreatedAt = old.CreatedAt
	if was := old.PushConfig; was.URL == p.URL && was.Token == p.Token && was.Scheme == p.Scheme && was.Credentials == p.Credentials &&
		was.Form == p.Form && old.State != task.PushDead {
		return nil
	}
	state, due := task.PushActive, int64(0)
	switch {
	case old.Cursor < t.Seq:
		due = micros(cur.Clock)
	case t.State.Terminal():
		state = task.PushDone
	}
	if err := guard(c, task.PushSet{Replay: old.Cursor < cur.Task.Seq}); err != nil {
		return err
	}
	x.exec(`UPDATE push_configs SET url = $4, receiver = $5, token = $6, scheme = $7, credentials = $8, form = $9, state = $10, due_at = $11,
			claimed_until = 0, attempts = 0, last_error = ''
		WHERE org_id = $1 AND uid = $2 AND id = $3`,
		t.Org, t.UID, p.ID, p.URL, p.Receiver(), p.Token, p.Scheme, p.Credentials, string(p.Form), string(state), due)
	return nil
}

// guard asks the change whether a configuration may be set.
func guard(c *task.Change, set task.PushSet) error {
	if c.PushGuard == nil {
		return nil
	}
	return c.PushGuard(set)
}

const pushColumns = `org_id, uid, id, url, token, scheme, credentials, form, created_at, cursor, head, state, due_at, claimed_until,
	attempts, last_error, last_attempt_at, sender_org`

// scanPush reads pushColumns and one more: the clock.
func scanPush(r rows) (task.Push, time.Time, error) {
	var p task.Push
	var form, state string
	var created, due, claimed, last, clock int64
	err := r.Scan(&p.Org, &p.UID, &p.ID, &p.URL, &p.Token, &p.Scheme, &p.Credentials, &form, &created, &p.Cursor, &p.Head, &state, &due, &claimed,
		&p.Attempts, &p.LastError, &last, &p.SenderOrg, &clock)
	p.Form, p.State = task.PushForm(form), task.PushState(state)
	p.CreatedAt, p.DueAt, p.ClaimedUntil, p.LastAttemptAt = fromMicros(created), fromMicros(due), fromMicros(claimed), fromMicros(last)
	return p, fromMicros(clock), err
}

// TaskRow implements task.Store.
func (s *Store) TaskRow(ctx context.Context, org, uid string) (task.Task, error) {
	var cur task.Current
	found := false
	err := each(ctx, s.eng, func(r rows) (err error) {
		found = true
		cur, err = s.scanTask(r)
		return err
	}, `SELECT `+taskColumns+`, 0 FROM tasks WHERE org_id = $1 AND uid = $2`, org, uid)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return cur.Task, err
}

const selectPushes = `SELECT p.org_id, p.uid, p.id, url, token, scheme, credentials, form, p.created_at, cursor, head, p.state, due_at, claimed_until,
	p.attempts, last_error, last_attempt_at, p.sender_org, 0, t.id FROM push_configs p`

const ofTasks = ` JOIN tasks t ON t.org_id = p.org_id AND t.uid = p.uid WHERE p.org_id = $1`

func (s *Store) pushes(ctx context.Context, more string, args ...any) ([]task.Push, error) {
	out := []task.Push{}
	err := each(ctx, s.eng, func(r rows) error {
		var id string
		p, _, err := scanPush(withID{r, &id})
		p.TaskID = id
		out = append(out, p)
		return err
	}, selectPushes+more, args...)
	return out, err
}

// withID scans the sender's id of the task beside what scanPush knows.
type withID struct {
	rows
	id *string
}

func (w withID) Scan(dest ...any) error { return w.rows.Scan(append(dest, w.id)...) }

// TaskPushes implements task.Store.
func (s *Store) TaskPushes(ctx context.Context, org, uid string) ([]task.Push, error) {
	return s.pushes(ctx, ofTasks+` AND p.uid = $2 ORDER BY p.id`, org, uid)
}

// Pushes implements task.Store.
func (s *Store) Pushes(ctx context.Context, f task.PushFilter) ([]task.Push, error) {
	more, args := ofTasks, []any{f.Org, f.Limit}
	if f.State == task.PushDead {
		more = s.d.dead + ofTasks
	}
	if f.State != "" {
		more += ` AND p.state = '` + strings.ReplaceAll(string(f.State), "'", "") + `'` // a literal: the index of the dead has it
	}
	if f.Before != "" {
		more += ` AND (p.uid < $3 OR p.uid = $3 AND p.id < $4)`
		args = append(args, f.Before, f.BeforeID)
	}
	return s.pushes(ctx, more+` ORDER BY p.uid DESC, p.id DESC LIMIT $2`, args...)
}

// UpdatePush implements task.Store.
func (s *Store) UpdatePush(ctx context.Context, org, uid, id string, decide func(task.Push, time.Time) (task.Push, error)) (task.Push, error) {
	var out task.Push
	read := func(r reader, lock string) (clock time.Time, err error) {
		found := false
		err = each(ctx, r, func(r rows) (err error) {
			found = true
			out, clock, err = scanPush(r)
			return err
		}, `SELECT `+pushColumns+`, `+s.d.clock+` FROM push_configs WHERE org_id = $1 AND uid = $2 AND id = $3`+lock, org, uid, id)
		if err == nil && !found {
			err = errs.ErrNotFound
		}
		return clock, err
	}
	// The configuration holds credentials, so a repeated command finds it as it is now.
	err := s.writeOnce(ctx, new(struct{}), func(x *tx) error {
		clock, err := read(x, x.d.forUpdate)
		if err != nil {
			return err
		}
		if out, err = decide(out, s.clockOr(clock)); err != nil {
			return err
		}
		x.writePush(&out)
		return nil
	})
	if err == nil && idempotency.From(ctx).Replayed() {
		_, err = read(s.eng, "")
	}
	return out, err
}

func (x *tx) writePush(p *task.Push) {
	x.exec(`UPDATE push_configs SET cursor = $4, state = $5, due_at = $6, claimed_until = $7, attempts = $8, last_error = $9, last_attempt_at = $10
		WHERE org_id = $1 AND uid = $2 AND id = $3`,
		p.Org, p.UID, p.ID, p.Cursor, string(p.State), micros(p.DueAt), micros(p.ClaimedUntil), p.Attempts, p.LastError, micros(p.LastAttemptAt))
}

// DeletePush implements task.Store.
func (s *Store) DeletePush(ctx context.Context, org, uid, id string) error {
	return s.eng.write(ctx, func(x *tx) error {
		x.exec(`DELETE FROM push_configs WHERE org_id = $1 AND uid = $2 AND id = $3`, org, uid, id)
		return nil
	})
}

// clockOr is the database's clock, or this process's if that is the one that counts,
// as exact as the store keeps times: a claim is known by its end.
func (s *Store) clockOr(clock time.Time) time.Time {
	if clock.IsZero() {
		clock = s.now()
	}
	return clock.Truncate(time.Microsecond)
}

// countDue sums what is due of each org, because the index begins with the org: those
// that are due later, which may be many more, are not read.
const countDue = withOrgs + `
	SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM (
		SELECT (SELECT count(*) FROM push_configs p WHERE p.sender_org = orgs.org AND p.due_at > 0 AND p.due_at <= %s) AS n
		FROM orgs WHERE org IS NOT NULL
	) counted`

// CountPushes implements task.Store. What is due and dead may be much, so this is a slow
// read.
func (s *Store) CountPushes(ctx context.Context) (due, dead int64, err error) {
	now := s.d.clockNow(s.now)
	err = s.slow(ctx, "", func(ctx context.Context, r reader) error {
		if _, err := one(ctx, r, []any{&due}, fmt.Sprintf(countDue, now.sql), now.args...); err != nil {
			return err
		}
		_, err := one(ctx, r, []any{&dead}, `SELECT count(*) FROM push_configs WHERE state = 'dead'`)
		return err
	})
	return due, dead, err
}

// Secret returns what was stored under the name, or else stores fresh: whoever
// asks, on whichever node, gets the same.
func (s *Store) Secret(ctx context.Context, name, fresh string) (string, error) {
	value := ""
	find := func() (bool, error) {
		return one(ctx, s.eng, []any{&value}, `SELECT value FROM secrets WHERE name = $1`, name)
	}
	if found, err := find(); found || err != nil {
		return value, err
	}
	err := s.eng.write(ctx, func(x *tx) error {
		x.exec(`INSERT INTO secrets (name, value, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, name, fresh, micros(s.now()))
		return nil
	})
	if err == nil {
		_, err = find()
	}
	return value, err
}
