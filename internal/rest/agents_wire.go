package rest

import (
	"cmp"
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// Agent is one agent of the org.
type Agent struct {
	ID           string   `json:"id" doc:"Unique within the org." example:"scout"`
	Name         string   `json:"name" doc:"What people call it." example:"Scout"`
	Description  string   `json:"description" doc:"What it does, in a sentence." example:"Finds what is slow."`
	Skills       []string `json:"skills" nullable:"false" doc:"The tags of its skills, to choose by." example:"[\"profiling\"]"`
	Public       bool     `json:"public" doc:"Whether other orgs may see and call it." example:"false"`
	Disabled     bool     `json:"disabled" doc:"Whether nobody may call it or work for it." example:"false"`
	Status       string   `json:"status" doc:"Whether it can be expected to answer." example:"available"`
	PinnedStatus *string  `json:"pinned_status" doc:"The status that an admin set; null: it follows from the workers." example:"busy"`
	LastSeenAt   *string  `json:"last_seen_at" format:"date-time" doc:"When a worker of it last asked for work; null if none is remembered, and for callers who may not manage agents." example:"2026-03-02T10:00:00.000000Z"`
	URL          string   `json:"url" doc:"Where to call it, relative to the server." example:"/a2a/scout"`
	CreatedAt    string   `json:"created_at" format:"date-time" doc:"When it was registered." example:"2026-03-02T10:00:00.000000Z"`
	UpdatedAt    string   `json:"updated_at" format:"date-time" doc:"When its entry last changed." example:"2026-03-02T10:00:00.000000Z"`

	SkillDetails     []AgentSkill   `json:"skill_details,omitempty" nullable:"false" doc:"Its skills, if there is more to say than their tags; left out in lists."`
	Version          string         `json:"version,omitempty" doc:"The version of the agent; left out in lists." example:"1.4.0"`
	DocumentationURL string         `json:"documentation_url,omitempty" doc:"Where it is documented; left out in lists."`
	IconURL          string         `json:"icon_url,omitempty" doc:"Its picture; left out in lists."`
	Provider         *AgentProvider `json:"provider,omitempty" doc:"Who offers it; left out in lists."`
}

// TransformSchema takes the lists from the domain.
func (Agent) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "status", oneOf(agent.Presences))
	property(s, "pinned_status", oneOf(agent.Presences))
	return s
}

// AgentList is all agents of the org.
type AgentList struct {
	Agents []Agent `json:"agents" nullable:"false" doc:"By id."`
	Total  int     `json:"total" doc:"How many there are." example:"3"`
}

// AgentCreation is the body that registers an agent.
type AgentCreation struct {
	ID          string       `json:"id" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" doc:"Unique within the org, and part of the agent's address; that of a public agent is also unique among the public agents of all orgs." example:"scout"`
	Name        string       `json:"name" doc:"What people call it." example:"Scout"`
	Description *string      `json:"description,omitempty" doc:"What it does, in a sentence." example:"Finds what is slow."`
	Skills      []skillInput `json:"skills,omitempty" nullable:"false" doc:"What it can do: tags to choose by, or skills with more to say."`
	Public      bool         `json:"public,omitempty" doc:"Whether other orgs may see and call it." example:"false"`

	Version          string        `json:"version,omitempty" doc:"The version of the agent, for its card." example:"1.4.0"`
	DocumentationURL string        `json:"documentation_url,omitempty" doc:"Where it is documented, for its card."`
	IconURL          string        `json:"icon_url,omitempty" doc:"Its picture, for its card."`
	Provider         providerInput `json:"provider,omitempty" doc:"Who offers it, for its card."`
}

// TransformSchema takes the limits from the domain.
func (AgentCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	agentSchema(s)
	return s
}

// AgentPatch is the body of a change to an agent.
type AgentPatch struct {
	Name        *string       `json:"name,omitempty" doc:"A new name."`
	Description *string       `json:"description,omitempty" doc:"A new description."`
	Skills      *[]skillInput `json:"skills,omitempty" nullable:"false" doc:"All its skills anew: tags to choose by, or skills with more to say."`
	Public      *bool         `json:"public,omitempty" doc:"Whether other orgs may see and call it."`
	Disabled    *bool         `json:"disabled,omitempty" doc:"Whether nobody may call it or work for it."`
	Status      pin           `json:"status,omitempty" doc:"Pins the status, whatever its workers do; null lets it follow them again."`

	Version          *string      `json:"version,omitempty" doc:"A new version of the agent; empty: none."`
	DocumentationURL *string      `json:"documentation_url,omitempty" doc:"Where it is documented; empty: nowhere."`
	IconURL          *string      `json:"icon_url,omitempty" doc:"Its picture; empty: none."`
	Provider         providerEdit `json:"provider,omitempty" doc:"Who offers it; null: nobody in particular."`
}

// TransformSchema takes the limits from the domain.
func (AgentPatch) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	agentSchema(s)
	one := 1
	s.MinProperties = &one
	return s
}

func agentSchema(s *huma.Schema) {
	property(s, "name", length(1, agent.MaxName), matching(namePattern()))
	property(s, "description", length(0, agent.MaxDescription), matching(prosePattern()))
	property(s, "skills", items(0, agent.MaxSkills))
	property(s, "version", emptyOr(agent.VersionPattern))
	property(s, "documentation_url", emptyOr(agent.URLPattern), length(0, agent.MaxURL))
	property(s, "icon_url", emptyOr(agent.URLPattern), length(0, agent.MaxURL))
}

// pin is a status, or null for none.
type pin struct {
	set   bool
	value string
}

// AcceptsNull implements httpx.Nullable.
func (*pin) AcceptsNull() string { return "a string or null" }

// UnmarshalJSON implements json.Unmarshaler; null leaves the value empty.
func (p *pin) UnmarshalJSON(data []byte) error {
	p.set = true
	return json.Unmarshal(data, &p.value)
}

// Schema documents it.
func (pin) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Nullable: true}
	oneOf(agent.Presences)(s)
	return s
}

// agentsOf shows agents with the presence that counts: the pinned one, or else what
// follows from their workers.
func (a *api) agentsOf(ctx context.Context, c *call, list []agent.Agent) ([]Agent, error) {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	var seen map[string]time.Time // others than admins are not told
	if admin, err := c.As(identity.ManageAgents); err == nil {
		if seen, err = a.workers.LastSeen(ctx, admin, ids); err != nil {
			return nil, err
		}
	}
	presence, err := a.workers.Presences(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Agent, len(list))
	for i := range list {
		g := &list[i]
		out[i] = Agent{
			ID: g.ID, Name: g.Name, Description: g.Description, Skills: names(g.Skills), Public: g.Public, Disabled: g.Disabled,
			Status:       cmp.Or(g.Pinned, string(presence(task.AgentKey{Org: g.Org, ID: g.ID}))),
			PinnedStatus: orNull(g.Pinned), LastSeenAt: stampOrNull(seen[g.ID]), URL: "/a2a/" + g.ID,
			CreatedAt: stamp(g.CreatedAt), UpdatedAt: stamp(g.UpdatedAt),
		}
	}
	return out, nil
}
