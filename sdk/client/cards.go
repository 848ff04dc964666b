package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
)

// PlatformCard lists the agents that the caller can reach.
type PlatformCard struct {
	Name           string          `json:"name"`
	Version        string          `json:"version"`
	Protocol       string          `json:"protocol"`
	Agents         []CardAgent     `json:"agents"`
	Capabilities   map[string]bool `json:"capabilities"`
	Authentication struct {
		Schemes []string `json:"schemes"`
	} `json:"authentication"`
	Next string `json:"next"` // of the next page; empty on the last page
}

// CardAgent is an agent on the platform's card.
type CardAgent struct {
	ID          string      `json:"id"`
	Name        string      `json:"name"`
	Description string      `json:"description"`
	URL         string      `json:"url"` // below the server's URL
	Skills      []string    `json:"skills"`
	Status      AgentStatus `json:"status"`
}

// PlatformCardParams selects a page of the card.
type PlatformCardParams struct {
	After string `url:"after"` // Next of the previous page
}

// PlatformCard returns one page of the platform's card. It needs no key; with one it includes the
// agents of the key's org.
func (c *Client) PlatformCard(ctx context.Context, p PlatformCardParams, opts ...Option) (*PlatformCard, error) {
	r := call{method: http.MethodGet, path: "/.well-known/agent.json", query: values(p)}
	return fetch[PlatformCard](ctx, c, r, opts)
}

// PlatformAgents iterates over the agents on all pages of the platform's card.
func (c *Client) PlatformAgents(ctx context.Context, opts ...Option) iter.Seq2[CardAgent, error] {
	return func(yield func(CardAgent, error) bool) {
		for p := (PlatformCardParams{}); ; {
			card, err := c.PlatformCard(ctx, p, opts...)
			if err != nil {
				yield(CardAgent{}, err)
				return
			}
			for _, a := range card.Agents {
				if !yield(a, nil) {
					return
				}
			}
			if p.After = card.Next; p.After == "" {
				return
			}
		}
	}
}

// AgentCard is the card of an agent in the form of A2A 1.0.
type AgentCard struct {
	Name                 string           `json:"name"`
	Description          string           `json:"description"`
	Version              string           `json:"version"`
	SupportedInterfaces  []CardInterface  `json:"supportedInterfaces"`
	Capabilities         CardCapabilities `json:"capabilities"`
	DefaultInputModes    []string         `json:"defaultInputModes"`
	DefaultOutputModes   []string         `json:"defaultOutputModes"`
	Skills               []CardSkill      `json:"skills"`
	Provider             *AgentProvider   `json:"provider"`
	DocumentationURL     string           `json:"documentationUrl"`
	IconURL              string           `json:"iconUrl"`
	SecuritySchemes      json.RawMessage  `json:"securitySchemes"`
	SecurityRequirements json.RawMessage  `json:"securityRequirements"`
	Signatures           json.RawMessage  `json:"signatures"`
}

// CardInterface is a URL at which an agent can be called.
type CardInterface struct {
	URL             string `json:"url"`
	ProtocolBinding string `json:"protocolBinding"` // JSONRPC, HTTP+JSON or GRPC
	ProtocolVersion string `json:"protocolVersion"`
}

// CardCapabilities lists what an agent supports.
type CardCapabilities struct {
	Streaming         bool `json:"streaming"`
	PushNotifications bool `json:"pushNotifications"`
	ExtendedAgentCard bool `json:"extendedAgentCard"`
}

// CardSkill is a skill on an agent's card.
type CardSkill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples"`
	InputModes  []string `json:"inputModes"`
	OutputModes []string `json:"outputModes"`
}
