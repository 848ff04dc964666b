package dispatch

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
)

// limited reports whether the agent has a quota for the caller: those of its own org have none, also when
// they send the task of another org again.
func (c *Call) limited() bool {
	return c.target.Quota != (agent.Quota{}) && c.target.Org != c.access.Org()
}

// charge returns what a new task is counted against, or nil.
func (c *Call) charge(now time.Time) *task.Charge {
	if !c.limited() {
		return nil
	}
	q := c.target.Quota
	start, end := q.Per.Window(now)
	refusal := errs.New(errs.RateLimited, task.CodeCalls,
		"your org has sent the %d tasks that the agent %q allows each org in a %s; wait for the time in Retry-After",
		q.Tasks, c.target.ID, q.Per)
	refusal.RetryAfter = end.Sub(now)
	return &task.Charge{Limit: q.Tasks, Per: string(q.Per), Window: start, Refusal: refusal}
}

// Usage returns what the caller's org has used of the agent's quota. ok is false if the agent has no
// quota for the caller.
func (s *Tasks) Usage(ctx context.Context, c Call) (u agent.Usage, ok bool, err error) {
	if err := c.check(); err != nil || !c.limited() {
		return agent.Usage{}, false, err
	}
	counted, err := s.usage.Used(ctx, c.target.Key(), c.sender().Org)
	if err != nil {
		return agent.Usage{}, false, err
	}
	a := agent.Agent{ID: c.target.ID, Org: c.target.Org, Quota: c.target.Quota}
	return counted.Usage(&a, c.sender().Org, s.board.now()), true, nil
}
