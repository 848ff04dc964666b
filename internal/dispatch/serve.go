package dispatch

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
)

// Workers is the side of the processes that work for agents, and of those who ask after
// them.
type Workers struct {
	board     *board
	directory Directory
	store     WorkerStore
	mailbox   Mailbox
	keys      KeyStore
	queue     Queue
	log       stream.Log
	limit     int // of workers of one agent; 0: none

	seen    *sightings
	refused *refusals
	loads   *loads
}

// Worker is a process that does an agent's work, as presence sees it.
type Worker struct {
	Org      string
	Agent    string
	Name     string
	Capacity int
	SeenAt   time.Time
}

// Post is proof that a principal may work for an agent.
type Post struct{ target Target }

// Target is the agent that is worked for.
func (p Post) Target() Target { return p.target }

// Serve checks that the caller may work for the agent, which belongs to the
// caller's org.
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
	return Post{target: target}, err
}

// noteRefusal remembers for Connection that a worker was refused.
func (s *Workers) noteRefusal(c *identity.Caller, agent string) {
	if c != nil {
		s.refused.note(Refusal{
			Agent: agent, KeyID: c.KeyID, Principal: c.Principal, Reason: serveProblem(c, agent), At: s.board.now(),
		})
	}
}

// Waiting tells how many workers of an agent wait on this node.
func (s *Workers) Waiting(agent task.AgentKey) int { return s.board.desk.waits(agent) }
