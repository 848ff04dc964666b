package dispatch

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// Crew is the state of an agent's workers and of its queue.
type Crew struct {
	Workers  int       // that are connected
	LastSeen time.Time // zero: no worker was ever seen
	Queued   int       // tasks that wait for a worker, up to MaxQueued
}

// MaxQueued limits how many waiting tasks of an agent are counted.
const MaxQueued = 1000

// Crews returns the state of the workers and the queue of each agent. Agents that the caller's
// credential does not reach are omitted; for admins.
func (s *Workers) Crews(ctx context.Context, a identity.Access, agents []string) (map[string]Crew, error) {
	if err := a.For(identity.ManageAgents); err != nil {
		return nil, err
	}
	reached := reachedOf(a, agents)
	if len(reached) == 0 {
		return nil, nil
	}
	return s.store.Crews(ctx, a.Org(), reached, s.board.now().Add(-GoneAfter), MaxQueued)
}
