package store

import (
	"context"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/secret"
	"github.com/parley-dev/parley/internal/task"
)

// Pushes stores the push configurations of tasks. The same rows hold the progress of their
// delivery; see Deliveries.
type Pushes struct{ *db }

// Pushes returns the implementation of dispatch.PushStore.
func (s *Store) Pushes() Pushes { return Pushes{s.db} }

const insertPush = `INSERT INTO push_configs (org_id, uid, id, url, receiver, token, scheme, credentials, form,
		created_at, sender_org, sender, cursor, head, state, due_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, `

// sealedPush is what is stored for the secrets of a configuration.
type sealedPush struct{ token, credentials string }

func (h *hooks) sealPush(t *task.Task, p *task.PushConfig) (out sealedPush, err error) {
	purpose := secret.Purpose("push_configs", t.Org, t.UID, p.ID)
	if out.token, err = h.seal(purpose, p.Token); err == nil {
		out.credentials, err = h.seal(purpose, p.Credentials)
	}
	return out, err
}

func (h *hooks) unsealPush(p *dispatch.Push) error {
	return h.unsealAll(secret.Purpose("push_configs", p.Org, p.UID, p.ID), &p.Token, &p.Credentials)
}

func pushArgs(t *task.Task, p *task.PushConfig, s sealedPush) []any {
	return []any{
		t.Org, t.UID, p.ID, p.URL, p.Receiver(), s.token, p.Scheme, s.credentials, string(p.Form), micros(p.CreatedAt),
		t.Sender.Org, t.Sender.Ref(),
	}
}

// insertPush queues the first configuration of a new task. All events of the task are due.
func (x *tx) insertPush(t *task.Task, p *task.PushConfig) error {
	sealed, err := x.hooks.sealPush(t, p)
	if err != nil {
		return err
	}
	due, arg := x.d.leaseUntil("$14", time.Microsecond, t.CreatedAt)
	x.exec(insertPush+`0, $13, 'active', `+due+`)`, append(pushArgs(t, p, sealed), t.Seq, arg)...)
	return nil
}

// pushChange queues the effects of a change on the configurations of the task: they become due
// if there are events, and the change may set one.
func (x *tx) pushChange(ctx context.Context, cur *task.Current, c *task.Change) error {
	t := &c.Task
	t.Push = cur.Task.Push || c.Push != nil
	if cur.Task.Push && len(c.Events) > 0 {
		x.exec(`UPDATE push_configs SET head = $3,
					due_at = CASE WHEN due_at = 0 AND state = 'active' THEN $4 ELSE due_at END
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

// setPush queues a new or changed configuration. It leaves an identical one alone, with its
// pending deliveries.
func (x *tx) setPush(ctx context.Context, cur *task.Current, c *task.Change) error {
	t := &c.Task
	p := *c.Push // a copy, because the decision may run again
	p.TaskID = t.ID
	c.Push = &p
	n, found := 0, false
	var old dispatch.Push
	err := each(ctx, x, func(r rows) error {
		o, err := scanPush(r)
		if n++; o.ID == p.ID {
			n, found, old = n-1, true, o
		}
		return err
	}, `SELECT `+pushColumns+` FROM push_configs WHERE org_id = $1 AND uid = $2`+x.d.forUpdate, t.Org, t.UID)
	if err != nil {
		return err
	}
	sealed, err := x.hooks.sealPush(t, &p)
	if err != nil {
		return err
	}
	if !found {
		if n >= task.MaxPushes {
			return task.ErrPushLimit
		}
		cursor := cur.Task.Seq
		if len(c.Events) == 0 && t.State.Terminal() {
			cursor-- // deliver at least the last event of an ended task
		}
		due := int64(0)
		if cursor < t.Seq {
			due = micros(cur.Clock)
		}
		if err := guard(c, task.PushSet{New: true, Replay: due > 0 && len(c.Events) == 0}); err != nil {
			return err
		}
		x.exec(insertPush+`$13, $14, 'active', $15)`, append(pushArgs(t, &p, sealed), cursor, t.Seq, due)...)
		return nil
	}
	p.CreatedAt = old.CreatedAt
	readable := x.hooks.unsealPush(&old) == nil // otherwise it is replaced
	if was := old.PushConfig; readable && was.URL == p.URL && was.Token == p.Token && was.Scheme == p.Scheme &&
		was.Credentials == p.Credentials && was.Form == p.Form && old.State != delivery.Dead {
		return nil
	}
	state, due := delivery.Active, int64(0)
	switch {
	case old.Cursor < t.Seq:
		due = micros(cur.Clock)
	case t.State.Terminal():
		state = delivery.Done
	}
	if err := guard(c, task.PushSet{Replay: old.Cursor < cur.Task.Seq}); err != nil {
		return err
	}
	x.exec(`UPDATE push_configs SET url = $4, receiver = $5, token = $6, scheme = $7, credentials = $8, form = $9,
			state = $10, due_at = $11, claimed_until = 0, claimed_by = '', attempts = 0, last_error = ''
		WHERE org_id = $1 AND uid = $2 AND id = $3`,
		t.Org, t.UID, p.ID, p.URL, p.Receiver(), sealed.token, p.Scheme, sealed.credentials, string(p.Form), string(state), due)
	return nil
}

// guard calls the change's PushGuard, if any, which may refuse the configuration.
func guard(c *task.Change, set task.PushSet) error {
	if c.PushGuard == nil {
		return nil
	}
	return c.PushGuard(set)
}

const pushColumns = `org_id, uid, id, url, token, scheme, credentials, form, created_at, sender_org, ` + progressColumns

// scanPush reads pushColumns and the columns after them. The secrets are as they are stored; see
// unsealPush.
func scanPush(r rows, more ...any) (dispatch.Push, error) {
	var p dispatch.Push
	var form string
	var created int64
	progress := progressRow{p: &p.Progress}
	dest := append([]any{
		&p.Org, &p.UID, &p.ID, &p.URL, &p.Token, &p.Scheme, &p.Credentials, &form, &created, &p.SenderOrg,
	}, progress.dest()...)
	err := r.Scan(append(dest, more...)...)
	p.Form, p.CreatedAt = task.PushForm(form), fromMicros(created)
	progress.fill()
	return p, err
}

const selectPushes = `SELECT p.org_id, p.uid, p.id, url, token, scheme, credentials, form, p.created_at, p.sender_org,
	cursor, head, p.state, due_at, claimed_until, p.attempts, last_error, last_attempt_at, t.id FROM push_configs p`

const ofTasks = ` JOIN tasks t ON t.org_id = p.org_id AND t.uid = p.uid WHERE p.org_id = $1`

func (ps Pushes) list(ctx context.Context, more string, args ...any) ([]dispatch.Push, error) {
	out := []dispatch.Push{}
	err := each(ctx, ps.eng, func(r rows) error {
		var id string
		p, err := scanPush(r, &id)
		if err == nil {
			err = ps.hooks.unsealPush(&p)
		}
		p.TaskID = id
		out = append(out, p)
		return err
	}, selectPushes+more, args...)
	return out, err
}

// OfTask implements dispatch.PushStore.
func (ps Pushes) OfTask(ctx context.Context, org, uid string) ([]dispatch.Push, error) {
	return ps.list(ctx, ofTasks+` AND p.uid = $2 ORDER BY p.id`, org, uid)
}

// List implements dispatch.PushStore.
func (ps Pushes) List(ctx context.Context, f dispatch.PushFilter) ([]dispatch.Push, error) {
	more, args := ofTasks, []any{f.Org, f.Limit}
	if f.State == delivery.Dead {
		more = ps.d.dead + ofTasks
	}
	if f.State != "" {
		// A literal, because the index of dead configurations has this condition.
		more += ` AND p.state = '` + strings.ReplaceAll(string(f.State), "'", "") + `'`
	}
	if f.Before != "" {
		more += ` AND (p.uid < $3 OR p.uid = $3 AND p.id < $4)`
		args = append(args, f.Before, f.BeforeID)
	}
	return ps.list(ctx, more+` ORDER BY p.uid DESC, p.id DESC LIMIT $2`, args...)
}

// Delete implements dispatch.PushStore.
func (ps Pushes) Delete(ctx context.Context, org, uid, id string) error {
	return ps.eng.write(ctx, func(x *tx) error {
		x.exec(`DELETE FROM push_configs WHERE org_id = $1 AND uid = $2 AND id = $3`, org, uid, id)
		return nil
	})
}

// CountActive implements dispatch.PushStore.
func (ps Pushes) CountActive(ctx context.Context, sender identity.Principal, most int64) (int64, error) {
	w := where{
		sql:  `push_configs` + ps.d.by("push_active") + ` WHERE state = 'active' AND sender_org = $1`,
		args: []any{sender.Org},
	}
	if sender.Kind != "" {
		w.and(`sender = ?`, sender.Ref())
	}
	n, err := countUpTo(ctx, ps.eng, int(most), w.sql, w.args...)
	return int64(n), err
}
