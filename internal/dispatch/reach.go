package dispatch

import (
	"context"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// Call is proof that a principal may send tasks to an agent.
type Call struct {
	target Target
	// hidden is a public agent of another org with the id of the target, which is of the
	// sender's own org. New tasks go to the target; those that the sender sent to the
	// hidden one, before its org had an agent of that id, are still found.
	hidden *Target
	sender identity.Principal
}

// Target is the agent that may be called.
func (c Call) Target() Target { return c.target }

// key is how the sender names a task with the agent.
func (c *Call) key(id string) task.Key {
	return task.Key{Org: c.target.Org, Agent: c.target.ID, Sender: c.sender, ID: id}
}

// Reach checks that the caller may call the agent. Scope and restriction are
// checked before the agent is looked up, so a refusal says nothing about which
// agents exist.
func (s *Tasks) Reach(ctx context.Context, c *identity.Caller, agent string) (Call, error) {
	if !identity.ValidAgentID(agent) {
		return Call{}, errs.ErrNotFound
	}
	org := ""
	if c != nil {
		org = c.Org
	}
	a, err := identity.Authorize(c, org, identity.CallAgent)
	if err != nil {
		return Call{}, err
	}
	if !a.ReachesAgent(agent) {
		return Call{}, refuseAgent("call", agent)
	}
	target, hidden, err := s.directory.Target(ctx, a.Org(), agent)
	if err != nil {
		return Call{}, err
	}
	if target.Org != a.Org() && !target.Public {
		return Call{}, errs.ErrNotFound
	}
	return Call{target: target, hidden: hidden, sender: a.Principal()}, nil
}

// Still checks that the caller may still call an agent of an org under its id.
func (s *Tasks) Still(ctx context.Context, c *identity.Caller, agent task.AgentKey) error {
	now, err := s.Reach(ctx, c, agent.ID)
	if err == nil && now.target.Org != agent.Org && (now.hidden == nil || now.hidden.Org != agent.Org) {
		err = errs.ErrNotFound
	}
	return err
}

// Aim returns the call for what concerns one task: the agent that it is for is the one
// that has the task. A task that does not exist is for the target.
func (s *Tasks) Aim(ctx context.Context, c Call, id string) (Call, error) {
	if c.hidden == nil {
		return c, nil
	}
	own, other := Call{target: c.target, sender: c.sender}, Call{target: *c.hidden, sender: c.sender}
	if !task.ValidID(id) {
		return own, nil
	}
	for _, c := range []Call{own, other} {
		_, err := s.board.read.ByKey(ctx, c.key(id), task.Content{})
		if err == nil || errs.KindOf(err) != errs.NotFound {
			return c, err
		}
	}
	return own, nil
}

func refuseAgent(verb, agent string) error {
	e := errs.New(errs.Forbidden, "auth.agent_out_of_scope", "this key may not %s the agent %q; it needs the scope agent:%s", verb, agent, agent)
	e.Scope = "agent:" + agent
	return e
}
