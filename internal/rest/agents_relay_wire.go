package rest

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/relay"
)

// AgentRelay is the remote agent that does the work of a relay.
type AgentRelay struct {
	URL        string            `json:"url" doc:"URL of the remote agent." example:"https://agents.example/a2a/tariffs"`
	Credential *AgentRelaySecret `json:"credential" doc:"The credential without its secret; null: none."`
	Remote     AgentRelayRemote  `json:"remote" doc:"What the card of the remote agent says."`
	Health     string            `json:"health" doc:"Whether tasks can be sent: up or down." example:"up"`
	Problem    string            `json:"problem" doc:"Why tasks cannot be sent; empty: they can." example:""`
	CheckedAt  *string           `json:"checked_at" format:"date-time" doc:"When the card was last read."`
}

// TransformSchema adds the enumerations.
func (AgentRelay) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "health", oneOf([]string{healthUp, healthDown}))
	return s
}

const (
	healthUp   = "up"
	healthDown = "down"
)

// AgentRelaySecret is a credential without its secret.
type AgentRelaySecret struct {
	Type  string  `json:"type" doc:"Type of the credential." example:"bearer"`
	SetAt *string `json:"set_at" format:"date-time" doc:"When it was set."`
}

// TransformSchema adds the enumerations.
func (AgentRelaySecret) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "type", oneOf(relay.CredentialTypes))
	return s
}

// AgentRelayRemote is what the card of a remote agent says.
type AgentRelayRemote struct {
	Name      string `json:"name" doc:"Name of the remote agent." example:"Tariffs"`
	Version   string `json:"version" doc:"Version of the remote agent." example:"2.1.0"`
	Protocol  string `json:"protocol" doc:"Version of A2A that is used." example:"1.0"`
	Binding   string `json:"binding" doc:"Binding of A2A that is used." example:"JSONRPC"`
	Streaming bool   `json:"streaming" doc:"Whether the remote agent streams events." example:"true"`
}

// AgentRelayCredential is a credential in a request.
type AgentRelayCredential struct {
	Type         string   `json:"type" doc:"bearer: token; header: name and value; oauth: token_url, client_id, client_secret, scopes." example:"bearer"`
	Token        string   `json:"token,omitempty" doc:"Bearer token."`
	Name         string   `json:"name,omitempty" doc:"Name of a header." example:"X-API-Key"`
	Value        string   `json:"value,omitempty" doc:"Value of the header."`
	TokenURL     string   `json:"token_url,omitempty" doc:"URL that issues access tokens (OAuth client credentials)."`
	ClientID     string   `json:"client_id,omitempty" doc:"OAuth client."`
	ClientSecret string   `json:"client_secret,omitempty" doc:"Secret of the OAuth client."`
	Scopes       []string `json:"scopes,omitempty" nullable:"false" doc:"OAuth scopes."`
}

// TransformSchema adds the limits of the domain.
func (AgentRelayCredential) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "type", oneOf(relay.CredentialTypes))
	for _, name := range []string{"token", "value", "client_secret"} {
		property(s, name, length(0, relay.MaxSecret))
	}
	property(s, "name", length(0, relay.MaxName))
	property(s, "client_id", length(0, relay.MaxName))
	property(s, "token_url", length(0, agent.MaxURL))
	property(s, "scopes", items(0, relay.MaxScopes))
	return s
}

// credentialInput is a credential in a request; null means none.
type credentialInput struct {
	set    bool
	value  *relay.Credential
	broken []errs.Field // relative to the credential
}

// AcceptsNull implements httpx.Nullable.
func (*credentialInput) AcceptsNull() string { return "an object or null" }

// UnmarshalJSON implements json.Unmarshaler.
func (in *credentialInput) UnmarshalJSON(data []byte) (err error) {
	if in.set = true; data[0] == 'n' {
		return nil
	}
	var c AgentRelayCredential
	in.broken, err = httpx.Decode(data, &c)
	in.value = &relay.Credential{
		Type: c.Type, Token: c.Token, Name: c.Name, Value: c.Value, TokenURL: c.TokenURL, ClientID: c.ClientID,
		ClientSecret: c.ClientSecret, Scopes: c.Scopes,
	}
	return err
}

// Schema documents the credential.
func (credentialInput) Schema(r huma.Registry) *huma.Schema {
	s := inRequest[AgentRelayCredential](r)
	s.Nullable = true
	return s
}

// relayFields are the members of a relay in a request.
type relayFields struct {
	URL        *string         `json:"url,omitempty" doc:"URL of the remote agent, or of its card." example:"https://agents.example/a2a/tariffs"`
	Credential credentialInput `json:"credential,omitempty" doc:"What the remote agent demands; null: nothing. It is sent only to the origin of the URL."`
}

// relayInput is a relay in a request.
type relayInput struct {
	set    bool
	value  relayFields
	broken []errs.Field // relative to the relay
}

// UnmarshalJSON implements json.Unmarshaler.
func (in *relayInput) UnmarshalJSON(data []byte) (err error) {
	in.set = true
	in.broken, err = httpx.Decode(data, &in.value)
	in.broken = append(in.broken, errs.Under(in.value.Credential.broken, "credential")...)
	return err
}

// Schema documents the relay.
func (relayInput) Schema(r huma.Registry) *huma.Schema {
	s := inRequest[relayFields](r)
	property(s, "url", length(1, agent.MaxURL))
	return s
}

// read returns the change that a request asks for, and its decoding errors.
func (in *relayInput) read() (relay.Change, []errs.Field) {
	c := relay.Change{URL: in.value.URL, SetCredential: in.value.Credential.set, Credential: in.value.Credential.value}
	return c, errs.Under(in.broken, "relay")
}

// addRelay adds the remote agent to the record of a relay.
func (a *api) addRelay(ctx context.Context, c *call, g *agent.Agent, out *Agent) error {
	if g.Builtin != agent.Relayed || a.relays == nil {
		return nil
	}
	s, err := a.relays.Get(ctx, c.Access, g.ID)
	if err != nil {
		return err
	}
	r := &AgentRelay{
		URL: s.URL, Health: healthUp, Problem: s.Problem, CheckedAt: stampOrNull(s.CheckedAt),
		Remote: AgentRelayRemote{
			Name: s.Card.Name, Version: s.Card.Version, Protocol: s.Card.Endpoint.Version, Binding: s.Card.Endpoint.Binding,
			Streaming: s.Card.Streaming,
		},
	}
	if s.Problem != "" {
		r.Health = healthDown
	}
	if s.CredentialType != "" {
		r.Credential = &AgentRelaySecret{Type: s.CredentialType, SetAt: stampOrNull(s.CredentialSetAt)}
	}
	out.Relay = r
	return nil
}
