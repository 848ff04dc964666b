package web

import (
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// connecting is the state of an agent's workers, as pages show it.
type connecting struct {
	Agent     agent.Agent
	Href      string // page of the agent
	State     dispatch.ConnectionState
	Title     string
	Text      string
	Key       *identity.Key // key that the text is about
	Workers   int
	LastSeen  time.Time
	Connected bool
	Waits     bool // the state may change, so the page polls
	MayManage bool
	Refused   []refusedRow // workers that were refused, the newest first
}

// connectionTitles are short titles of the states. The service has the full text.
var connectionTitles = map[dispatch.ConnectionState]string{
	dispatch.Connected:       "Connected",
	dispatch.StatusPinned:    "Connected, but the status is pinned",
	dispatch.AgentDisabled:   "The agent is disabled",
	dispatch.NoKey:           "No key yet",
	dispatch.WrongScope:      "The key lacks the scope to work",
	dispatch.OtherAgent:      "The key is for another agent",
	dispatch.KeyNeverUsed:    "Waiting for the first worker",
	dispatch.NoWorker:        "The key is used, but no worker asks for tasks",
	dispatch.ConnectionLost:  "No worker at the moment",
	dispatch.RunsInTheServer: "Nothing to connect",
}

// connecting returns whether the agent has workers and, if not, the likely cause. Members who may
// not read keys see only the status.
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
	out.Refused = refusedRows(c.Refusals)
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
