package followup

import (
	"context"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Agents is how a follow-up reaches the agent that it is assigned to.
type Agents interface {
	// Send sends the follow-up as a task. The store links the two in the
	// transaction that creates the task.
	Send(ctx context.Context, a identity.Access, agent string, f Followup) error
	// Recall cancels a task whose follow-up was taken away from the agent.
	Recall(ctx context.Context, a identity.Access, taskUID string) error
}

// agentIn is the agent that a ref names, if follow-ups can be sent to agents.
func (s *Followups) agentIn(ref string) string {
	p, err := identity.ParseRef("", ref)
	if err != nil || p.Kind != identity.Agent || s.agents == nil {
		return ""
	}
	return p.ID
}

// dispatch sends the follow-up to an agent, unless that agent is at it already.
func (s *Followups) dispatch(ctx context.Context, a identity.Access, f Followup, agent string) (Followup, error) {
	if f.Status == Done || f.Status == Canceled {
		e := errs.New(errs.Conflict, "task.transition_not_allowed", "the task is %s; reopen it before an agent works on it", f.Status)
		e.Allowed = []string{string(Open)}
		return f, e
	}
	if s.agentIn(f.Assignee) == agent && f.atWork() {
		return f, nil
	}
	if err := s.agents.Send(ctx, a, agent, f); err != nil {
		return f, err
	}
	return s.store.Get(ctx, f.Org, f.ID)
}

// recall cancels the task of an agent that is no longer wanted: another one was
// assigned, or people ended the follow-up themselves.
func (s *Followups) recall(ctx context.Context, a identity.Access, before, after Followup) error {
	over := after.Status == Done || after.Status == Canceled
	if s.agents == nil || !before.atWork() || before.TaskUID == after.TaskUID && !over {
		return nil
	}
	err := s.agents.Recall(ctx, a, before.TaskUID)
	if k := errs.KindOf(err); err != nil && (k == errs.Conflict || k == errs.NotFound) {
		return nil // it ended by itself
	}
	return err
}
