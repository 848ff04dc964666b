package dispatch

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
)

// Tasks is the service for senders of tasks and for the admins of the agents' orgs.
type Tasks struct {
	board     *board
	directory Directory
	mailbox   Mailbox
	pushes    PushStore
	stock     Stock
	pushURL   func(rawURL string) error // nil if push notifications are turned off
	presence  func(context.Context, task.AgentKey) (Presence, error)
	quotas    *quotas
	replays   *replays
	log       stream.Log
	usage     UsageReader
	maxDepth  int    // of a chain of calls; 0: chain.DefaultDepth
	platform  string // the id of this installation in chains
}

// Get returns a task that the caller sent. It may contain more than was asked for.
func (s *Tasks) Get(ctx context.Context, c Call, id string, l task.Content) (task.Task, error) {
	c, err := s.aimAt(ctx, c, id)
	if err != nil {
		return task.Task{}, err
	}
	k := c.key(id)
	if t, ok := s.board.cache.Get(k); ok {
		return t, budget.From(ctx).Take(ctx, t.Size)
	}
	mark := s.board.cache.Mark(k)
	t, err := load(ctx, l, func(l task.Content) (task.Task, error) { return s.board.read.ByKey(ctx, k, l) })
	if err == nil && l.History && l.Artifacts && l.Clip == 0 && (s.board.bus == nil || t.State.Terminal()) {
		s.board.cache.Put(k, t, mark)
	}
	return t, err
}

// Artifact returns one artifact of a task that the caller sent, by its index in Task.Artifacts.
func (s *Tasks) Artifact(ctx context.Context, c Call, id string, number int) (task.Artifact, error) {
	c, err := s.aimAt(ctx, c, id)
	if err != nil {
		return task.Artifact{}, err
	}
	t, err := s.board.read.ByKey(ctx, c.key(id), task.Content{})
	if err != nil {
		return task.Artifact{}, err
	}
	return s.board.loadArtifact(ctx, t.Org, t.UID, number)
}

// Cancel cancels a task that the caller sent and returns the requested content.
func (s *Tasks) Cancel(ctx context.Context, c Call, id string, l task.Content) (task.Task, error) {
	c, err := s.aimAt(ctx, c, id)
	if err != nil {
		return task.Task{}, err
	}
	now := s.board.now()
	change, err := s.board.write.UpdateByKey(ctx, c.key(id), 0, canceledBy(c.sender(), now))
	if err != nil {
		return task.Task{}, err
	}
	s.board.publish(change)
	return s.board.loadStored(ctx, &change.Task, l)
}

func canceledBy(by identity.Principal, now time.Time) Decision {
	return func(cur task.Current) (task.Change, error) {
		c, err := task.DecideCancel(cur.Task, now)
		c.CanceledBy = by
		return c, err
	}
}

// Expected reports whether a worker is likely to claim a new task soon. If not, a caller
// should not wait for the result of a send.
func (s *Tasks) Expected(ctx context.Context, c Call) bool {
	if c.check() != nil {
		return false
	}
	agent := c.target.Key()
	if s.board.hosts.get(agent) != nil || s.board.desk.waits(agent) > 0 {
		return true
	}
	p, err := s.presence(ctx, agent)
	return err != nil || p != Offline
}
