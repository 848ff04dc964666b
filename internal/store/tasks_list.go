package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

// List implements dispatch.TaskReader.
func (ts Tasks) List(ctx context.Context, f dispatch.Filter) ([]task.Task, error) {
	where, args := []string{"org_id = $1"}, []any{f.Org}
	add := func(condition string, value any) {
		args = append(args, value)
		where = append(where, fmt.Sprintf(condition, len(args)))
	}
	if f.Agent != "" {
		add("agent_id = $%d", f.Agent)
	}
	if f.State != "" {
		add("state = $%d", string(f.State))
	}
	if f.ContextID != "" {
		add("context_id = $%d", f.ContextID)
	}
	if f.Before != "" {
		add("uid < $%d", f.Before)
	}
	// No index holds the filters in the order of the list: to find a rare match, the tasks of
	// the org are walked.
	large, filtered := false, f.Agent != "" || f.State != "" || f.ContextID != ""
	if filtered {
		var err error
		if large, err = ts.large(ctx, `tasks WHERE org_id = $1`, f.Org); err != nil {
			return nil, err
		}
	}
	args = append(args, f.Limit)
	out := []task.Task{}
	err := ts.slowIf(ctx, large, f.Org, func(ctx context.Context, r reader) error {
		return each(ctx, r, func(r rows) error {
			cur, err := ts.scanTask(r)
			out = append(out, cur.Task)
			return err
		}, fmt.Sprintf(`SELECT %s, 0 FROM tasks WHERE %s ORDER BY uid DESC LIMIT $%d`,
			taskColumns, strings.Join(where, " AND "), len(args)), args...)
	})
	return out, err
}

// Own implements dispatch.TaskReader.
func (ts Tasks) Own(ctx context.Context, f dispatch.OwnFilter) (dispatch.OwnRows, error) {
	where := []string{"sender_org = $1", "sender = $2", "agent_id = $3"}
	args := []any{f.Sender.Org, f.Sender.Ref(), f.Agent}
	add := func(condition string, values ...any) {
		marks := make([]any, len(values))
		for i, v := range values {
			args = append(args, v)
			marks[i] = len(args)
		}
		where = append(where, fmt.Sprintf(condition, marks...))
	}
	if f.HiddenOrg == "" {
		add("tasks.org_id = $%d", f.Org)
	} else {
		add("tasks.org_id IN ($%d, $%d)", f.Org, f.HiddenOrg)
	}
	if f.State != "" {
		add("state = $%d", string(f.State))
	}
	if f.ContextID != "" {
		add("context_id = $%d", f.ContextID)
	}
	if !f.UpdatedAfter.IsZero() {
		add("updated_at >= $%d", f.UpdatedAfter.Add(time.Microsecond-1).UnixMicro()) // rounded up to microseconds
	}
	rows := dispatch.OwnRows{Tasks: []task.Task{}}
	large, err := ts.large(ctx, `tasks WHERE sender_org = $1 AND sender = $2 AND agent_id = $3`, args[:3]...)
	if err != nil {
		return rows, err
	}
	err = ts.slowIf(ctx, large, f.Sender.Org, func(ctx context.Context, r reader) error {
		total := `SELECT count(*) FROM tasks WHERE ` + strings.Join(where, " AND ")
		if _, err := one(ctx, r, []any{&rows.Total}, total, args...); err != nil {
			return err
		}
		if f.Before != nil {
			add("(updated_at, tasks.uid) < ($%d, $%d)", micros(f.Before.UpdatedAt), f.Before.UID)
		}
		query := fmt.Sprintf(`%s ORDER BY updated_at DESC, tasks.uid DESC LIMIT %d`,
			selectStatus+strings.Join(where, " AND "), f.Limit+1)
		if f.Bytes > 0 {
			columns := strings.ReplaceAll(taskColumns, "tasks.", "") + ", clock, event, at"
			query = ts.d.within(columns, query, "updated_at DESC, uid DESC", f.Bytes)
		}
		return ts.ownPage(ctx, r, f, &rows, query, args...)
	})
	return rows, err
}

// ownPage reads the tasks of a page with their status.
func (ts Tasks) ownPage(
	ctx context.Context, r reader, f dispatch.OwnFilter, out *dispatch.OwnRows, query string, args ...any,
) error {
	unknown := []int(nil)
	err := each(ctx, r, func(r rows) error {
		var row logRow
		cur, err := ts.scanTask(r, &row.seq, &row.at, &row.data)
		if err != nil {
			return err
		}
		size := out.Size + int64(len(row.data))
		if n := len(out.Tasks); n == f.Limit || row.data == "" || n > 0 && f.Bytes > 0 && size > f.Bytes {
			out.More = true
			return errEnough
		}
		out.Size = size
		if t := &cur.Task; t.StatusSeq == 0 {
			unknown = append(unknown, len(out.Tasks))
		} else if err := fold(t, &row, task.Content{}); err != nil {
			return err
		}
		out.Tasks = append(out.Tasks, cur.Task)
		return nil
	}, query, args...)
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	for _, i := range unknown { // written by a version that did not record where the status is
		t := &out.Tasks[i]
		whole, err := ts.ByUID(ctx, t.Org, t.UID, task.Content{})
		if err != nil && errs.KindOf(err) != errs.NotFound {
			return err
		}
		t.Message, t.Reply = whole.Message, whole.Reply
	}
	return nil
}
