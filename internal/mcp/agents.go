package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

type agentsIn struct{}

type agentOut struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Skills      []string `json:"skills"`
	Public      bool     `json:"public"`
	Disabled    bool     `json:"disabled"`
	Status      string   `json:"status" jsonschema:"available, busy or offline; tasks for an offline agent wait."`
	Reachable   bool     `json:"reachable" jsonschema:"Whether your key may send it tasks."`
}

type agentsOut struct {
	Agents []agentOut `json:"agents"`
	Total  int        `json:"total"`
}

func (s *server) addAgents(m *sdk.Server) {
	add(s, m, tool{
		name: "list_agents", title: "List agents", action: identity.ReadAgents,
		effect: effect{readOnly: true, idempotent: true},
		description: "Lists the agents of your org, or those that your key is restricted to: " +
			"their skills and whether they are available. Changes nothing. " +
			"Needs one of the scopes svc:tasks:read, svc:a2a:write and svc:admin:admin.",
	}, s.listAgents)
}

func (s *server) listAgents(ctx context.Context, a *arguments[agentsIn]) (*agentsOut, error) {
	if err := a.check(nil); err != nil {
		return nil, err
	}
	list, err := s.Agents.Visible(ctx, a.access)
	if err != nil {
		return nil, err
	}
	out := &agentsOut{Agents: make([]agentOut, len(list)), Total: len(list)}
	for i := range list {
		g := &list[i]
		status, err := s.presence(ctx, g)
		if err != nil {
			return nil, err
		}
		out.Agents[i] = agentOut{
			ID: g.ID, Name: g.Name, Description: g.Description, Skills: append([]string{}, g.Skills...),
			Public: g.Public, Disabled: g.Disabled, Status: status,
			Reachable: !g.Disabled && a.access.Has(identity.A2AWrite) && a.access.ReachesAgent(g.ID),
		}
	}
	return out, nil
}

// presence returns the pinned status, or else the one that follows from the workers.
func (s *server) presence(ctx context.Context, g *agent.Agent) (string, error) {
	if g.Pinned != "" {
		return g.Pinned, nil
	}
	p, err := s.Workers.Presence(ctx, task.AgentKey{Org: g.Org, ID: g.ID})
	return string(p), err
}
