package store

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

// Workers stores the workers of agents.
type Workers struct{ *db }

// Workers returns the implementation of dispatch.WorkerStore.
func (s *Store) Workers() Workers { return Workers{s.db} }

// See implements dispatch.WorkerStore.
func (ws Workers) See(ctx context.Context, w dispatch.Worker, limit int) error {
	return ws.eng.write(ctx, func(x *tx) error {
		if limit > 0 {
			if err := x.roomForWorker(ctx, w, limit); err != nil {
				return err
			}
		}
		x.seen(&w)
		return x.joined(ctx, &w)
	})
}

// SeeAgain implements dispatch.WorkerStore.
func (ws Workers) SeeAgain(ctx context.Context, w dispatch.Worker) error {
	return ws.eng.add(ctx, func(x *tx) error {
		x.seen(&w)
		return nil
	})
}

// seen records a worker, unless its agent is gone: an agent that runs in the server may outlive the
// deletion of its org for some seconds.
func (x *tx) seen(w *dispatch.Worker) {
	x.exec(`INSERT INTO workers (org_id, agent_id, name, capacity, seen_at)
				SELECT $1, $2, $3, $4, $5 WHERE EXISTS (SELECT 1 FROM agents WHERE org_id = $1 AND id = $2)
				ON CONFLICT (org_id, agent_id, name) DO UPDATE
				SET capacity = excluded.capacity, seen_at = excluded.seen_at`,
		w.Org, w.Agent, w.Name, w.Capacity, micros(w.SeenAt))
}

// List implements dispatch.WorkerStore.
func (ws Workers) List(ctx context.Context, org, agent string, most int) ([]dispatch.Worker, error) {
	var out []dispatch.Worker
	err := each(ctx, ws.eng, func(r rows) error {
		w := dispatch.Worker{Org: org, Agent: agent}
		var seen int64
		err := r.Scan(&w.Name, &w.Capacity, &seen)
		w.SeenAt = fromMicros(seen)
		out = append(out, w)
		return err
	}, `SELECT name, capacity, seen_at FROM workers
		WHERE org_id = $1 AND agent_id = $2 ORDER BY seen_at DESC, name LIMIT $3`, org, agent, most)
	return out, err
}

// LastSeen implements dispatch.WorkerStore.
func (ws Workers) LastSeen(ctx context.Context, org string, agents []string) (map[string]time.Time, error) {
	out := map[string]time.Time{}
	for part := range slices.Chunk(agents, maxMarks) {
		marks, args := make([]string, len(part)), []any{org}
		for i, id := range part {
			args = append(args, id)
			marks[i] = "$" + strconv.Itoa(len(args))
		}
		err := each(ctx, ws.eng, func(r rows) error {
			var id string
			var seen int64
			err := r.Scan(&id, &seen)
			out[id] = fromMicros(seen)
			return err
		}, `SELECT agent_id, max(seen_at) FROM workers
				WHERE org_id = $1 AND agent_id IN (`+strings.Join(marks, ", ")+`) GROUP BY agent_id`, args...)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// maxMarks limits the parameters of a list in a statement, because engines limit them.
const maxMarks = 1000

// roomForWorker returns an error if w is a new worker of an agent that has reached the limit. It
// first deletes workers that have been silent for long.
func (x *tx) roomForWorker(ctx context.Context, w dispatch.Worker, limit int) error {
	known, err := x.exists(ctx, `SELECT 1 FROM workers
		WHERE org_id = $1 AND agent_id = $2 AND name = $3`, w.Org, w.Agent, w.Name)
	if err != nil || known {
		return err
	}
	const ofAgent = `workers WHERE org_id = $1 AND agent_id = $2`
	n, err := countUpTo(ctx, x, limit, ofAgent, w.Org, w.Agent)
	if err != nil || n < limit {
		return err
	}
	old := micros(w.SeenAt.Add(-dispatch.ForgetWorkers))
	n, err = countUpTo(ctx, x, limit, ofAgent+` AND seen_at >= $3`, w.Org, w.Agent, old)
	if err != nil || n >= limit {
		return cmp.Or(err, dispatch.TooManyWorkers(limit))
	}
	x.exec(`DELETE FROM `+ofAgent+` AND seen_at < $3`, w.Org, w.Agent, old)
	return nil
}

// Forget implements dispatch.WorkerStore.
func (ws Workers) Forget(ctx context.Context, w dispatch.Worker) error {
	return ws.eng.add(ctx, func(x *tx) error {
		x.exec(`DELETE FROM workers WHERE org_id = $1 AND agent_id = $2 AND name = $3`, w.Org, w.Agent, w.Name)
		return nil
	})
}

// Loads implements dispatch.WorkerStore.
func (ws Workers) Loads(ctx context.Context, since time.Time) (map[task.AgentKey]dispatch.Load, error) {
	out := map[task.AgentKey]dispatch.Load{}
	sum := func(set func(l *dispatch.Load, n int), sql string, args ...any) error {
		return each(ctx, ws.eng, func(r rows) error {
			var k task.AgentKey
			var n int64
			err := r.Scan(&k.Org, &k.ID, &n)
			l := out[k]
			set(&l, int(n))
			out[k] = l
			return err
		}, sql, args...)
	}
	err := sum(func(l *dispatch.Load, n int) { l.Capacity = n },
		`SELECT org_id, agent_id, CAST(sum(capacity) AS BIGINT) FROM workers
			WHERE seen_at > $1 GROUP BY org_id, agent_id`, micros(since))
	if err != nil {
		return nil, err
	}
	return out, sum(func(l *dispatch.Load, n int) { l.Leased = n },
		`SELECT org_id, agent_id, count(*) FROM tasks WHERE lease_expires > 0 GROUP BY org_id, agent_id`)
}
