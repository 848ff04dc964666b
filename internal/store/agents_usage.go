package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/task"
)

// errUncounted means that an org has no row for an agent in agent_usage.
var errUncounted = errors.New("the calls of the org are not counted yet")

// charged runs a write that counts a task against a quota. On PostgreSQL the row of the count is the
// lock under which senders on all nodes take turns, so it must exist before.
func (s *db) charged(ctx context.Context, t *task.Task, write func() error) error {
	const tries = 3 // the row disappears only while the org is deleted
	err := errUncounted
	for n := 0; n < tries && errors.Is(err, errUncounted); n++ {
		if n > 0 {
			if err := s.eng.write(ctx, func(x *tx) error {
				x.exec(`INSERT INTO agent_usage (org_id, agent_id, caller_org, per, window_at, used)
					VALUES ($1, $2, $3, '', 0, 0) ON CONFLICT (org_id, agent_id, caller_org) DO NOTHING`,
					t.Org, t.Agent, t.Sender.Org)
				return nil
			}); err != nil {
				return err
			}
		}
		err = write()
	}
	return err
}

// charge counts a task. The returned function queues the write. If the quota is used up, it returns
// the refusal.
func (x *tx) charge(ctx context.Context, t *task.Task, c *task.Charge) (func(), error) {
	var per string
	var window, used int64
	found, err := one(ctx, x, []any{&per, &window, &used}, `SELECT per, window_at, used FROM agent_usage
		WHERE org_id = $1 AND agent_id = $2 AND caller_org = $3`+x.d.forUpdate, t.Org, t.Agent, t.Sender.Org)
	switch start := micros(c.Window); {
	case err != nil:
		return nil, err
	case !found:
		return nil, errUncounted
	case per != c.Per || window < start: // a new window
		window, used = start, 0
	}
	if used >= c.Limit {
		return nil, c.Refusal
	}
	return func() {
		x.exec(`UPDATE agent_usage SET per = $4, window_at = $5, used = $6
			WHERE org_id = $1 AND agent_id = $2 AND caller_org = $3`,
			t.Org, t.Agent, t.Sender.Org, c.Per, window, used+1)
	}, nil
}

const countedColumns = `u.per, u.window_at, u.used`

// countedRow has the values of countedColumns.
type countedRow struct {
	per          string
	window, used int64
}

func (r *countedRow) dest() []any { return []any{&r.per, &r.window, &r.used} }

func (r *countedRow) counted() agent.Counted {
	return agent.Counted{Per: agent.Period(r.per), Window: fromMicros(r.window), Used: r.used}
}

// Used implements dispatch.UsageReader.
func (s Agents) Used(ctx context.Context, key task.AgentKey, caller string) (agent.Counted, error) {
	var row countedRow
	_, err := one(ctx, s.eng, row.dest(), `SELECT `+countedColumns+` FROM agent_usage u
		WHERE org_id = $1 AND agent_id = $2 AND caller_org = $3`, key.Org, key.ID, caller)
	return row.counted(), err
}

// Counted implements agent.CatalogueStore.
func (s Agents) Counted(
	ctx context.Context, caller string, agents []agent.Agent,
) (map[agent.ID]agent.Counted, error) {
	f := finding{args: []any{caller}}
	marks := make([]string, len(agents))
	for i := range agents {
		marks[i] = f.arg(agents[i].ID)
	}
	out := map[agent.ID]agent.Counted{}
	err := each(ctx, s.eng, func(r rows) error {
		var id agent.ID
		var row countedRow
		err := r.Scan(append([]any{&id.Org, &id.ID}, row.dest()...)...)
		out[id] = row.counted()
		return err
	}, `SELECT u.org_id, u.agent_id, `+countedColumns+` FROM agent_usage u
		WHERE u.caller_org = $1 AND u.agent_id IN (`+strings.Join(marks, ", ")+`)`, f.args...)
	return out, err
}

// Quotas implements agent.CatalogueStore.
func (s Agents) Quotas(ctx context.Context, caller, after string, most int) ([]agent.Called, error) {
	var out []agent.Called
	err := each(ctx, s.eng, func(r rows) error {
		var row countedRow
		a, err := scanAgent(r, row.dest()...)
		out = append(out, agent.Called{Agent: a, Counted: row.counted()})
		return err
	}, `SELECT `+columnsOfA+`, `+countedColumns+` FROM agent_usage u JOIN agents a ON a.org_id = u.org_id AND a.id = u.agent_id
		WHERE u.caller_org = $1 AND u.agent_id > $2 AND a.public = 1 AND a.disabled = 0 AND a.quota_tasks > 0
		ORDER BY u.agent_id`+limit(most), caller, after)
	return out, err
}

// Callers implements agent.CatalogueStore.
func (s Agents) Callers(
	ctx context.Context, org, id string, since time.Time, most int,
) ([]agent.Caller, error) {
	var out []agent.Caller
	err := each(ctx, s.eng, func(r rows) error {
		var c agent.Caller
		var row countedRow
		err := r.Scan(append([]any{&c.Org}, row.dest()...)...)
		c.Counted = row.counted()
		out = append(out, c)
		return err
	}, `SELECT u.caller_org, `+countedColumns+` FROM agent_usage u
		WHERE u.org_id = $1 AND u.agent_id = $2 AND u.window_at >= $3
		ORDER BY u.used DESC, u.caller_org`+limit(most), org, id, micros(since))
	return out, err
}
