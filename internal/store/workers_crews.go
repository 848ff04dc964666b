package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
)

// maxCrews limits the agents of one statement, because engines limit the parts of a UNION.
const maxCrews = 100

// Crews implements dispatch.WorkerStore.
func (ws Workers) Crews(
	ctx context.Context, org string, agents []string, since time.Time, most int,
) (map[string]dispatch.Crew, error) {
	out := map[string]dispatch.Crew{}
	for part := range slices.Chunk(agents, maxCrews) {
		if err := ws.addWorkers(ctx, out, org, part, since); err != nil {
			return nil, err
		}
		if err := ws.addQueues(ctx, out, org, part, most); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addWorkers adds the workers of each agent.
func (ws Workers) addWorkers(
	ctx context.Context, out map[string]dispatch.Crew, org string, agents []string, since time.Time,
) error {
	args, marks := []any{org, micros(since)}, make([]string, len(agents))
	for i, id := range agents {
		args = append(args, id)
		marks[i] = "$" + strconv.Itoa(len(args))
	}
	return each(ctx, ws.eng, func(r rows) error {
		var id string
		var live, seen int64
		err := r.Scan(&id, &live, &seen)
		out[id] = dispatch.Crew{Workers: int(live), LastSeen: fromMicros(seen)}
		return err
	}, `SELECT agent_id, CAST(sum(CASE WHEN seen_at > $2 THEN 1 ELSE 0 END) AS BIGINT), max(seen_at) FROM workers
		WHERE org_id = $1 AND agent_id IN (`+strings.Join(marks, ", ")+`) GROUP BY agent_id`, args...)
}

// addQueues adds the length of each agent's queue. It reads a limited part of each.
func (ws Workers) addQueues(
	ctx context.Context, out map[string]dispatch.Crew, org string, agents []string, most int,
) error {
	args, counts := []any{org}, make([]string, len(agents))
	for i, id := range agents {
		args = append(args, id)
		counts[i] = fmt.Sprintf(`SELECT %d AS agent, count(*) AS waiting FROM (SELECT 1 FROM tasks%s
			WHERE org_id = $1 AND agent_id = $%d AND queued = 1 LIMIT %d) of_agent`, i, ws.d.queue, len(args), most)
	}
	return each(ctx, ws.eng, func(r rows) error {
		var i, waiting int64
		if err := r.Scan(&i, &waiting); err != nil || waiting == 0 {
			return err
		}
		c := out[agents[i]]
		c.Queued = int(waiting)
		out[agents[i]] = c
		return nil
	}, strings.Join(counts, " UNION ALL "), args...)
}
