package dispatch

import (
	"context"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// Call is proof that a principal may send tasks to an agent. Only Reach makes one. Every
// method that takes a Call refuses the zero value.
type Call struct {
	access identity.Access
	target Target
	// hidden is a public agent of another org that has the same id as the target, which is
	// an agent of the sender's org. New tasks go to the target. Tasks that were sent to the
	// hidden agent before the target existed are still found.
	hidden *Target
	parent string // see During
	// onBehalf is the sender of tasks that an admin sends again; see OrgRerun. Mostly zero.
	onBehalf identity.Principal
}

// During returns the Call for an agent that calls while it works on a task: its uid, or the token of
// its lease. It may be empty. The parent is checked when a new task is sent.
func (c Call) During(parent string) Call {
	c.parent = parent
	return c
}

// Target returns the agent that may be called.
func (c Call) Target() Target { return c.target }

// check refuses a Call that Reach did not make.
func (c *Call) check() error { return c.access.For(identity.CallAgent) }

func (c *Call) sender() identity.Principal {
	if c.onBehalf != (identity.Principal{}) {
		return c.onBehalf
	}
	return c.access.Principal()
}

// key returns the sender's key of a task.
func (c *Call) key(id string) task.Key {
	return task.Key{Org: c.target.Org, Agent: c.target.ID, Sender: c.sender(), ID: id}
}

// Reach checks that the caller may call the agent. It checks the scope and the agent
// restriction before it looks up the agent, so that a refusal does not reveal which agents
// exist.
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
	return Call{access: a, target: target, hidden: hidden}, nil
}

// Still checks that the caller may still call the agent under its id.
func (s *Tasks) Still(ctx context.Context, c *identity.Caller, agent task.AgentKey) error {
	now, err := s.Reach(ctx, c, agent.ID)
	if err == nil && now.target.Org != agent.Org && (now.hidden == nil || now.hidden.Org != agent.Org) {
		err = errs.ErrNotFound
	}
	return err
}

// Aim returns a Call to the agent that has the task. If the task does not exist, that is the
// target.
func (s *Tasks) Aim(ctx context.Context, c Call, id string) (Call, error) {
	if err := c.check(); err != nil || c.hidden == nil {
		return c, err
	}
	own := Call{access: c.access, target: c.target, parent: c.parent}
	other := Call{access: c.access, target: *c.hidden, parent: c.parent}
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

// aimAt is Aim for a task that must exist.
func (s *Tasks) aimAt(ctx context.Context, c Call, id string) (Call, error) {
	c, err := s.Aim(ctx, c, id)
	if err == nil && !task.ValidID(id) {
		err = errs.ErrNotFound
	}
	return c, err
}

func refuseAgent(verb, agent string) error {
	e := errs.New(errs.Forbidden, "auth.agent_out_of_scope",
		"this key may not %s the agent %q; it needs the scope agent:%s", verb, agent, agent)
	e.Scope = "agent:" + agent
	return e
}
