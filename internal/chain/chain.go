// Package chain reads and writes the chain of calls in the metadata of a task.
//
// An agent that works on a task may send tasks to other agents, and these again. The chain of a
// task counts the calls that led to it, so that the server can refuse a task that is too deep:
// two agents that call each other would otherwise never end. The chain also names the agents and
// the platforms on the way.
//
// The package knows the form of the metadata. It does not know tasks, agents or who may be a
// parent: package dispatch checks that.
package chain

import (
	"slices"

	"github.com/parley-dev/parley/internal/errs"
)

// Keys of the metadata of a request.
const (
	Key       = "parley.dev/chain"  // the chain, an object
	ParentKey = "parley.dev/parent" // the task that the sender works on, a string
)

const (
	// DefaultDepth is how many calls a chain may have by default.
	DefaultDepth = 8
	// MaxDepth is the largest depth that can be configured.
	MaxDepth = 64
	// maxName is the maximum length of the id of an agent, a platform or a parent, in bytes.
	maxName = 256
)

// Codes of refusals.
const (
	CodeTooDeep = "chain.too_deep"
	CodeLoop    = "relay.loop"
)

// Chain is how a task came about. The zero value is the chain of a task that no agent called for.
type Chain struct {
	// Depth is the number of calls by agents that led to the task.
	Depth int
	// Agents are the agents that made the calls, the first caller first. It may have fewer
	// entries than Depth: agents of other platforms are not named.
	Agents []string
	// Via has the ids of the platforms whose relays passed the task on.
	Via []string
}

// IsZero reports whether the chain is empty.
func (c Chain) IsZero() bool { return c.Depth == 0 && len(c.Agents) == 0 && len(c.Via) == 0 }

// Calls returns the chain of a task that the agent sends while it works on a task with the chain c.
// A worker does not pass on the task itself, as a relay does, so the new chain has no platforms.
func (c Chain) Calls(agent string) Chain {
	return Chain{Depth: c.Depth + 1, Agents: append(slices.Clone(c.Agents), agent)}
}

// Relays returns the chain of a task with the chain c that a relay of the platform passes on. It
// does not tell the remote which agents called.
func (c Chain) Relays(platform string) Chain {
	return Chain{Depth: c.Depth + 1, Via: append(slices.Clone(c.Via), platform)}
}

// Join returns the deeper chain of two, with the platforms of both.
func (c Chain) Join(other Chain) Chain {
	out := c
	if other.Depth > c.Depth {
		out = other
	}
	out.Via = slices.Clone(c.Via)
	for _, id := range other.Via {
		if !slices.Contains(out.Via, id) {
			out.Via = append(out.Via, id)
		}
	}
	return out
}

// Check refuses a chain that is deeper than the limit, or that a relay of the platform has passed
// on before. A limit of 0 means DefaultDepth.
func (c Chain) Check(limit int, platform string) error {
	if limit == 0 {
		limit = DefaultDepth
	}
	switch {
	case c.Depth > limit:
		return errs.New(errs.Conflict, CodeTooDeep,
			"the task is %d calls deep; at most %d are allowed (--max-call-depth): "+
				"agents may be calling each other in a loop", c.Depth, limit)
	case platform != "" && slices.Contains(c.Via, platform):
		return errs.New(errs.Conflict, CodeLoop,
			"a relay of this platform has passed this task on before; "+
				"change the relay so that it does not lead back here")
	}
	return nil
}
