package store

import (
	"context"
	"fmt"
	"time"
)

// Waiting describes tasks that wait for a worker.
type Waiting struct {
	Tasks int64
	Since time.Time // when the oldest one was sent
}

// waitingTasks reads the index of the queue, and one row for each agent that has a queue.
const waitingTasks = `SELECT q.online, CAST(sum(q.n) AS BIGINT), min(t.created_at) FROM (
		SELECT w.org_id, w.n, w.first, CASE WHEN EXISTS (
				SELECT 1 FROM agents a WHERE a.org_id = w.org_id AND a.id = w.agent_id AND a.online = 1
			) THEN 1 ELSE 0 END AS online
		FROM (
			SELECT org_id, agent_id, count(*) AS n, min(uid) AS first FROM tasks%s WHERE queued = 1
			GROUP BY org_id, agent_id
		) w
	) q JOIN tasks t ON t.org_id = q.org_id AND t.uid = q.first GROUP BY q.online`

// Waiting counts the tasks that wait for a worker, of agents that have none and of agents that have
// some. There may be many, so this is a slow read.
func (ts Tasks) Waiting(ctx context.Context) (out [2]Waiting, err error) {
	err = ts.stale(ctx, "", func(ctx context.Context, r reader) error {
		return each(ctx, r, func(r rows) error {
			var online int
			var n, since int64
			if err := r.Scan(&online, &n, &since); err != nil {
				return err
			}
			out[online] = Waiting{Tasks: n, Since: fromMicros(since)}
			return nil
		}, fmt.Sprintf(waitingTasks, ts.d.queue))
	})
	return out, err
}
