package rest

import (
	"cmp"
	"context"
	"net/http"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

const (
	cataloguePath  = "/api/v1/agents"
	usagePath      = mePath + "/usage"
	agentUsagePath = agentPath + "/usage"
)

func (a *api) registerCatalogue() {
	register(a, operation{
		id: "find-agents", method: http.MethodGet, path: cataloguePath, tag: tagAgents,
		summary: "Find agents to call", self: true,
		description: "The agents that the key may reach: those of the org, and the public ones of other orgs. With `q`, " +
			"agents whose id, name or skills have all words come first. Otherwise they are sorted by id. A page may be " +
			"shorter than its limit; `next_cursor` is null on the last one. " +
			"Requires svc:tasks:read, svc:a2a:write or svc:admin:admin.",
	}, a.findAgents)
	register(a, operation{
		id: "get-usage", method: http.MethodGet, path: usagePath, tag: tagAgents,
		summary: "Get the usage of quotas", self: true,
		description: "What the org has used of the quotas of other orgs' agents in the current window, by agent. " +
			"Agents that the org never called are not listed. Requires svc:a2a:write.",
	}, a.getUsage)
	register(a, operation{
		id: "get-agent-usage", method: http.MethodGet, path: agentUsagePath, tag: tagAgents,
		summary: "Get the usage of an agent", action: identity.ManageAgents, validID: identity.ValidAgentID,
		description: "What other orgs have used of the agent's quota in the current window, the largest first; " +
			"at most 100 orgs. Requires svc:admin:admin.",
	}, a.getAgentUsage)
}

type findAgentsInput struct {
	Words    catalogueWords    `query:"q" doc:"Words of the id, the name, the description and the skills. All must match; the last one may be a beginning." example:"customs tariff"`
	Skill    catalogueSkill    `query:"skill" doc:"A tag of a skill, exactly." example:"profiling"`
	Presence cataloguePresence `query:"presence" doc:"Filter by status."`
	Org      string            `query:"org" maxLength:"64" doc:"Your own org: only its agents. Agents of other orgs have no org here." example:"main"`
	Limit    catalogueLimit    `query:"limit" doc:"Page size."`
	Cursor   string            `query:"cursor" doc:"Cursor: next_cursor of the previous page."`
}

type findAgentsOutput struct {
	Link []string `header:"Link" doc:"Links to the first and next page (RFC 8288)."`
	Body FoundAgents
}

func (a *api) findAgents(ctx context.Context, c *call, in *findAgentsInput) (*findAgentsOutput, error) {
	access, err := c.As(identity.ReadAgents)
	if err != nil {
		return nil, err
	}
	presence, err := a.workers.Presences(ctx)
	if err != nil {
		return nil, err
	}
	found, err := a.catalogue.Find(ctx, access, agent.Find{
		Words: string(in.Words), Skill: string(in.Skill), Presence: string(in.Presence), Org: in.Org,
		Cursor: in.Cursor, Limit: int(in.Limit),
		Status: func(g *agent.Agent) string {
			return cmp.Or(g.Pinned, string(presence(task.AgentKey{Org: g.Org, ID: g.ID})))
		},
	})
	if err != nil {
		return nil, httpx.InQuery(err)
	}
	out := &findAgentsOutput{
		Link: links(c.request.URL, position{more: found.Next != "", cursor: found.Next, byCursor: true}),
		Body: FoundAgents{Agents: make([]FoundAgent, len(found.Agents)), NextCursor: orNull(found.Next)},
	}
	for i := range found.Agents {
		out.Body.Agents[i] = foundAgentOf(&found.Agents[i])
	}
	return out, nil
}

type getUsageInput struct {
	Limit  catalogueLimit `query:"limit" doc:"Page size."`
	Cursor string         `query:"cursor" doc:"Cursor: next_cursor of the previous page."`
}

type getUsageOutput struct {
	Link []string `header:"Link" doc:"Links to the first and next page (RFC 8288)."`
	Body UsageList
}

func (a *api) getUsage(ctx context.Context, c *call, in *getUsageInput) (*getUsageOutput, error) {
	access, err := c.As(identity.CallAgent)
	if err != nil {
		return nil, err
	}
	page, err := a.catalogue.Used(ctx, access, in.Cursor, cmp.Or(int(in.Limit), agent.DefaultFound))
	if err != nil {
		return nil, httpx.InQuery(err)
	}
	out := &getUsageOutput{
		Link: links(c.request.URL, position{more: page.Next != "", cursor: page.Next, byCursor: true}),
		Body: UsageList{Usage: make([]AgentUsage, len(page.Usages)), NextCursor: orNull(page.Next)},
	}
	for i := range page.Usages {
		u := &page.Usages[i]
		out.Body.Usage[i] = AgentUsage{Agent: u.Agent, QuotaUsage: usageOf(u)}
	}
	return out, nil
}

type agentUsageOutput struct{ Body AgentCallers }

func (a *api) getAgentUsage(ctx context.Context, c *call, in *getAgentInput) (*agentUsageOutput, error) {
	g, err := a.agents.Get(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	list, err := a.catalogue.Callers(ctx, c.Access, &g)
	if err != nil {
		return nil, err
	}
	out := &agentUsageOutput{Body: AgentCallers{Quota: quotaOf(g.Quota), Callers: make([]CallerUsage, len(list))}}
	for i := range list {
		out.Body.Callers[i] = CallerUsage{Org: list[i].Caller, QuotaUsage: usageOf(&list[i])}
	}
	return out, nil
}
