package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-dev/parley/internal/task"
)

// OwnTasks implements task.Store.
func (s *Store) OwnTasks(ctx context.Context, f task.OwnFilter) ([]task.Task, int64, error) {
	where := []string{"agent_id = $1", "sender = $2", "org_id = $3", "sender_org = $4"}
	args := []any{f.Agent, f.Sender.Ref(), f.Org, f.Sender.Org}
	add := func(condition string, values ...any) {
		marks := make([]any, len(values))
		for i, v := range values {
			args = append(args, v)
			marks[i] = len(args)
		}
		where = append(where, fmt.Sprintf(condition, marks...))
	}
	if f.State != "" {
		add("state = $%d", string(f.State))
	}
	if f.ContextID != "" {
		add("context_id = $%d", f.ContextID)
	}
	if !f.UpdatedAfter.IsZero() {
		add("updated_at > $%d", f.UpdatedAfter.UnixMicro())
	}
	large, err := s.large(ctx, `tasks WHERE agent_id = $1 AND sender = $2`, args[:2]...)
	if err != nil {
		return nil, 0, err
	}
	var total int64
	out := []task.Task{}
	err = s.slowIf(ctx, large, f.Sender.Org, func(ctx context.Context, r reader) error {
		if _, err := one(ctx, r, []any{&total}, `SELECT count(*) FROM tasks WHERE `+strings.Join(where, " AND "), args...); err != nil {
			return err
		}
		if f.Before != nil {
			add("(updated_at, uid) < ($%d, $%d)", micros(f.Before.UpdatedAt), f.Before.UID)
		}
		return each(ctx, r, func(r rows) error {
			cur, err := s.scanTask(r)
			out = append(out, cur.Task)
			return err
		}, fmt.Sprintf(`SELECT %s, 0 FROM tasks WHERE %s ORDER BY updated_at DESC, uid DESC LIMIT %d`,
			taskColumns, strings.Join(where, " AND "), f.Limit), args...)
	})
	return out, total, err
}
