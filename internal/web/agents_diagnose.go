package web

import (
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// connecting is how far the connection of a worker is, as pages show it.
type connecting struct {
	Agent     agent.Agent
	Href      string // of the agent
	State     dispatch.ConnectionState
	Title     string
	Text      string
	Key       *identity.Key // that the words are about
	Workers   int
	LastSeen  time.Time
	Connected bool
	Waits     bool // it may change by itself, so it is asked for again
	MayManage bool
}

// connectionTitles are the states in a few words; the service says the rest.
var connectionTitles = map[dispatch.ConnectionState]string{
	dispatch.Connected:       "Connected",
	dispatch.StatusPinned:    "Connected, but the status is pinned",
	dispatch.AgentDisabled:   "The agent is disabled",
	dispatch.NoKey:           "No key yet",
	dispatch.WrongScope:      "The key lacks the scope to work",
	dispatch.OtherAgent:      "The key is for another agent",
	dispatch.KeyNeverUsed:    "Waiting for the first worker",
	dispatch.NoWorker:        "The key is used, but nobody asks for work",
	dispatch.ConnectionLost:  "No worker at the moment",
	dispatch.RunsInTheServer: "Nothing to connect",
}

// connecting finds out whether a worker is there and, if not, why. Who may not read keys learns
// no more than the status.
func (v *visit) connecting(g *agent.Agent) (connecting, error) {
	out := connecting{Agent: *g, Href: v.agentPath(g.ID), MayManage: v.may(identity.ManageAgents)}
	if !out.MayManage {
		presence, err := v.Workers.Presence(v.r.Context(), task.AgentKey{Org: g.Org, ID: g.ID})
		if out.Connected = presence != dispatch.Offline; out.Connected {
			out.State, out.Title, out.Text = dispatch.Connected, connectionTitles[dispatch.Connected],
				"A worker is there, and waits for tasks."
		} else {
			out.State, out.Title, out.Text = dispatch.NoWorker, "No worker at the moment",
				"An admin of your org makes the key that a worker needs."
		}
		out.Waits = !out.Connected
		return out, err
	}
	a, err := v.access(identity.ManageAgents)
	if err != nil {
		return out, err
	}
	c, err := v.Workers.Connection(v.r.Context(), a, enlisted(g))
	if err != nil {
		return out, err
	}
	out.State, out.Title, out.Text, out.Workers, out.LastSeen = c.State, connectionTitles[c.State], c.Sentence,
		len(c.Workers), c.LastSeen
	switch c.State {
	case dispatch.Connected, dispatch.StatusPinned, dispatch.RunsInTheServer:
		out.Connected = true
	case dispatch.AgentDisabled: // nothing changes by itself
	default:
		out.Waits = true
		if len(c.Keys) > 0 {
			out.Key = &c.Keys[0].Key
		}
	}
	return out, nil
}

func enlisted(g *agent.Agent) dispatch.Enlisted {
	return dispatch.Enlisted{ID: g.ID, Disabled: g.Disabled, Pinned: g.Pinned, Builtin: g.Builtin}
}

// everConnected reports whether an agent has, or had, a worker.
func (v *visit) everConnected(g *agent.Agent) (bool, error) {
	ctx := v.r.Context()
	tasks, err := v.access(identity.ReadTasks)
	if err != nil {
		return false, err
	}
	done, err := v.Tasks.OrgTasks(ctx, tasks, dispatch.Filter{Agent: g.ID, State: task.Completed, Limit: 1})
	if err != nil || len(done) > 0 {
		return err == nil, err
	}
	a, err := v.access(identity.ManageAgents)
	if err != nil {
		return false, err
	}
	c, err := v.Workers.Connection(ctx, a, enlisted(g))
	if err != nil {
		return false, err
	}
	for i := range c.Keys {
		if k := &c.Keys[i]; k.Problem == "" && !k.Key.LastUsedAt.IsZero() {
			return true, nil
		}
	}
	return !c.LastSeen.IsZero(), nil
}
