package store

import (
	"context"
	"fmt"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// Asking implements dispatch.Stock.
func (ts Tasks) Asking(ctx context.Context, sender identity.Principal, most int) ([]task.Task, error) {
	where, args := "sender_org = $1", []any{sender.Org}
	if sender.ID != "" {
		where, args = where+" AND sender = $2", append(args, sender.Ref())
	}
	out := []task.Task{}
	err := each(ctx, ts.eng, func(r rows) error {
		cur, err := ts.scanTask(r)
		out = append(out, cur.Task)
		return err
	}, `SELECT `+taskColumns+`, 0 FROM tasks`+ts.d.by("tasks_asking")+`
		WHERE `+inTasksAsking+` AND `+where+limit(most), args...)
	return out, err
}

// Queued implements dispatch.Stock. It steps from agent to agent in the index of waiting tasks, so
// that a long queue costs no more than a short one.
func (ts Tasks) Queued(ctx context.Context, org string, most int) (out []dispatch.QueuedAgent, err error) {
	err = each(ctx, ts.eng, func(r rows) error {
		var q dispatch.QueuedAgent
		err := r.Scan(&q.ID, &q.Waiting)
		out = append(out, q)
		return err
	}, fmt.Sprintf(queuedAgents, ts.d.queue, limit(dispatch.MaxUnattended), limit(most)), org)
	return out, err
}

// queuedAgents selects the agents of an org with waiting tasks, and counts these up to a limit.
const queuedAgents = `WITH RECURSIVE agents (id) AS (
		SELECT id FROM (SELECT min(agent_id) AS id FROM tasks%[1]s WHERE org_id = $1 AND queued = 1) f
		UNION ALL
			SELECT (SELECT min(t.agent_id) FROM tasks t%[1]s WHERE t.org_id = $1 AND t.queued = 1 AND t.agent_id > agents.id)
			FROM agents WHERE agents.id IS NOT NULL
	)
	SELECT id, (SELECT count(*) FROM (
			SELECT 1 FROM tasks t%[1]s WHERE t.org_id = $1 AND t.agent_id = agents.id AND t.queued = 1%[2]s
		) q) FROM agents WHERE id IS NOT NULL%[3]s`
