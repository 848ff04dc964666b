package followup

import (
	"context"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Agents is how a follow-up reaches the agent that it is assigned to.
type Agents interface {
	// Send sends the follow-up as a task and returns its uid. The store links the two by
	// TakeOver in the transaction that creates the task.
	Send(ctx context.Context, a identity.Access, agent string, f Followup) (taskUID string, err error)
	// Recall cancels a task whose follow-up was taken away from the agent.
	Recall(ctx context.Context, a identity.Access, taskUID string) error
}

// agentIn is the agent that a ref names, if follow-ups can be sent to agents.
func (s *Followups) agentIn(ref string) string {
	if s.agents == nil {
		return ""
	}
	return agentOf(ref)
}

// agentOf is the agent that a ref names; empty: it names none.
func agentOf(ref string) string {
	p, err := identity.ParseRef("", ref)
	if err != nil || p.Kind != identity.Agent {
		return ""
	}
	return p.ID
}

// decideDispatch decides whether the agent is sent a task: not if it is at it already.
func decideDispatch(f Followup, agent string) (send bool, err error) {
	if f.over() {
		return false, f.errOver()
	}
	return agentOf(f.Assignee) != agent || !f.atWork(), nil
}

// dispatch sends the follow-up to an agent, unless that agent is at it already: then the uid
// is empty.
func (s *Followups) dispatch(ctx context.Context, a identity.Access, f Followup, agent string) (taskUID string, err error) {
	send, err := decideDispatch(f, agent)
	if err != nil || !send {
		return "", err
	}
	return s.agents.Send(ctx, a, agent, f)
}

func (f *Followup) errOver() error {
	e := errs.New(errs.Conflict, "followup.transition_not_allowed",
		"the follow-up is %s; reopen it before an agent works on it", f.Status)
	e.Allowed = []string{string(Open)}
	return e
}

// decideRecall decides whether the task that an agent was at is canceled: another assignee
// has the follow-up now, or people ended it themselves.
func decideRecall(before, after Followup) bool {
	return before.atWork() && (before.TaskUID != after.TaskUID || after.over())
}

// recall cancels the task of an agent that is no longer wanted.
func (s *Followups) recall(ctx context.Context, a identity.Access, before, after Followup) error {
	if s.agents == nil || !decideRecall(before, after) {
		return nil
	}
	return s.cancel(ctx, a, before.TaskUID)
}

func (s *Followups) cancel(ctx context.Context, a identity.Access, taskUID string) error {
	err := s.agents.Recall(ctx, a, taskUID)
	if k := errs.KindOf(err); err != nil && (k == errs.Conflict || k == errs.NotFound) {
		return nil // it ended by itself
	}
	return err
}
