package dispatch

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
)

// Workers is the service for the processes that do agents' work, and for queries about them.
type Workers struct {
	board     *board
	directory Directory
	store     WorkerStore
	mailbox   Mailbox
	keys      KeyStore
	queue     Queue
	stock     Stock
	log       stream.Log
	limit     int // workers per agent; 0 means no limit

	seen    *sightings
	refused *refusals
	loads   *loads
}

// Worker is a process that does an agent's work.
type Worker struct {
	Org      string
	Agent    string
	Name     string
	Capacity int
	SeenAt   time.Time
}

// Post is proof that a principal may work for an agent. Only Serve makes one. Every method
// that takes a Post refuses the zero value.
type Post struct {
	access identity.Access
	target Target
}

// Target returns the agent.
func (p Post) Target() Target { return p.target }

// check refuses a Post that Serve did not make.
func (p *Post) check() error { return p.access.For(identity.ServeAgent) }

// Serve checks that the caller may work for an agent of its org.
func (s *Workers) Serve(ctx context.Context, c *identity.Caller, agent string) (Post, error) {
	if !identity.ValidAgentID(agent) {
		return Post{}, errs.ErrNotFound
	}
	org := ""
	if c != nil {
		org = c.Org
	}
	a, err := identity.Authorize(c, org, identity.ServeAgent)
	if err != nil {
		s.noteRefusal(c, agent)
		return Post{}, err
	}
	if !a.ServesAgent(agent) {
		s.noteRefusal(c, agent)
		return Post{}, refuseAgent("work for", agent)
	}
	target, err := s.directory.Own(ctx, a.Org(), agent)
	if err == nil && target.Relay {
		return Post{}, errs.New(errs.Conflict, "agent.is_relay",
			"the agent %q is a relay: a remote agent does its work; register another agent for your worker", agent)
	}
	return Post{access: a, target: target}, err
}

// noteRefusal records for Connection that a worker was refused.
func (s *Workers) noteRefusal(c *identity.Caller, agent string) {
	if c != nil {
		s.refused.note(Refusal{
			Agent: agent, KeyID: c.KeyID, Principal: c.Principal, Reason: serveProblem(c, agent), At: s.board.now(),
		})
	}
}

// Waiting returns how many workers of an agent wait on this node.
func (s *Workers) Waiting(agent task.AgentKey) int { return s.board.desk.waits(agent) }
