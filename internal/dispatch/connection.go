package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Enlisted is the part of an agent that Connection depends on.
type Enlisted struct {
	ID       string
	Disabled bool
	Pinned   string // the presence that an admin set; may be empty
	Builtin  string // not empty if the agent runs in the server
}

// ConnectionState says whether an agent has workers and, if not, why not.
type ConnectionState string

// The states.
const (
	Connected       ConnectionState = "connected"
	StatusPinned    ConnectionState = "status_pinned"      // connected, but shown with another status
	AgentDisabled   ConnectionState = "agent_disabled"     //
	NoKey           ConnectionState = "no_key"             // no key can work for the agent
	WrongScope      ConnectionState = "wrong_scope"        // a key lacks svc:a2a:serve
	OtherAgent      ConnectionState = "other_agent"        // a key is for another agent
	KeyNeverUsed    ConnectionState = "key_never_used"     //
	NoWorker        ConnectionState = "no_worker"          // a key was used, but no worker claims tasks
	ConnectionLost  ConnectionState = "connection_lost"    // there was a worker
	RunsInTheServer ConnectionState = "runs_in_the_server" // needs no worker
)

// ConnectionStates lists every state.
var ConnectionStates = []ConnectionState{
	Connected, StatusPinned, AgentDisabled, NoKey, WrongScope, OtherAgent, KeyNeverUsed, NoWorker, ConnectionLost,
	RunsInTheServer,
}

// Connection describes whether an agent has workers and, if not, why not.
type Connection struct {
	State    ConnectionState
	Sentence string // explains the state and what to do
	Pinned   string
	Workers  []Worker // live workers, the last seen first
	LastSeen time.Time
	Keys     []ServingKey // live keys for the agent, the last used first
	Refusals []Refusal    // on this node, the newest first
}

// ServingKey is a key for work for an agent.
type ServingKey struct {
	Key     identity.Key
	Problem ConnectionState // WrongScope or OtherAgent; empty if the key works
}

const (
	maxConnection = 20               // limits each list of a Connection
	refusalCounts = 15 * time.Minute // how long a refusal explains the state
)

// Connection finds out whether an agent of the org has workers and, if not, why not. Refused
// workers are known only on this node, since its start.
func (s *Workers) Connection(ctx context.Context, a identity.Access, g Enlisted) (Connection, error) {
	if err := a.For(identity.ManageAgents); err != nil {
		return Connection{}, err
	}
	if !a.ReachesAgent(g.ID) {
		return Connection{}, errs.ErrNotFound
	}
	c := Connection{Pinned: g.Pinned, Refusals: s.refused.of(a.Org(), g.ID)}
	var err error
	if c.Workers, err = s.store.List(ctx, a.Org(), g.ID, maxConnection); err != nil {
		return Connection{}, err
	}
	now := s.board.now()
	if len(c.Workers) > 0 {
		c.LastSeen = c.Workers[0].SeenAt
	}
	c.Workers = slices.DeleteFunc(c.Workers, func(w Worker) bool { return !w.SeenAt.After(now.Add(-GoneAfter)) })
	if c.Keys, err = s.servingKeys(ctx, a.Org(), g.ID, now); err != nil {
		return Connection{}, err
	}
	c.State, c.Sentence = diagnose(g, &c, now)
	return c, nil
}

// LastSeen returns when a worker of each agent was last seen. Agents without workers, and those
// that the caller's credential does not reach, are omitted.
func (s *Workers) LastSeen(ctx context.Context, a identity.Access, agents []string) (map[string]time.Time, error) {
	if err := a.For(identity.ManageAgents); err != nil {
		return nil, err
	}
	reached := reachedOf(a, agents)
	if len(reached) == 0 {
		return nil, nil
	}
	return s.store.LastSeen(ctx, a.Org(), reached)
}

// reachedOf returns the agents that the caller's credential reaches.
func reachedOf(a identity.Access, agents []string) (out []string) {
	for _, id := range agents {
		if a.ReachesAgent(id) {
			out = append(out, id)
		}
	}
	return out
}

// servingKeys finds the live keys of an agent, and those whose scopes name it.
func (s *Workers) servingKeys(ctx context.Context, org, agent string, now time.Time) ([]ServingKey, error) {
	var out []ServingKey
	f := identity.KeyFilter{State: identity.KeyLive, Now: now, Limit: maxConnection}
	own, named, every := f, f, f
	own.Principal = identity.Principal{Org: org, Kind: identity.Agent, ID: agent}
	named.Scope, every.Scope = identity.Scope("agent:"+agent), "agent:*"
	for _, f := range []identity.KeyFilter{own, named, every} {
		list, err := s.keys.Keys(ctx, org, f)
		if err != nil {
			return nil, err
		}
		for _, k := range list {
			known := slices.ContainsFunc(out, func(o ServingKey) bool { return o.Key.ID == k.ID })
			// A key that can only call the agent is not for work.
			if known || k.Disabled || k.Principal != own.Principal && !k.Scopes.Has(identity.A2AServe) {
				continue
			}
			holder := identity.Caller{Principal: k.Principal, Scopes: k.Scopes}
			out = append(out, ServingKey{Key: k, Problem: serveProblem(&holder, agent)})
		}
	}
	slices.SortStableFunc(out, func(a, b ServingKey) int { return b.Key.LastUsedAt.Compare(a.Key.LastUsedAt) })
	return out[:min(len(out), maxConnection)], nil
}

// serveProblem returns why a caller cannot work for an agent of its org, or "".
func serveProblem(c *identity.Caller, agent string) ConnectionState {
	a, err := identity.Authorize(c, c.Org, identity.ServeAgent)
	switch {
	case err != nil:
		return WrongScope
	case !a.ServesAgent(agent):
		return OtherAgent
	}
	return ""
}

// diagnose decides what is most likely wrong, and what to do about it.
func diagnose(g Enlisted, c *Connection, now time.Time) (ConnectionState, string) {
	usable := slices.IndexFunc(c.Keys, func(k ServingKey) bool { return k.Problem == "" })
	refused := len(c.Refusals) > 0 && c.Refusals[0].At.After(c.LastSeen) && now.Sub(c.Refusals[0].At) < refusalCounts
	switch {
	case g.Disabled:
		return AgentDisabled, "The agent is disabled: it cannot be called, and its keys do not work. Enable it."
	case g.Builtin != "":
		return RunsInTheServer, "The agent runs inside the server and needs no worker."
	case len(c.Workers) > 0 && g.Pinned != "":
		return StatusPinned, fmt.Sprintf("%s connected, but an admin pinned the status to %q, which is what others see. "+
			"Unpin it.", plural(len(c.Workers)), g.Pinned)
	case len(c.Workers) > 0:
		return Connected, plural(len(c.Workers)) + " connected."
	case refused:
		r := c.Refusals[0]
		return r.Reason, fmt.Sprintf("A worker tried with %s (%s) and was refused: %s.",
			r.KeyID, r.Principal.Ref(), refusalText(r.Reason, g.ID))
	case !c.LastSeen.IsZero():
		return ConnectionLost, "A worker was connected and has stopped asking for work. See whether its process runs."
	case usable >= 0 && c.Keys[usable].Key.LastUsedAt.IsZero():
		return KeyNeverUsed, "There is a key for a worker, and it was never used. Start the worker with it. " +
			"A first use shows within a minute."
	case usable >= 0:
		return NoWorker, fmt.Sprintf("The key %s was used, but no worker asks for the agent's work now. "+
			"See whether its process runs, and which agent it works for: %q.", c.Keys[usable].Key.ID, g.ID)
	case len(c.Keys) > 0:
		k := c.Keys[0]
		return k.Problem, fmt.Sprintf("The key %s cannot work for the agent: %s.", k.Key.ID, refusalText(k.Problem, g.ID))
	}
	return NoKey, fmt.Sprintf("There is no key with which a worker could work for the agent. "+
		"Make one for agent:%s with %s.", g.ID, identity.A2AServe)
}

func refusalText(reason ConnectionState, agent string) string {
	if reason == WrongScope {
		return "it lacks the scope " + string(identity.A2AServe)
	}
	return fmt.Sprintf(
		"it is for another agent; a worker uses a key of agent:%[1]s, or one with the scope agent:%[1]s", agent)
}

func plural(n int) string {
	if n == 1 {
		return "1 worker is"
	}
	return fmt.Sprintf("%d workers are", n)
}
