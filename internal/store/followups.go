package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// Followups stores follow-ups.
type Followups struct{ *db }

// Followups returns the implementation of followup.Store.
func (s *Store) Followups() Followups { return Followups{s.db} }

// Insert implements followup.Store.
func (s Followups) Insert(ctx context.Context, f followup.Followup, by identity.Principal, once *idempotency.Key,
) (followup.Outcome, error) {
	var out followup.Outcome
	err := s.eng.write(ctx, func(t *tx) error {
		out = followup.Outcome{}
		if done, err := t.replay(ctx, once, by, f.CreatedAt, &out); done || err != nil {
			out.Replayed = true
			return err
		}
		out.Followup = f
		t.insertFollowup(&f)
		return t.remember(once, by, f.CreatedAt, out)
	})
	return out, err
}

func (t *tx) insertFollowup(f *followup.Followup) {
	t.exec(`INSERT INTO followups (org_id, id, status, assignee, proposal_id, text_hash, title, description, created_by,
			created_at, updated_at, version)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		f.Org, f.ID, string(f.Status), f.Assignee, f.ProposalID, f.TextHash, f.Title, f.Description, f.CreatedBy,
		micros(f.CreatedAt), micros(f.UpdatedAt), f.Version)
	t.countFollowup(f, +1)
	t.emitFollowup(event.FollowupCreated, f, f.CreatedBy)
}

// Replayed implements followup.Store.
func (s Followups) Replayed(
	ctx context.Context, by identity.Principal, once *idempotency.Key,
) (followup.Outcome, bool, error) {
	var out followup.Outcome
	done, err := replayed(ctx, s.eng, once, by.Org, by.Ref(), s.now(), &out)
	out.Replayed = done
	return out, done, err
}

// Update implements followup.Store.
func (s Followups) Update(ctx context.Context, id string, by identity.Principal, once *idempotency.Key,
	edit func(followup.Followup) (followup.Followup, error),
) (followup.Outcome, error) {
	var out followup.Outcome
	err := s.eng.write(ctx, func(t *tx) error {
		out = followup.Outcome{}
		now := s.now()
		if done, err := t.replay(ctx, once, by, now, &out); done || err != nil {
			out.Replayed = true
			return err
		}
		old, err := oneFollowup(ctx, t, by.Org, id, t.d.forUpdate)
		if err != nil {
			return err
		}
		f, err := edit(old)
		if err != nil {
			return err
		}
		out.Followup = t.updateFollowup(old, f, by.Ref())
		return t.remember(once, by, now, out)
	})
	return out, err
}

// updateFollowup queues the change from old to f, with its events, and returns f with its version.
func (t *tx) updateFollowup(old, f followup.Followup, actor string) followup.Followup {
	f.Version = old.Version + 1
	t.exec(`UPDATE followups SET status = $3, assignee = $4, title = $5, description = $6, updated_at = $7, version = $8,
			task_uid = $9, task_state = $10
		WHERE org_id = $1 AND id = $2`,
		f.Org, f.ID, string(f.Status), f.Assignee, f.Title, f.Description, micros(f.UpdatedAt), f.Version,
		f.TaskUID, f.TaskState)
	if f.Status != old.Status || f.Assignee != old.Assignee {
		t.countFollowup(&old, -1)
		t.countFollowup(&f, +1)
	}
	if f.Status != old.Status && f.ProposalID != "" {
		t.touch(f.Org) // the proposal shows the status
	}
	t.emitFollowupChange(&old, &f, actor)
	return f
}

// mirror updates the follow-up that an A2A task works on. A new task takes the follow-up over
// from the task that it replaces. A replaced task changes it no longer. actor is who changed the
// task.
func (t *tx) mirror(ctx context.Context, a *task.Task, first bool, replaces, actor string) error {
	if a.FollowupID == "" {
		return nil
	}
	old, err := oneFollowup(ctx, t, a.Org, a.FollowupID, t.d.forUpdate)
	if err != nil {
		return err
	}
	if old.TaskUID != a.UID && !first {
		return nil
	}
	f := old.Mirror(a.UID, string(a.State), a.UpdatedAt)
	if first {
		if f, err = old.TakeOver(a.Agent, a.UID, string(a.State), replaces, a.UpdatedAt); err != nil {
			return err
		}
	}
	t.updateFollowup(old, f, actor)
	return nil
}

const followupColumns = `org_id, id, status, assignee, proposal_id, text_hash, title, description, created_by,
	created_at, updated_at, version, task_uid, task_state`

func scanFollowup(r rows) (followup.Followup, error) {
	var f followup.Followup
	var status string
	var created, updated int64
	err := r.Scan(&f.Org, &f.ID, &status, &f.Assignee, &f.ProposalID, &f.TextHash, &f.Title, &f.Description,
		&f.CreatedBy, &created, &updated, &f.Version, &f.TaskUID, &f.TaskState)
	f.Status, f.CreatedAt, f.UpdatedAt = followup.Status(status), fromMicros(created), fromMicros(updated)
	return f, err
}

// Get implements followup.Store.
func (s Followups) Get(ctx context.Context, org, id string) (followup.Followup, error) {
	return oneFollowup(ctx, s.eng, org, id, "")
}

func oneFollowup(ctx context.Context, r reader, org, id, lock string) (f followup.Followup, err error) {
	found := false
	err = each(ctx, r, func(rs rows) (err error) {
		found = true
		f, err = scanFollowup(rs)
		return err
	}, `SELECT `+followupColumns+` FROM followups WHERE org_id = $1 AND id = $2`+lock, org, id)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return f, err
}

// List implements followup.Store.
func (s Followups) List(ctx context.Context, f followup.Filter) ([]followup.Followup, int64, error) {
	where, args := []string{"org_id = $1"}, []any{f.Org}
	add := func(column string, value any) {
		args = append(args, value)
		where = append(where, fmt.Sprintf("%s = $%d", column, len(args)))
	}
	if f.Status != "" {
		add("status", string(f.Status))
	}
	if f.Assignee != "" || f.Unassigned {
		add("assignee", f.Assignee)
	}
	if f.ProposalID != "" {
		add("proposal_id", f.ProposalID)
		where = append(where, "proposal_id <> ''") // matches the condition of the partial index
	}
	total, err := s.count(ctx, f, strings.Join(where, " AND "), args)
	if err != nil {
		return nil, 0, err
	}
	list := []followup.Followup{}
	if f.Offset >= total {
		return list, total, nil
	}
	page := fmt.Sprintf(`FROM followups WHERE %s ORDER BY id DESC LIMIT $%d OFFSET $%d`,
		strings.Join(where, " AND "), len(args)+1, len(args)+2)
	args = append(args, f.Limit, f.Offset)
	slow := f.Offset > manyRows
	if !slow {
		if slow, err = s.wide(ctx, `SELECT octet_length(description) AS n `+page, args...); err != nil {
			return nil, 0, err
		}
	}
	err = s.slowIf(ctx, slow, f.Org, func(ctx context.Context, r reader) error {
		return each(ctx, r, func(r rows) error {
			item, err := scanFollowup(r)
			list = append(list, item)
			return err
		}, `SELECT `+followupColumns+` `+page, args...)
	})
	return list, total, err
}

// count adds up counters. A filter by proposal matches at most one row, which is counted
// directly.
func (s Followups) count(ctx context.Context, f followup.Filter, where string, args []any) (total int64, err error) {
	if f.ProposalID != "" {
		_, err = one(ctx, s.eng, []any{&total}, `SELECT count(*) FROM followups WHERE `+where, args...)
		return total, err
	}
	who := f.Assignee
	if f.Unassigned {
		who = followup.Unassigned
	}
	sql := `SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM counters WHERE org_id = $1 AND kind = $2 AND who = $3`
	params := []any{f.Org, countFollowups, who}
	if f.Status != "" {
		sql += ` AND status = $4`
		params = append(params, string(f.Status))
	}
	_, err = one(ctx, s.eng, []any{&total}, sql, params...)
	return total, err
}
