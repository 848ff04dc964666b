package dispatch

import (
	"context"
	"slices"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// MaxAsking limits the tasks that Tasks.Asking returns.
const MaxAsking = 100

// Asking returns up to limit tasks that wait for an answer: the caller's own, and for admins then
// those of the other senders of the org. The latest question of each is first, unless there are more
// than MaxAsking. Whoever sees the event about the question may see it here.
func (s *Tasks) Asking(ctx context.Context, a identity.Access, limit int) ([]task.Task, error) {
	if err := a.For(identity.ReadEvents); err != nil {
		return nil, err
	}
	if limit < 1 || limit > MaxAsking {
		return nil, errs.New(errs.Internal, "tasks.limit", "a limit of %d is not between 1 and %d", limit, MaxAsking)
	}
	own, err := s.stock.Asking(ctx, a.Principal(), MaxAsking)
	if err != nil {
		return nil, err
	}
	sortAsking(own)
	if a.Has(identity.Admin) && len(own) < limit {
		all, err := s.stock.Asking(ctx, identity.Principal{Org: a.Org()}, MaxAsking)
		if err != nil {
			return nil, err
		}
		others := slices.DeleteFunc(all, func(t task.Task) bool { return t.Sender == a.Principal() })
		sortAsking(others)
		own = append(own, others...)
	}
	return own[:min(len(own), limit)], nil
}

// sortAsking sorts the latest question first.
func sortAsking(list []task.Task) {
	slices.SortFunc(list, func(a, b task.Task) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
}

// QueuedAgent is an agent with tasks that wait for a worker.
type QueuedAgent struct {
	ID      string
	Waiting int // up to MaxUnattended
}

const (
	// MaxUnattended is how far the tasks of an agent without a worker are counted.
	MaxUnattended = 20
	// maxQueuedAgents limits the agents that Unattended looks at.
	maxQueuedAgents = 100
)

// Unattended returns the agents of the org that have waiting tasks and no worker; for admins.
func (s *Workers) Unattended(ctx context.Context, a identity.Access) ([]QueuedAgent, error) {
	if err := a.For(identity.ReadTasks); err != nil {
		return nil, err
	}
	list, err := s.stock.Queued(ctx, a.Org(), maxQueuedAgents)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	presence, err := s.Presences(ctx)
	if err != nil {
		return nil, err
	}
	var out []QueuedAgent
	for _, q := range list {
		if presence(task.AgentKey{Org: a.Org(), ID: q.ID}) == Offline {
			out = append(out, q)
		}
	}
	return out, nil
}
