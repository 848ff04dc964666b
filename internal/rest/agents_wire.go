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

// Agent is an agent of the org.
type Agent struct {
	ID           string   `json:"id" doc:"Unique within the org." example:"scout"`
	Name         string   `json:"name" doc:"Display name." example:"Scout"`
	Description  string   `json:"description" doc:"What it does, in a sentence." example:"Finds what is slow."`
	Skills       []string `json:"skills" nullable:"false" doc:"Tags of its skills." example:"[\"profiling\"]"`
	Public       bool     `json:"public" doc:"Whether other orgs may see and call it." example:"false"`
	Disabled     bool     `json:"disabled" doc:"Disabled agents cannot be called or worked for." example:"false"`
	Status       string   `json:"status" doc:"Whether it has workers with free capacity." example:"available"`
	PinnedStatus *string  `json:"pinned_status" doc:"Status set by an admin; null if it follows from the workers." example:"busy"`
	LastSeenAt   *string  `json:"last_seen_at" format:"date-time" doc:"When a worker last polled; null if unknown, and for non-admins."`
	URL          string   `json:"url" doc:"URL to call it, relative to the server." example:"/a2a/scout"`
	CreatedAt    string   `json:"created_at" format:"date-time" doc:"When it was registered."`
	UpdatedAt    string   `json:"updated_at" format:"date-time" doc:"When its entry last changed."`

	Quota *AgentQuota `json:"quota,omitempty" doc:"Quota of each other org; omitted if there is none."`

	SkillDetails     []AgentSkill   `json:"skill_details,omitempty" nullable:"false" doc:"Skills with more than a tag; omitted in lists."`
	Version          string         `json:"version,omitempty" doc:"Version of the agent; omitted in lists." example:"1.4.0"`
	DocumentationURL string         `json:"documentation_url,omitempty" doc:"URL of its documentation; omitted in lists."`
	IconURL          string         `json:"icon_url,omitempty" doc:"URL of its icon; omitted in lists."`
	Provider         *AgentProvider `json:"provider,omitempty" doc:"Organization that offers it; omitted in lists."`
	Policy           *AgentPolicy   `json:"policy,omitempty" doc:"Deadline and retries of tasks whose sender gives none; absent if not set."`
	Relay            *AgentRelay    `json:"relay,omitempty" doc:"The remote agent that does its work; omitted in lists, and for agents with workers."`
}

// TransformSchema adds the enumerations of the domain.
func (Agent) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "status", oneOf(agent.Presences))
	property(s, "pinned_status", oneOf(agent.Presences))
	return s
}

// AgentList lists the agents of the org.
type AgentList struct {
	Agents []Agent `json:"agents" nullable:"false" doc:"Sorted by id."`
	Total  int     `json:"total" doc:"Number of agents." example:"3"`
}

// AgentCreation is the body that registers an agent.
type AgentCreation struct {
	ID          string       `json:"id" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" example:"scout"`
	Name        string       `json:"name,omitempty" doc:"Display name; required unless it is a relay." example:"Scout"`
	Description *string      `json:"description,omitempty" doc:"What it does, in a sentence." example:"Finds what is slow."`
	Skills      []skillInput `json:"skills,omitempty" nullable:"false" doc:"Skills, as tags or as objects; a relay has those of its remote agent."`
	Public      bool         `json:"public,omitempty" doc:"Whether other orgs may see and call it." example:"false"`
	Quota       quotaInput   `json:"quota,omitempty" doc:"How many tasks each other org may send; null for no limit."`

	Version          string        `json:"version,omitempty" doc:"Version of the agent, for its card." example:"1.4.0"`
	DocumentationURL string        `json:"documentation_url,omitempty" doc:"URL of its documentation, for its card."`
	IconURL          string        `json:"icon_url,omitempty" doc:"URL of its icon, for its card."`
	Provider         providerInput `json:"provider,omitempty" doc:"Organization that offers it, for its card."`
	Policy           policyInput   `json:"policy,omitempty" doc:"Deadline and retries of tasks whose sender gives none."`
	Relay            relayInput    `json:"relay,omitempty" doc:"Makes it a relay: a remote A2A agent does its work."`
}

// TransformSchema adds the limits of the domain.
func (AgentCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	agentSchema(s)
	property(s, "id", describedAs("Unique within the org, and part of the agent's URL. "+
		"The id of a public agent is also unique among the public agents of all orgs."))
	return s
}

// AgentPatch is the body of a change to an agent.
type AgentPatch struct {
	Name        *string       `json:"name,omitempty" doc:"A new name."`
	Description *string       `json:"description,omitempty" doc:"A new description."`
	Skills      *[]skillInput `json:"skills,omitempty" nullable:"false" doc:"Skills, as tags or as objects; replaces all."`
	Public      *bool         `json:"public,omitempty" doc:"Whether other orgs may see and call it."`
	Disabled    *bool         `json:"disabled,omitempty" doc:"Disabled agents cannot be called or worked for."`
	Quota       quotaInput    `json:"quota,omitempty" doc:"How many tasks each other org may send; null for no limit."`
	Status      pin           `json:"status,omitempty" doc:"Pins the status; null lets it follow from the workers again."`

	Version          *string      `json:"version,omitempty" doc:"A new version of the agent; empty removes it."`
	DocumentationURL *string      `json:"documentation_url,omitempty" doc:"URL of its documentation; empty removes it."`
	IconURL          *string      `json:"icon_url,omitempty" doc:"URL of its icon; empty removes it."`
	Provider         providerEdit `json:"provider,omitempty" doc:"Organization that offers it; null removes it."`
	Policy           policyInput  `json:"policy,omitempty" doc:"Deadline and retries of tasks whose sender gives none; replaces all, null removes them."`
	Relay            relayInput   `json:"relay,omitempty" doc:"Another URL or credential of the remote agent; only for a relay."`
}

// TransformSchema adds the limits of the domain.
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

// pin is a pinned status; null unpins.
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

// Schema documents the status.
func (pin) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, Nullable: true}
	oneOf(agent.Presences)(s)
	return s
}

// agentsOf converts agents. Their status is the pinned one or, without it, the presence of their
// workers.
func (a *api) agentsOf(ctx context.Context, c *call, list []agent.Agent) ([]Agent, error) {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	var seen map[string]time.Time // for admins only
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
		out[i] = agentOf(g)
		out[i].Status = cmp.Or(g.Pinned, string(presence(task.AgentKey{Org: g.Org, ID: g.ID})))
		out[i].LastSeenAt = stampOrNull(seen[g.ID])
	}
	return out, nil
}

// agentOf converts an agent, without what depends on its workers.
func agentOf(g *agent.Agent) Agent {
	return Agent{
		ID: g.ID, Name: g.Name, Description: g.Description, Skills: names(g.Skills),
		Public: g.Public, Disabled: g.Disabled, Status: g.Pinned,
		PinnedStatus: orNull(g.Pinned), URL: "/a2a/" + g.ID, Quota: quotaOf(g.Quota),
		CreatedAt: stamp(g.CreatedAt), UpdatedAt: stamp(g.UpdatedAt), Policy: policyOf(g.Policy),
	}
}
