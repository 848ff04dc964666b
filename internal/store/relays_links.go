package store

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/relay"
	"github.com/parley-dev/parley/internal/task"
)

// firstDue is when a new link is first looked at. Its task is rarely over by then.
const firstDue = time.Minute

const linkColumns = `org_id, uid, agent_id, remote_task, remote_context, forwarded, attempt, ended_at, created_at`

func linksWhere(ctx context.Context, q reader, where string, args ...any) ([]relay.Link, error) {
	var out []relay.Link
	err := each(ctx, q, func(rs rows) error {
		var l relay.Link
		var ended, created int64
		err := rs.Scan(&l.Org, &l.UID, &l.Agent, &l.Task, &l.Context, &l.Forwarded, &l.Attempt, &ended, &created)
		l.EndedAt, l.CreatedAt = fromMicros(ended), fromMicros(created)
		out = append(out, l)
		return err
	}, `SELECT `+linkColumns+` FROM relay_tasks `+where, args...)
	return out, err
}

// Link implements relay.Store.
func (s Relays) Link(ctx context.Context, org, uid string) (l relay.Link, ok bool, err error) {
	found, err := linksWhere(ctx, s.eng, `WHERE org_id = $1 AND uid = $2`, org, uid)
	if err != nil || len(found) == 0 {
		return relay.Link{}, false, err
	}
	return found[0], true, nil
}

// SaveLink implements relay.Store.
func (s Relays) SaveLink(ctx context.Context, l relay.Link) error {
	return s.eng.add(ctx, func(t *tx) error {
		t.exec(`INSERT INTO relay_tasks (org_id, uid, agent_id, remote_task, remote_context, forwarded, attempt, due_at,
				created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT (org_id, uid) DO UPDATE SET remote_task = excluded.remote_task,
				remote_context = excluded.remote_context, forwarded = excluded.forwarded, attempt = excluded.attempt,
				due_at = excluded.due_at, created_at = excluded.created_at
			WHERE relay_tasks.attempt < excluded.attempt OR relay_tasks.attempt = excluded.attempt
				AND relay_tasks.remote_task IN ('', excluded.remote_task)`,
			l.Org, l.UID, l.Agent, l.Task, l.Context, l.Forwarded, l.Attempt, micros(l.CreatedAt.Add(firstDue)),
			micros(l.CreatedAt))
		return nil
	})
}

// DeleteLink implements relay.Store.
func (s Relays) DeleteLink(ctx context.Context, l relay.Link) error {
	return s.eng.add(ctx, func(t *tx) error {
		t.exec(`DELETE FROM relay_tasks WHERE org_id = $1 AND uid = $2 AND attempt = $3`, l.Org, l.UID, l.Attempt)
		return nil
	})
}

// HurryLink implements relay.Store.
func (s Relays) HurryLink(ctx context.Context, org, uid string) error {
	return s.eng.add(ctx, func(t *tx) error {
		t.exec(`UPDATE relay_tasks SET due_at = 0 WHERE org_id = $1 AND uid = $2`, org, uid)
		return nil
	})
}

// DueLinks implements relay.Store.
func (s Relays) DueLinks(ctx context.Context, now, again time.Time, most int) (ended []relay.Link, more bool, err error) {
	n := 0
	due, err := one(ctx, s.eng, []any{&n}, `SELECT 1 FROM relay_tasks WHERE due_at <= $1`+limit(1), micros(now))
	if err != nil || !due {
		return nil, false, err // the rule: a write would cost a commit
	}
	err = s.eng.write(ctx, func(t *tx) error {
		ended = nil
		found, err := linksWhere(ctx, t, `WHERE due_at <= $1 ORDER BY due_at`+limit(most)+t.d.skipLocked, micros(now))
		if err != nil {
			return err
		}
		more = len(found) == most
		for _, l := range found {
			var state string
			there, err := one(ctx, t, []any{&state}, `SELECT state FROM tasks WHERE org_id = $1 AND uid = $2`, l.Org, l.UID)
			if err != nil {
				return err
			}
			if !there || task.State(state).Terminal() {
				if l.EndedAt.IsZero() {
					l.EndedAt = now
				}
				ended = append(ended, l)
			}
			t.exec(`UPDATE relay_tasks SET due_at = $3, ended_at = $4 WHERE org_id = $1 AND uid = $2`,
				l.Org, l.UID, micros(again), micros(l.EndedAt))
		}
		return nil
	})
	return ended, more, err
}
