package demo

import (
	"context"
	"fmt"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/webhook"
)

// Services are what the people and agents of the company use. All have the same clock.
type Services struct {
	OrgAdmin  *identity.OrgAdmin
	Agents    *agent.Registry
	Proposals *proposal.Proposals
	Followups *followup.Followups
	Frictions *friction.Frictions
	Tasks     *dispatch.Tasks
	Workers   *dispatch.Workers
	Webhooks  *webhook.Service
}

// caller returns a member as it would be after it signed in or used its key.
func caller(ref string) (*identity.Caller, error) {
	p, err := identity.ParseRef(Founding.Org, ref)
	if err != nil {
		return nil, err
	}
	c := &identity.Caller{Principal: p}
	switch {
	case p.Kind == identity.Agent:
		c.Scopes = identity.Scopes{identity.TasksRead, identity.TasksWrite, identity.A2AServe}
	case p.Kind == identity.Service:
		c.Scopes = identity.Scopes{identity.A2AWrite}
	case isAdmin(p.ID):
		c.Scopes = identity.AllScopes
	default:
		c.Scopes = identity.Scopes{identity.TasksRead, identity.TasksWrite, identity.A2AWrite}
	}
	return c, nil
}

func isAdmin(user string) bool {
	for _, p := range people {
		if p.id == user {
			return p.admin
		}
	}
	return user == Founding.Admin
}

// as authorizes a member for an action.
func (s *Services) as(ref string, action identity.Action) (identity.Access, error) {
	c, err := caller(ref)
	if err != nil {
		return identity.Access{}, err
	}
	return identity.Authorize(c, Founding.Org, action)
}

// vote casts a vote.
func (s *Services) vote(ctx context.Context, id, voter string, b proposal.Ballot) error {
	access, err := s.as(voter, identity.VoteOnProposal)
	if err != nil {
		return err
	}
	_, err = s.Proposals.Vote(ctx, access, id, b)
	return err
}

// call returns the proof that a member may send tasks to an agent.
func (s *Services) call(ctx context.Context, sender, agent string) (dispatch.Call, error) {
	c, err := caller(sender)
	if err != nil {
		return dispatch.Call{}, err
	}
	call, err := s.Tasks.Reach(ctx, c, agent)
	if err != nil {
		return call, fmt.Errorf("reach %s: %w", agent, err)
	}
	return call, nil
}

// post returns the proof that an agent's own worker may work for it.
func (s *Services) post(ctx context.Context, agent string) (dispatch.Post, error) {
	c, err := caller("agent:" + agent)
	if err != nil {
		return dispatch.Post{}, err
	}
	post, err := s.Workers.Serve(ctx, c, agent)
	if err != nil {
		return post, fmt.Errorf("serve %s: %w", agent, err)
	}
	return post, nil
}
