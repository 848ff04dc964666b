package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// unhappyStates are the states that the column listed has, and with it the index tasks_listed.
var unhappyStates = []task.State{task.Failed, task.Rejected, task.Canceled, task.InputRequired, task.AuthRequired}

// The conditions of the indexes tasks_listed, tasks_failed and tasks_asking. Queries repeat them,
// because a parameter does not show that the index has the state.
const (
	inTasksListed = `listed <> ''`
	inTasksFailed = `listed IN ('failed', 'rejected')`
	inTasksAsking = `listed IN ('input-required', 'auth-required')`
)

// listedAs returns the value of the column listed for a state.
func listedAs(s task.State) string {
	if slices.Contains(unhappyStates, s) {
		return string(s)
	}
	return ""
}

// list queues the change of the column listed. The usual change of a task does not touch it, nor
// its indexes.
func (x *tx) list(t *task.Task, before task.State) {
	if now := listedAs(t.State); now != listedAs(before) {
		x.exec(`UPDATE tasks SET listed = $3 WHERE org_id = $1 AND uid = $2`, t.Org, t.UID, now)
	}
}

// Search implements dispatch.TaskReader. Indexes for every filter in the order of the list would
// make each send more expensive. Instead, tasks that one filter makes few are read whole by an
// index that exists for other purposes. If no filter makes them few, the tasks are walked in the
// order of the list, a limited number of them.
func (ts Tasks) Search(ctx context.Context, q dispatch.Search) (dispatch.Found, error) {
	var out dispatch.Found
	read := func(ctx context.Context, r reader) error {
		few, err := ts.fewTasks(ctx, r, &q)
		if err != nil {
			return err
		}
		if few != nil {
			out, err = ts.gather(ctx, r, &q, few)
			return err
		}
		out, err = ts.walk(ctx, r, &q)
		return err
	}
	if !filtered(&q) {
		err := read(ctx, ts.eng)
		return out, err
	}
	err := ts.stale(ctx, q.Org, read)
	return out, err
}

// conditions collects conditions and their parameters.
type conditions struct {
	where []string
	args  []any
}

// add adds a condition, in which %d is the number of each parameter.
func (c *conditions) add(condition string, values ...any) {
	marks := make([]any, len(values))
	for i, v := range values {
		c.args = append(c.args, v)
		marks[i] = len(c.args)
	}
	c.where = append(c.where, fmt.Sprintf(condition, marks...))
}

func (c *conditions) String() string { return strings.Join(c.where, " AND ") }

// source is a set of tasks that an index finds.
type source struct {
	index string
	order string // of the index after the columns that the condition names
	conditions
}

// from returns the FROM clause of the tasks, which are limited. The order makes PostgreSQL use the
// index whatever it believes about the number of tasks.
func (s *source) from(d *dialect) string {
	return fmt.Sprintf(`(SELECT * FROM tasks%s WHERE %s ORDER BY %s LIMIT %d) tasks`,
		d.by(s.index), s.conditions.String(), s.order, dispatch.MaxSearched+1)
}

// filtered reports whether a search has filters other than the time.
func filtered(q *dispatch.Search) bool {
	return q.Agent != "" || q.State != "" || q.Queued || q.Sender != (identity.Principal{})
}

// sources returns the sets that may be small, the most selective first. A set that has all tasks of
// the path is none of them.
func sources(q *dispatch.Search, p *path) []source {
	var out []source
	add := func(index, order, condition string, values ...any) {
		s := source{index: index, order: order}
		s.add(condition, values...)
		out = append(out, s)
	}
	if q.Sender != (identity.Principal{}) {
		add("tasks_own", "agent_id, updated_at", "sender_org = $%d AND sender = $%d", q.Sender.Org, q.Sender.Ref())
	}
	if p.byAgent() {
		return out
	}
	if waits(q) {
		add("tasks_queue", "agent_id, uid", "org_id = $%d AND queued = 1", q.Org)
	}
	if q.Agent != "" {
		add("tasks_key", "sender_org, sender, id", "org_id = $%d AND agent_id = $%d", q.Org, q.Agent)
	}
	return out
}

// fewTasks returns the first set that is small, or nil.
func (ts Tasks) fewTasks(ctx context.Context, r reader, q *dispatch.Search) (*source, error) {
	p := pathOf(q)
	if p.index != "" && !filtered(&p.rest) {
		return nil, nil // the walk reads nothing else
	}
	for _, s := range sources(q, &p) {
		n := 0
		if _, err := one(ctx, r, []any{&n}, `SELECT count(*) FROM `+s.from(ts.d), s.args...); err != nil {
			return nil, err
		}
		if n <= dispatch.MaxSearched {
			return &s, nil
		}
	}
	return nil, nil
}

// gather reads a small set whole.
func (ts Tasks) gather(ctx context.Context, r reader, q *dispatch.Search, s *source) (dispatch.Found, error) {
	rest := conditions{args: slices.Clone(s.args)}
	rest.add("org_id = $%d", q.Org)
	rest.addBounds(q)
	rest.addFilters(q)
	return ts.page(ctx, r, q, s.from(ts.d), &rest)
}

// path is a set of tasks that are read in the order of the list.
type path struct {
	index string // empty: all tasks of the org
	conditions
	rest dispatch.Search // with the filters that the set leaves over
}

// byAgent reports whether the path has tasks of one agent only.
func (p *path) byAgent() bool {
	return p.index != "" && p.rest.Agent == "" && p.index != "tasks_listed"
}

// waits reports whether all tasks that match wait for a worker, as new ones do.
func waits(q *dispatch.Search) bool { return q.Queued || q.State == task.Submitted }

// pathOf returns the smallest path that has an index.
func pathOf(q *dispatch.Search) path {
	p := path{rest: *q}
	p.add("org_id = $%d", q.Org)
	switch {
	case q.Agent != "" && waits(q):
		p.index, p.rest.Agent, p.rest.Queued = "tasks_queue", "", false
		p.add("agent_id = $%d AND queued = 1", q.Agent)
	case q.Agent != "" && (q.State == task.Failed || q.State == task.Rejected):
		p.index, p.rest.Agent = "tasks_failed", ""
		p.add("agent_id = $%d AND "+inTasksFailed, q.Agent)
	case slices.Contains(unhappyStates, q.State):
		p.index, p.rest.State = "tasks_listed", ""
		p.add("listed = $%d AND "+inTasksListed, string(q.State))
	}
	return p
}

// walk reads the tasks in the order of the list.
func (ts Tasks) walk(ctx context.Context, r reader, q *dispatch.Search) (dispatch.Found, error) {
	p := pathOf(q)
	c, from := p.conditions, "tasks"
	if p.index != "" {
		from += ts.d.by(p.index)
	}
	c.addBounds(q)
	floor, more := "", false
	if filtered(&p.rest) {
		var err error
		if more, err = one(ctx, r, []any{&floor}, fmt.Sprintf(`SELECT uid FROM %s WHERE %s ORDER BY uid DESC
			LIMIT 1 OFFSET %d`, from, c.String(), dispatch.MaxSearched-1), c.args...); err != nil {
			return dispatch.Found{}, err
		}
		c.addFilters(&p.rest)
	}
	if more {
		c.add("uid >= $%d", floor)
	}
	out, err := ts.page(ctx, r, q, from, &c)
	if more && out.Next == "" {
		out.Next, out.Partial = floor, true
	}
	return out, err
}

// addBounds adds the conditions on the uid.
func (c *conditions) addBounds(q *dispatch.Search) {
	if q.Before != "" {
		c.add("uid < $%d", q.Before)
	}
	if !q.Until.IsZero() {
		c.add("uid < $%d", task.UIDsFrom(q.Until))
	}
	if !q.From.IsZero() {
		c.add("uid >= $%d", task.UIDsFrom(q.From))
	}
}

func (c *conditions) addFilters(q *dispatch.Search) {
	if q.Agent != "" {
		c.add("agent_id = $%d", q.Agent)
	}
	if q.State != "" {
		c.add("state = $%d", string(q.State))
	}
	if q.Queued {
		c.add("queued = 1")
	}
	if q.Sender != (identity.Principal{}) {
		c.add("sender_org = $%d AND sender = $%d", q.Sender.Org, q.Sender.Ref())
	}
}

// page reads a page of tasks, and finds out whether another one follows.
func (ts Tasks) page(
	ctx context.Context, r reader, q *dispatch.Search, from string, c *conditions,
) (dispatch.Found, error) {
	out := dispatch.Found{Tasks: []task.Task{}}
	err := each(ctx, r, func(r rows) error {
		cur, err := ts.scanTask(r)
		out.Tasks = append(out.Tasks, cur.Task)
		return err
	}, fmt.Sprintf(`SELECT %s, 0 FROM %s WHERE %s ORDER BY uid DESC LIMIT %d`,
		taskColumns, from, c.String(), q.Limit+1), c.args...)
	if len(out.Tasks) > q.Limit {
		out.Tasks = out.Tasks[:q.Limit]
		out.Next = out.Tasks[q.Limit-1].UID
	}
	return out, err
}

// Failed implements dispatch.TaskReader.
func (ts Tasks) Failed(ctx context.Context, org, agent string, most int) ([]task.Task, error) {
	var out []task.Task
	err := ts.stale(ctx, org, func(ctx context.Context, r reader) error {
		out = nil
		return each(ctx, r, func(r rows) error {
			var row logRow
			cur, err := ts.scanTask(r, &row.seq, &row.at, &row.data)
			if err == nil && row.data != "" {
				err = fold(&cur.Task, &row, task.Content{})
			}
			out = append(out, cur.Task)
			return err
		}, fmt.Sprintf(`SELECT `+taskColumns+`, 0, e.seq, e.at,
				CASE WHEN octet_length(e.data) <= %d THEN e.data ELSE '' END
			FROM (SELECT * FROM tasks%s WHERE org_id = $1 AND agent_id = $2 AND %s
				ORDER BY uid DESC LIMIT %d) tasks
			JOIN task_events e ON e.org_id = tasks.org_id AND e.uid = tasks.uid AND e.seq = (
				SELECT min(f.seq) FROM task_events f
				WHERE f.org_id = tasks.org_id AND f.uid = tasks.uid AND f.seq >= tasks.status_seq)
			ORDER BY tasks.uid DESC`, wideRow, ts.d.by("tasks_failed"), inTasksFailed, most), org, agent)
	})
	return out, err
}
