package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
)

// Types of the parameters of a search for agents.
type (
	catalogueWords    string
	catalogueSkill    string
	cataloguePresence string
	catalogueLimit    int
)

func (catalogueWords) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(1, agent.MaxWords), matching(storable))
}

func (catalogueSkill) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(1, 64), matching(agent.TagPattern))
}

func (cataloguePresence) Schema(huma.Registry) *huma.Schema {
	return stringSchema(oneOf(agent.Presences))
}

func (catalogueLimit) Schema(huma.Registry) *huma.Schema {
	return integer(1, agent.MaxFound, agent.DefaultFound)
}

// FoundAgent is an agent that the caller may reach, of any org.
type FoundAgent struct {
	ID          string         `json:"id" doc:"Id under which the caller reaches it." example:"scout"`
	Org         *string        `json:"org" doc:"Your org, for its own agents; null for those of other orgs." example:"main"`
	Name        string         `json:"name" doc:"Display name." example:"Scout"`
	Description string         `json:"description" doc:"What it does, in a sentence." example:"Finds what is slow."`
	Skills      []string       `json:"skills" nullable:"false" doc:"Tags of its skills." example:"[\"profiling\"]"`
	Public      bool           `json:"public" doc:"Whether other orgs may see and call it." example:"true"`
	Status      string         `json:"status" doc:"Whether it has workers with free capacity." example:"available"`
	URL         string         `json:"url" doc:"URL to call it, relative to the server." example:"/a2a/scout"`
	CardURL     string         `json:"card_url" doc:"URL of its card, relative to the server." example:"/a2a/scout/.well-known/agent-card.json"`
	Provider    *AgentProvider `json:"provider,omitempty" doc:"Organization that offers it; omitted if unknown."`
	Quota       *QuotaUsage    `json:"quota,omitempty" doc:"Quota of your org, and what is left of it; omitted if there is none."`
}

// TransformSchema adds the enumerations of the domain.
func (FoundAgent) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "status", oneOf(agent.Presences))
	return s
}

// FoundAgents is a page of agents.
type FoundAgents struct {
	Agents     []FoundAgent `json:"agents" nullable:"false" doc:"The best matches first, then by id."`
	NextCursor *string      `json:"next_cursor" doc:"Cursor of the next page; null on the last page."`
}

// AgentQuota is how many tasks each other org may send to an agent.
type AgentQuota struct {
	Tasks int64  `json:"tasks" doc:"Number of tasks that each other org may send in one period." example:"1000"`
	Per   string `json:"per" doc:"The period, in UTC." example:"day"`
}

// TransformSchema adds the limits of the domain.
func (AgentQuota) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "tasks", between(1, agent.MaxQuota))
	property(s, "per", oneOf(agent.Periods))
	return s
}

// QuotaUsage is what an org has used of a quota.
type QuotaUsage struct {
	Tasks    int64  `json:"tasks" doc:"Number of tasks that the org may send in one period." example:"1000"`
	Per      string `json:"per" doc:"The period, in UTC." example:"day"`
	Used     int64  `json:"used" doc:"Tasks sent in the current period." example:"120"`
	Left     int64  `json:"left" doc:"Tasks that may still be sent in the current period." example:"880"`
	ResetsAt string `json:"resets_at" format:"date-time" doc:"When the current period ends."`
}

// TransformSchema adds the enumerations of the domain.
func (QuotaUsage) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "per", oneOf(agent.Periods))
	return s
}

// AgentUsage is what the org has used of the quota of an agent.
type AgentUsage struct {
	Agent string `json:"agent" doc:"The agent's id." example:"scout"`
	QuotaUsage
}

// UsageList is a page of the usage of quotas.
type UsageList struct {
	Usage      []AgentUsage `json:"usage" nullable:"false" doc:"Sorted by agent."`
	NextCursor *string      `json:"next_cursor" doc:"Cursor of the next page; null on the last page."`
}

// CallerUsage is what another org has used of the quota of an agent.
type CallerUsage struct {
	Org string `json:"org" doc:"The calling org." example:"globex"`
	QuotaUsage
}

// AgentCallers is the usage of an agent by other orgs.
type AgentCallers struct {
	Quota   *AgentQuota   `json:"quota" doc:"Quota of each other org; null if there is none, and nothing is counted."`
	Callers []CallerUsage `json:"callers" nullable:"false" doc:"Orgs that sent tasks in the current period, the largest first."`
}

func quotaOf(q agent.Quota) *AgentQuota {
	if q == (agent.Quota{}) {
		return nil
	}
	return &AgentQuota{Tasks: q.Tasks, Per: string(q.Per)}
}

func usageOf(u *agent.Usage) QuotaUsage {
	return QuotaUsage{
		Tasks: u.Quota.Tasks, Per: string(u.Quota.Per), Used: u.Used, Left: u.Left(), ResetsAt: stamp(u.Resets),
	}
}

func foundAgentOf(g *agent.Listed) FoundAgent {
	out := FoundAgent{
		ID: g.ID, Name: g.Name, Description: g.Description, Skills: names(g.Skills), Public: g.Public, Status: g.Status,
		URL: "/a2a/" + g.ID, CardURL: "/a2a/" + g.ID + "/.well-known/agent-card.json",
	}
	if g.Own {
		out.Org = &g.Org
	}
	if p := g.Profile.Provider; p != (agent.Provider{}) {
		out.Provider = &AgentProvider{p.Organization, p.URL}
	}
	if g.Usage != nil {
		u := usageOf(g.Usage)
		out.Quota = &u
	}
	return out
}

// quotaInput is a quota in a request; null removes it.
type quotaInput struct {
	set    bool
	value  AgentQuota
	broken []errs.Field // relative to the quota
}

// AcceptsNull implements httpx.Nullable.
func (*quotaInput) AcceptsNull() string { return "an object or null" }

// UnmarshalJSON implements json.Unmarshaler.
func (q *quotaInput) UnmarshalJSON(data []byte) error {
	q.set = true
	if data[0] == 'n' {
		return nil
	}
	var err error
	q.broken, err = httpx.Decode(data, &q.value)
	if len(q.broken) == 0 && q.value == (AgentQuota{}) {
		q.broken = []errs.Field{
			{Path: errs.At("tasks"), Message: "is required"}, {Path: errs.At("per"), Message: "is required"},
		}
	}
	return err
}

// Schema documents the quota.
func (quotaInput) Schema(r huma.Registry) *huma.Schema {
	s := inRequest[AgentQuota](r)
	s.Nullable = true
	return s
}

// read returns the quota of a request and its decoding errors.
func (q *quotaInput) read() (agent.Quota, []errs.Field) {
	return agent.Quota{Tasks: q.value.Tasks, Per: agent.Period(q.value.Per)}, errs.Under(q.broken, "quota")
}
