package mcp

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
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

type findIn struct {
	Words    *string `json:"words,omitempty"`
	Skill    *string `json:"skill,omitempty" jsonschema:"A tag of a skill, exactly."`
	Presence *string `json:"presence,omitempty" jsonschema:"available: has a worker with free capacity; busy: its workers are all occupied; offline: has none, and tasks wait."`
	Cursor   *string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before."`
	Limit    *int    `json:"limit,omitempty"`
}

type foundOut struct {
	ID          string    `json:"id" jsonschema:"The agent of send_task."`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Skills      []string  `json:"skills"`
	Own         bool      `json:"own" jsonschema:"Whether it is an agent of your org."`
	Provider    *string   `json:"provider" jsonschema:"The organization that offers it; null: unknown."`
	Status      string    `json:"status" jsonschema:"available, busy or offline; tasks for an offline agent wait."`
	Reachable   bool      `json:"reachable" jsonschema:"Whether your key may send it tasks."`
	Quota       *quotaOut `json:"quota" jsonschema:"What its org lets yours send; null: no limit."`
}

type quotaOut struct {
	Tasks    int64  `json:"tasks"`
	Per      string `json:"per"`
	Left     int64  `json:"left"`
	ResetsAt string `json:"resets_at"`
}

type foundPage struct {
	Agents     []foundOut `json:"agents"`
	NextCursor *string    `json:"next_cursor" jsonschema:"null: this is the last page."`
}

func (s *server) addCatalogue(m *sdk.Server) {
	add(s, m, tool{
		name: "find_agent", title: "Find an agent", action: identity.ReadAgents,
		effect: effect{readOnly: true, idempotent: true},
		description: "Finds agents that can do a task: those of your org, and public ones of others. " +
			"Without arguments it lists all. Send the task with send_task. Changes nothing. " +
			"Needs one of the scopes svc:tasks:read, svc:a2a:write and svc:admin:admin.",
		limits: func(s *jsonschema.Schema) {
			length(s, "words", 1, agent.MaxWords)
			s.Properties["words"].Description = "Words of the id, the name, the description and the skills. " +
				"All must match; the last one may be a beginning."
			length(s, "skill", 1, 64)
			oneOf(s, "presence", agent.Presences)
			between(s, "limit", 1, agent.MaxFound)
			byDefault(s, "limit", strconv.Itoa(agent.DefaultFound))
		},
	}, s.findAgent)
}

func (s *server) findAgent(ctx context.Context, a *arguments[findIn]) (*foundPage, error) {
	for name, v := range map[string]*string{
		"words": a.in.Words, "skill": a.in.Skill, "presence": a.in.Presence, "cursor": a.in.Cursor,
	} {
		a.notEmpty(name, v)
	}
	if a.in.Limit != nil && *a.in.Limit == 0 {
		a.broken = append(a.broken, errs.NewField("limit", "must be at least 1"))
	}
	if err := a.check(nil); err != nil {
		return nil, err
	}
	presence, err := s.Workers.Presences(ctx)
	if err != nil {
		return nil, err
	}
	page, err := s.Catalogue.Find(ctx, a.access, agent.Find{
		Words: deref(a.in.Words), Skill: deref(a.in.Skill), Presence: deref(a.in.Presence),
		Cursor: deref(a.in.Cursor), Limit: deref(a.in.Limit),
		Status: func(g *agent.Agent) string {
			return cmp.Or(g.Pinned, string(presence(task.AgentKey{Org: g.Org, ID: g.ID})))
		},
	})
	if err != nil {
		return nil, asFound(err)
	}
	out := &foundPage{Agents: make([]foundOut, len(page.Agents)), NextCursor: orNull(page.Next)}
	for i := range page.Agents {
		g := &page.Agents[i]
		out.Agents[i] = foundOut{
			ID: g.ID, Name: g.Name, Description: g.Description, Skills: append([]string{}, g.Skills...), Own: g.Own,
			Provider: orNull(g.Profile.Provider.Organization), Status: g.Status, Reachable: a.access.Has(identity.A2AWrite),
		}
		if u := g.Usage; u != nil {
			out.Agents[i].Quota = &quotaOut{u.Quota.Tasks, string(u.Quota.Per), u.Left(), stamp(u.Resets)}
		}
	}
	return out, nil
}

// asFound renames the fields of a search to those of the arguments.
func asFound(err error) error {
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Invalid {
		return err
	}
	return e.Spelled(func(f errs.Field) errs.Field {
		if f.Path.Equal(errs.At("q")) {
			f.Path = errs.At("words")
		}
		return f
	})
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
