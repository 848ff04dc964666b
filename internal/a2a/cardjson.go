package a2a

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/relay"
)

// cardForm is a form of a card.
type cardForm struct {
	version  string // version1 or version03; empty: one card for both
	extended bool   // with what only callers see
	// bareScopes writes scopes as a list, where version 1.0 has an object with a list in it.
	bareScopes bool
}

// String returns a cache key.
func (f cardForm) String() string {
	return fmt.Sprintf("%s %t %t", f.version, f.extended, f.bareScopes)
}

func (f cardForm) v1() bool  { return f.version != version03 }
func (f cardForm) v03() bool { return f.version != version1 }

// formFor returns the form of a version for the client that sent the request.
func formFor(r *http.Request, version string, extended bool) cardForm {
	return cardForm{version, extended, isGoClient(r)}
}

// isGoClient guesses whether the client is the official SDK for Go. Its version 2.4 cannot read a
// card whose securityRequirements follow the protocol (a2a-go issue 430), nor the refusal of a
// stream that is not an event.
func isGoClient(r *http.Request) bool {
	return strings.Contains(r.Header.Get("User-Agent"), "Go-http-client/")
}

// officialCard is the card of an agent. It has the members of versions 0.3 and 1.0; members that
// both versions have mean the same in both.
type officialCard struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version"`

	// Version 0.3.
	ProtocolVersion      string                `json:"protocolVersion,omitempty"`
	URL                  string                `json:"url,omitempty"`
	PreferredTransport   string                `json:"preferredTransport,omitempty"`
	AdditionalInterfaces []transportInterface  `json:"additionalInterfaces,omitempty"`
	ExtendedCard         bool                  `json:"supportsAuthenticatedExtendedCard,omitempty"`
	Security             []map[string][]string `json:"security,omitempty"`

	// Version 1.0.
	SupportedInterfaces  []cardInterface       `json:"supportedInterfaces,omitempty"`
	SecurityRequirements []securityRequirement `json:"securityRequirements,omitempty"`

	SecuritySchemes    map[string]securityScheme `json:"securitySchemes"`
	Capabilities       cardCapabilities          `json:"capabilities"`
	DefaultInputModes  []string                  `json:"defaultInputModes"`
	DefaultOutputModes []string                  `json:"defaultOutputModes"`
	Skills             []cardSkill               `json:"skills"`
	DocumentationURL   string                    `json:"documentationUrl,omitempty"`
	IconURL            string                    `json:"iconUrl,omitempty"`
	Provider           *cardProvider             `json:"provider,omitempty"`
	Signatures         []cardSignature           `json:"signatures,omitempty"`
}

// transportInterface is a URL of an agent in version 0.3.
type transportInterface struct {
	URL       string `json:"url"`
	Transport string `json:"transport"`
}

// cardInterface is a URL of an agent in version 1.0.
type cardInterface struct {
	URL             string `json:"url"`
	ProtocolBinding string `json:"protocolBinding"`
	ProtocolVersion string `json:"protocolVersion"`
	Tenant          string `json:"tenant,omitempty"`
}

type cardCapabilities struct {
	Streaming              bool  `json:"streaming"`
	PushNotifications      bool  `json:"pushNotifications"`
	StateTransitionHistory *bool `json:"stateTransitionHistory,omitempty"` // version 0.3
	ExtendedAgentCard      bool  `json:"extendedAgentCard,omitempty"`      // version 1.0

	Extensions []cardExtension `json:"extensions,omitempty"`
}

// quotaExtension is the URI of the extension by which the card of an agent names its quota.
const quotaExtension = "https://parley.dev/extensions/quota/v1"

// cardExtension is an extension of the protocol. Clients may ignore those of Parley.
type cardExtension struct {
	URI         string `json:"uri"`
	Description string `json:"description"`
	Params      any    `json:"params"`
}

// relayParams are the parameters of relay.Extension.
type relayParams struct {
	Platform string   `json:"platform"`
	Via      []string `json:"via,omitempty"`
}

// platformExtension names the platform, and those that a relay leads to.
func (s *server) platformExtension(via []string) []cardExtension {
	if s.Platform == "" {
		return nil
	}
	return []cardExtension{{
		URI: relay.Extension, Description: "Names the platforms on the way, so that relays notice loops.",
		Params: relayParams{Platform: s.Platform, Via: via},
	}}
}

// extensions returns what the card of an agent says beyond the protocol.
func (s *server) extensions(a *agent.Agent) []cardExtension {
	var via []string
	if s.Via != nil {
		via = s.Via(a)
	}
	out := s.platformExtension(via)
	if quota := quotaOf(a); quota != nil {
		out = append(out, cardExtension{
			URI:         quotaExtension,
			Description: fmt.Sprintf("Each other org may send the agent %d new tasks per %s.", quota.Tasks, quota.Per),
			Params:      quota,
		})
	}
	return out
}

type cardProvider struct {
	Organization string `json:"organization"`
	URL          string `json:"url"`
}

type cardSkill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Examples    []string `json:"examples,omitempty"`
	InputModes  []string `json:"inputModes,omitempty"`
	OutputModes []string `json:"outputModes,omitempty"`
	URL         string   `json:"url,omitempty"` // URL of the agent, on the platform's card; not in version 1.0
}

// The bindings that a card can advertise, as named in the settings.
const (
	bindingJSONRPC = "jsonrpc"
	bindingREST    = "http+json"
	bindingGRPC    = "grpc"
)

// transports maps bindings to their names in cards.
var transports = map[string]string{bindingJSONRPC: "JSONRPC", bindingREST: "HTTP+JSON", bindingGRPC: "GRPC"}

// defaultBindings omits gRPC: ADK refuses every card with a gRPC interface.
var defaultBindings = []string{bindingJSONRPC, bindingREST}

// inputModes are the default media types of agents: any.
var inputModes = []string{"text/plain", "application/json", "*/*"}

// cardOf makes the card of an agent with its profile.
func (s *server) cardOf(a *agent.Agent, p *agent.Profile, f cardForm) officialCard {
	base := s.PublicURL.String()
	address := base + "/a2a/" + a.ID
	c := officialCard{
		Name: a.Name, Description: a.Description, Version: cmp.Or(p.Version, s.Version),
		Capabilities: cardCapabilities{
			Streaming: true, PushNotifications: s.Tasks.Pushes(), ExtendedAgentCard: f.v1(), Extensions: s.extensions(a),
		},
		DefaultInputModes: inputModes, DefaultOutputModes: inputModes,
		Skills: skillsOf(a, p), DocumentationURL: cmp.Or(p.DocumentationURL, base+"/docs"), IconURL: p.IconURL,
	}
	if c.Description == "" {
		c.Description = a.Name // it must not be empty
	}
	s.addSecurity(&c, f)
	s.addInterfaces(&c, f, address, a.ID)
	c.ExtendedCard = f.v03()
	switch {
	case p.Provider != (agent.Provider{}):
		c.Provider = (*cardProvider)(&p.Provider)
	case f.extended:
		c.Provider = &cardProvider{a.Org, base}
	}
	return c
}

// addInterfaces lists the URLs of an agent: those of version 1.0 first, then those of 0.3. Over
// gRPC the tenant names the agent; without one there is no such interface.
func (s *server) addInterfaces(c *officialCard, f cardForm, address, tenant string) {
	var old []cardInterface
	for _, b := range s.CardBindings {
		i := cardInterface{URL: address, ProtocolBinding: transports[b], ProtocolVersion: version1}
		switch {
		case b != bindingGRPC:
			old = append(old, cardInterface{URL: address, ProtocolBinding: transports[b], ProtocolVersion: version03})
		case tenant == "":
			continue
		default:
			i.URL, i.Tenant = hostPort(s.PublicURL), tenant
		}
		c.SupportedInterfaces = append(c.SupportedInterfaces, i)
	}
	c.SupportedInterfaces = append(c.SupportedInterfaces, old...)
	if f.v03() { // the settings always have a binding of this version
		c.ProtocolVersion, c.URL, c.PreferredTransport = "0.3.0", address, old[0].ProtocolBinding
		c.Capabilities.StateTransitionHistory = new(bool)
		for _, i := range old {
			c.AdditionalInterfaces = append(c.AdditionalInterfaces, transportInterface{i.URL, i.ProtocolBinding})
		}
	}
	if !f.v1() {
		c.SupportedInterfaces = nil
	}
}

// skillsOf lists the skills of the agent. A card must have at least one.
func skillsOf(a *agent.Agent, p *agent.Profile) []cardSkill {
	skills := a.Described(p)
	if len(skills) == 0 {
		skills = []agent.Skill{agent.PlainSkill("general")}
	}
	out := make([]cardSkill, len(skills))
	for i, skill := range skills {
		out[i] = cardSkill{
			ID: skill.ID, Name: skill.Name, Description: cmp.Or(skill.Description, a.Name+": "+skill.Name),
			Tags: skill.Tags, Examples: skill.Examples, InputModes: skill.InputModes, OutputModes: skill.OutputModes,
		}
	}
	return out
}

// hostPort returns an address as gRPC expects it: without a scheme, with a port.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "https" {
		return u.Host + ":443"
	}
	return u.Host + ":80"
}
