package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"
)

// FoundAgent is an agent that the key may reach: one of its org, or a public one of another.
type FoundAgent struct {
	ID          string         `json:"id"`
	Org         string         `json:"org"` // empty: another org's
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Skills      []string       `json:"skills"` // the tags of all skills
	Public      bool           `json:"public"`
	Status      AgentStatus    `json:"status"`
	URL         string         `json:"url"` // below the server's URL
	CardURL     string         `json:"card_url"`
	Provider    *AgentProvider `json:"provider"`
	Quota       *QuotaUsage    `json:"quota"` // of the key's org; nil: no limit
}

// QuotaPeriod is the length of the windows in which tasks are counted.
type QuotaPeriod string

// The periods, which begin with the minute, the hour or the day in UTC.
const (
	PerMinute QuotaPeriod = "minute"
	PerHour   QuotaPeriod = "hour"
	PerDay    QuotaPeriod = "day"
)

// AgentQuota is how many tasks each other org may send to an agent.
type AgentQuota struct {
	Tasks int64       `json:"tasks"`
	Per   QuotaPeriod `json:"per"`
}

// MarshalJSON implements json.Marshaler: the empty quota of a patch is null, which removes the limit.
func (q AgentQuota) MarshalJSON() ([]byte, error) {
	if q == (AgentQuota{}) {
		return []byte("null"), nil
	}
	type plain AgentQuota
	return json.Marshal(plain(q))
}

// QuotaUsage is what an org has used of a quota.
type QuotaUsage struct {
	Tasks    int64       `json:"tasks"`
	Per      QuotaPeriod `json:"per"`
	Used     int64       `json:"used"`
	Left     int64       `json:"left"`
	ResetsAt time.Time   `json:"resets_at"`
}

// FindParams selects agents. Zero fields do not filter.
type FindParams struct {
	// Words must all match the id, the name, the description or the skills; the last one may be a
	// beginning.
	Words    string      `url:"q"`
	Skill    string      `url:"skill"` // a tag, exactly
	Presence AgentStatus `url:"presence"`
	Org      string      `url:"org"` // the key's own org: only its agents
	Cursor   string      `url:"cursor"`
	Limit    int         `url:"limit"`
}

func (s *AgentsService) find(p FindParams) listing[FoundAgent] {
	r := call{method: http.MethodGet, path: "/api/v1/agents", query: values(p)}
	return listing[FoundAgent]{c: s.c, call: r, member: "agents"}
}

// Find returns one page of the agents that the key may reach, the best matches first. A page may be
// shorter than its limit, even if there are more.
func (s *AgentsService) Find(ctx context.Context, p FindParams, opts ...Option) (*Page[FoundAgent], error) {
	return s.find(p).page(ctx, opts)
}

// FindAll iterates over the agents of all pages.
func (s *AgentsService) FindAll(ctx context.Context, p FindParams, opts ...Option) iter.Seq2[FoundAgent, error] {
	return s.find(p).all(ctx, opts)
}

// AgentUsage is what the key's org has used of the quota of an agent.
type AgentUsage struct {
	Agent string `json:"agent"`
	QuotaUsage
}

// UsageParams selects a page.
type UsageParams struct {
	Cursor string `url:"cursor"`
	Limit  int    `url:"limit"`
}

// Usage returns one page of what the key's org has used of the quotas of other orgs' agents.
func (s *AgentsService) Usage(ctx context.Context, p UsageParams, opts ...Option) (*Page[AgentUsage], error) {
	r := call{method: http.MethodGet, path: "/api/v1/me/usage", query: values(p)}
	return listing[AgentUsage]{c: s.c, call: r, member: "usage"}.page(ctx, opts)
}

// AgentCallers is what other orgs have used of the quota of an agent.
type AgentCallers struct {
	Quota   *AgentQuota   `json:"quota"` // nil: no limit, and nothing is counted
	Callers []CallerUsage `json:"callers"`
}

// CallerUsage is what one other org has used.
type CallerUsage struct {
	Org string `json:"org"`
	QuotaUsage
}

// Callers returns the orgs that sent tasks to an agent of the org in the current period.
func (s *AgentsService) Callers(ctx context.Context, id string, opts ...Option) (*AgentCallers, error) {
	return fetch[AgentCallers](ctx, s.c, read("agents", id, "usage"), opts)
}
