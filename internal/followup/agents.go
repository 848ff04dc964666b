package followup

import (
	"context"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Agents sends follow-ups to the agents that they are assigned to.
type Agents interface {
	// Send sends the follow-up as a task and returns its uid. The store links the two with
	// TakeOver, in the transaction that creates the task.
	Send(ctx context.Context, a identity.Access, agent string, f Followup) (taskUID string, err error)
	// Recall cancels a task whose follow-up was reassigned or ended.
	Recall(ctx context.Context, a identity.Access, taskUID string) error
}

// agentIn returns the agent of a ref if follow-ups can be sent to agents, or "".
func (s *Followups) agentIn(ref string) string {
	if s.agents == nil {
		return ""
	}
	return agentOf(ref)
}

// agentOf returns the id of the agent in a ref, or "".
func agentOf(ref string) string {
	p, err := identity.ParseRef("", ref)
	if err != nil || p.Kind != identity.Agent {
		return ""
	}
	return p.ID
}

// decideSend decides whether to send the agent a task: not if it already works on one.
func decideSend(f Followup, agent string) (send bool, err error) {
	if f.over() {
		return false, f.errOver()
	}
	return agentOf(f.Assignee) != agent || !f.atWork(), nil
}

// send sends the follow-up to an agent. The uid is empty if the agent already works on it.
func (s *Followups) send(
	ctx context.Context, a identity.Access, f Followup, agent string,
) (taskUID string, err error) {
	send, err := decideSend(f, agent)
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

// decideRecall decides whether to cancel the task of an agent: the follow-up was reassigned, or
// people ended it.
func decideRecall(before, after Followup) bool {
	return before.atWork() && (before.TaskUID != after.TaskUID || after.over())
}

// recall cancels the task of an agent that is no longer needed.
func (s *Followups) recall(ctx context.Context, a identity.Access, before, after Followup) error {
	if s.agents == nil || !decideRecall(before, after) {
		return nil
	}
	return s.cancel(ctx, a, before.TaskUID)
}

func (s *Followups) cancel(ctx context.Context, a identity.Access, taskUID string) error {
	err := s.agents.Recall(ctx, a, taskUID)
	if k := errs.KindOf(err); err != nil && (k == errs.Conflict || k == errs.NotFound) {
		return nil // it has ended already
	}
	return err
}
