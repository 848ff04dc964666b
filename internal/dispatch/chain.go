package dispatch

import (
	"context"

	"github.com/parley-dev/parley/internal/chain"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// unnamed stands in a chain for an agent that the readers of the task must not know of.
const unnamed = "private"

// chained returns the metadata of a new task with its chain of calls. The chain is the deeper one of
// two: that of the parent with its agent, and the one that the sender gave. It refuses a chain that
// is too deep, or that leads back to this platform.
func (s *Tasks) chained(ctx context.Context, c *Call, metadata []byte) ([]byte, error) {
	if c.parent == "" && len(metadata) == 0 {
		return metadata, nil
	}
	given, err := chain.Parse(metadata)
	if err != nil {
		return nil, err
	}
	parent := c.parent
	if parent == "" {
		if parent, err = chain.Parent(metadata); err != nil {
			return nil, err
		}
	}
	if parent == "" && given.IsZero() {
		return metadata, nil
	}
	all := given
	if parent != "" {
		t, err := s.parent(ctx, c, parent)
		if err != nil {
			return nil, err
		}
		before, err := chain.Parse(t.Metadata)
		if err != nil { // written before chains were checked
			before = chain.Chain{}
		}
		all = before.Calls(t.Agent).Join(given)
	}
	if err := all.Check(s.maxDepth, s.platform); err != nil {
		return nil, err
	}
	if c.target.Org != c.sender().Org {
		if all.Agents, err = s.named(ctx, all.Agents); err != nil {
			return nil, err
		}
	}
	return chain.Put(metadata, all)
}

// parent returns the task that the caller says it works on. The caller must be one that may work for
// the task's agent: otherwise it could take the chain of any task.
func (s *Tasks) parent(ctx context.Context, c *Call, parent string) (task.Task, error) {
	refused := errs.InvalidFields(errs.Field{
		Path: errs.At("metadata", chain.ParentKey),
		Message: "must be the uid of a task that the caller works or worked on, or the token of its lease; " +
			"the key must be one that works for the task's agent",
	})
	uid, ok := taskOf(parent)
	if !ok {
		uid = parent
	}
	if !task.ValidID(uid) {
		return task.Task{}, refused
	}
	serves, err := identity.Authorize(c.access.Caller(), c.sender().Org, identity.ServeAgent)
	if err != nil {
		return task.Task{}, refused
	}
	t, err := s.board.read.Row(ctx, c.sender().Org, uid)
	switch {
	case errs.KindOf(err) == errs.NotFound, err == nil && !serves.ServesAgent(t.Agent):
		return task.Task{}, refused
	}
	return t, err
}

// named replaces the ids of agents that are not public, for a task of another org.
func (s *Tasks) named(ctx context.Context, agents []string) ([]string, error) {
	out := make([]string, len(agents))
	for i, id := range agents {
		out[i] = id
		if _, _, err := s.directory.Target(ctx, "", id); err != nil {
			if errs.KindOf(err) != errs.NotFound {
				return nil, err
			}
			out[i] = unnamed
		}
	}
	return out, nil
}
