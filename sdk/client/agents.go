package client

import (
	"context"
	"encoding/json"
	"time"
)

// AgentsService manages the agents of the org. [Client.Agent] calls one.
type AgentsService struct{ service }

// AgentStatus reports whether an agent can take work.
type AgentStatus string

// The statuses of agents.
const (
	AgentAvailable AgentStatus = "available"
	AgentBusy      AgentStatus = "busy"
	AgentOffline   AgentStatus = "offline"
)

// MarshalJSON implements json.Marshaler: the empty status of a patch is null, which lets
// the status follow the workers.
func (s AgentStatus) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(s))
}

// Agent is an agent of the org.
type Agent struct {
	ID               string         `json:"id"`
	Name             string         `json:"name"`
	Description      string         `json:"description"`
	Skills           []string       `json:"skills"` // the tags of all skills
	SkillDetails     []AgentSkill   `json:"skill_details"`
	Version          string         `json:"version"`
	DocumentationURL string         `json:"documentation_url"`
	IconURL          string         `json:"icon_url"`
	Provider         *AgentProvider `json:"provider"`
	Policy           *TaskPolicy    `json:"policy"` // of tasks whose sender gives none; nil: none
	Public           bool           `json:"public"`
	Quota            *AgentQuota    `json:"quota"` // of each other org; nil: no limit
	Disabled         bool           `json:"disabled"`
	Status           AgentStatus    `json:"status"`
	PinnedStatus     AgentStatus    `json:"pinned_status"` // empty: the status follows the workers
	URL              string         `json:"url"`           // below the server's URL
	CreatedAt        time.Time      `json:"created_at"`
	UpdatedAt        time.Time      `json:"updated_at"`
	LastSeenAt       time.Time      `json:"last_seen_at"` // zero: no worker was seen, or the key may not read it
	Relay            *AgentRelay    `json:"relay"`        // nil in lists, and for agents with workers
}

// AgentRelay is the remote A2A agent that does the work of a relay.
type AgentRelay struct {
	URL        string                `json:"url"`
	Credential *AgentRelayCredential `json:"credential"` // without its secret; nil: none
	Remote     AgentRelayRemote      `json:"remote"`
	Health     string                `json:"health"`  // up or down
	Problem    string                `json:"problem"` // why tasks cannot be sent; empty: they can
	CheckedAt  time.Time             `json:"checked_at"`
}

// AgentRelayCredential describes a credential without its secret.
type AgentRelayCredential struct {
	Type  string    `json:"type"` // bearer, header or oauth
	SetAt time.Time `json:"set_at"`
}

// AgentRelayRemote is what the card of a remote agent says.
type AgentRelayRemote struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Protocol  string `json:"protocol"` // version of A2A
	Binding   string `json:"binding"`  // JSONRPC, HTTP+JSON or GRPC
	Streaming bool   `json:"streaming"`
}

// RelayTarget is the remote agent of a new relay, or a change of it.
type RelayTarget struct {
	// URL is that of the agent or of its card. In a change, an empty one does not change it.
	URL string `json:"url,omitempty"`
	// Credential is what the agent demands. In a change, nil does not change it, and the zero
	// credential removes it.
	Credential *RelayCredential `json:"credential,omitempty"`
}

// RelayCredential is a bearer token, a header or an OAuth client.
type RelayCredential struct {
	Type         string   `json:"type"`            // bearer, header or oauth
	Token        string   `json:"token,omitempty"` // of a bearer
	Name         string   `json:"name,omitempty"`  // of a header
	Value        string   `json:"value,omitempty"`
	TokenURL     string   `json:"token_url,omitempty"` // of oauth, as the rest
	ClientID     string   `json:"client_id,omitempty"`
	ClientSecret string   `json:"client_secret,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
}

// MarshalJSON implements json.Marshaler: the zero credential is null, which removes it.
func (c RelayCredential) MarshalJSON() ([]byte, error) {
	if c.Type == "" {
		return []byte("null"), nil
	}
	type plain RelayCredential
	return json.Marshal(plain(c))
}

// AgentSkill is a skill of an agent. [SkillTag] makes one from a tag alone.
type AgentSkill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name,omitempty"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Examples    []string `json:"examples,omitempty"`
	InputModes  []string `json:"input_modes,omitempty"`
	OutputModes []string `json:"output_modes,omitempty"`

	tag string
}

// SkillTag returns a skill that consists of a tag alone.
func SkillTag(tag string) AgentSkill { return AgentSkill{tag: tag} }

// MarshalJSON implements json.Marshaler.
func (s AgentSkill) MarshalJSON() ([]byte, error) {
	if s.tag != "" {
		return json.Marshal(s.tag)
	}
	type plain AgentSkill
	return json.Marshal(plain(s))
}

// AgentProvider is the organization that offers an agent.
type AgentProvider struct {
	Organization string `json:"organization"`
	URL          string `json:"url"`
}

// MarshalJSON implements json.Marshaler: the empty provider of a patch is null, which removes the
// provider.
func (p AgentProvider) MarshalJSON() ([]byte, error) {
	if p == (AgentProvider{}) {
		return []byte("null"), nil
	}
	type plain AgentProvider
	return json.Marshal(plain(p))
}

// List returns all agents of the org.
func (s *AgentsService) List(ctx context.Context, opts ...Option) (*Page[Agent], error) {
	return listing[Agent]{c: s.c, call: read("agents"), member: "agents"}.page(ctx, opts)
}

// AgentCreation is a new agent.
type AgentCreation struct {
	ID               string         `json:"id"`
	Name             string         `json:"name,omitempty"`
	Description      string         `json:"description,omitempty"`
	Skills           []AgentSkill   `json:"skills,omitempty"`
	Version          string         `json:"version,omitempty"`
	DocumentationURL string         `json:"documentation_url,omitempty"`
	IconURL          string         `json:"icon_url,omitempty"`
	Provider         *AgentProvider `json:"provider,omitempty"`
	Policy           *TaskPolicy    `json:"policy,omitempty"`
	Public           bool           `json:"public,omitempty"`
	Quota            *AgentQuota    `json:"quota,omitempty"` // of each other org
	Relay            *RelayTarget   `json:"relay,omitempty"` // makes it a relay; the name is optional then
}

// Create registers an agent.
func (s *AgentsService) Create(ctx context.Context, a AgentCreation, opts ...Option) (*Agent, error) {
	return fetch[Agent](ctx, s.c, post(a, "agents"), opts)
}

// Refresh lets the server read the card of a relay's remote agent now.
func (s *AgentsService) Refresh(ctx context.Context, id string, opts ...Option) (*Agent, error) {
	return fetch[Agent](ctx, s.c, post(struct{}{}, "agents", id, "refresh"), opts)
}

// Get returns one agent of the org.
func (s *AgentsService) Get(ctx context.Context, id string, opts ...Option) (*Agent, error) {
	return fetch[Agent](ctx, s.c, read("agents", id), opts)
}

// AgentPatch changes an agent. Nil fields do not change; Skills replaces all skills.
type AgentPatch struct {
	Name             *string        `json:"name,omitempty"`
	Description      *string        `json:"description,omitempty"`
	Skills           *[]AgentSkill  `json:"skills,omitempty"`
	Version          *string        `json:"version,omitempty"`
	DocumentationURL *string        `json:"documentation_url,omitempty"`
	IconURL          *string        `json:"icon_url,omitempty"`
	Provider         *AgentProvider `json:"provider,omitempty"` // an empty one removes the provider
	Policy           *TaskPolicy    `json:"policy,omitempty"`   // replaces all of it; an empty one removes it
	Public           *bool          `json:"public,omitempty"`
	Quota            *AgentQuota    `json:"quota,omitempty"` // an empty one removes the limit
	Disabled         *bool          `json:"disabled,omitempty"`
	Status           *AgentStatus   `json:"status,omitempty"` // pins it; an empty one lets it follow the workers
	Relay            *RelayTarget   `json:"relay,omitempty"`
}

// Update changes an agent.
func (s *AgentsService) Update(ctx context.Context, id string, p AgentPatch, opts ...Option) (*Agent, error) {
	return fetch[Agent](ctx, s.c, patch(p, "agents", id), opts)
}

// AgentConnection reports whether an agent has workers and, if not, what is wrong.
type AgentConnection struct {
	State        string            `json:"state"` // connected, no_key, wrong_scope, no_worker, …
	Message      string            `json:"message"`
	PinnedStatus AgentStatus       `json:"pinned_status"`
	LastSeenAt   time.Time         `json:"last_seen_at"`
	Workers      []ConnectedWorker `json:"workers"`
	Keys         []ConnectionKey   `json:"keys"`
	Refusals     []RefusedWorker   `json:"refusals"`
}

// ConnectedWorker is a worker that was seen lately.
type ConnectedWorker struct {
	Name     string    `json:"name"`
	Capacity int       `json:"capacity"`
	SeenAt   time.Time `json:"seen_at"`
}

// ConnectionKey is a key that a worker of the agent can use, or why it cannot.
type ConnectionKey struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Prefix     string    `json:"prefix"`
	Principal  string    `json:"principal"`
	LastUsedAt time.Time `json:"last_used_at"`
	Problem    string    `json:"problem"` // wrong_scope or other_agent; empty: none
}

// RefusedWorker is a claim that was refused lately.
type RefusedWorker struct {
	At        time.Time `json:"at"`
	Key       string    `json:"key"`
	Principal string    `json:"principal"`
	Reason    string    `json:"reason"` // wrong_scope or other_agent
}

// Connection returns how the agent's workers are connected.
func (s *AgentsService) Connection(ctx context.Context, id string, opts ...Option) (*AgentConnection, error) {
	return fetch[AgentConnection](ctx, s.c, read("agents", id, "connection"), opts)
}
