package a2a

import (
	"encoding/json"

	"github.com/parley-dev/parley/internal/identity"
)

// OAuthURLs are the URLs of the authorization server in cards.
type OAuthURLs struct {
	Authorize, Token string
	Metadata         string // of the authorization server (RFC 8414)
}

// The names of the security schemes in cards.
const (
	schemeBearer            = "bearer"
	schemeOAuth2            = "oauth2"
	schemeClientCredentials = "oauth2ClientCredentials"
)

// callScopes are the scopes that a credential needs to call agents.
var callScopes = []string{string(identity.A2AWrite)}

// securityRequirement is one way to authenticate in version 1.0.
type securityRequirement struct {
	Schemes map[string]scopeList `json:"schemes"`
}

// scopeList is an object in version 1.0 (StringList of its protobuf definition), and a bare list
// for clients that cannot read the object.
type scopeList struct {
	List []string
	bare bool
}

// MarshalJSON implements json.Marshaler.
func (l scopeList) MarshalJSON() ([]byte, error) {
	if l.bare {
		return json.Marshal(l.List)
	}
	return json.Marshal(map[string][]string{"list": l.List})
}

// securityScheme has the members of version 0.3, of 1.0, or both with equal content.
type securityScheme struct {
	// Version 0.3.
	Type        string      `json:"type,omitempty"`
	Scheme      string      `json:"scheme,omitempty"`
	Description string      `json:"description,omitempty"`
	Flows       *oauthFlows `json:"flows,omitempty"`
	MetadataURL string      `json:"oauth2MetadataUrl,omitempty"`

	// Version 1.0.
	HTTPAuth *httpScheme   `json:"httpAuthSecurityScheme,omitempty"`
	OAuth2   *oauth2Scheme `json:"oauth2SecurityScheme,omitempty"`
}

type httpScheme struct {
	Scheme      string `json:"scheme"`
	Description string `json:"description"`
}

type oauth2Scheme struct {
	Description string      `json:"description"`
	Flows       *oauthFlows `json:"flows"`
	MetadataURL string      `json:"oauth2MetadataUrl"`
}

// oauthFlows has one flow: version 1.0 allows no more, so each flow has its own scheme.
type oauthFlows struct {
	AuthorizationCode *oauthFlow `json:"authorizationCode,omitempty"`
	ClientCredentials *oauthFlow `json:"clientCredentials,omitempty"`
}

type oauthFlow struct {
	AuthorizationURL string            `json:"authorizationUrl,omitempty"`
	TokenURL         string            `json:"tokenUrl"`
	RefreshURL       string            `json:"refreshUrl,omitempty"`
	Scopes           map[string]string `json:"scopes"`
	PKCERequired     bool              `json:"pkceRequired,omitempty"`
}

// addSecurity adds the ways to authenticate. Each scheme is an alternative; keys come first,
// because some clients look at the first alternative only.
func (s *server) addSecurity(c *officialCard, f cardForm) {
	key := httpScheme{
		"Bearer", "An API key with the scope " + callScopes[0] + ", issued by an admin of the calling org.",
	}
	// Version 0.3 has scopes for OAuth only.
	c.addScheme(f, schemeBearer, []string{}, securityScheme{
		Type: "http", Scheme: key.Scheme, Description: key.Description, HTTPAuth: &key,
	})
	if s.OAuth == nil {
		return
	}
	scopes := map[string]string{callScopes[0]: "Send tasks and messages to agents."}
	c.addOAuth2(f, schemeOAuth2, &oauth2Scheme{
		"An access token that a person grants to a program.",
		&oauthFlows{AuthorizationCode: &oauthFlow{
			AuthorizationURL: s.OAuth.Authorize, TokenURL: s.OAuth.Token, RefreshURL: s.OAuth.Token,
			Scopes: scopes, PKCERequired: f.v1(),
		}},
		s.OAuth.Metadata,
	})
	c.addOAuth2(f, schemeClientCredentials, &oauth2Scheme{
		"An access token of a client that an admin of the calling org registered.",
		&oauthFlows{ClientCredentials: &oauthFlow{TokenURL: s.OAuth.Token, Scopes: scopes}},
		s.OAuth.Metadata,
	})
}

func (c *officialCard) addOAuth2(f cardForm, name string, o *oauth2Scheme) {
	c.addScheme(f, name, callScopes, securityScheme{
		Type: "oauth2", Description: o.Description, Flows: o.Flows, MetadataURL: o.MetadataURL, OAuth2: o,
	})
}

// addScheme adds an alternative, without the members of versions that the card does not serve.
// scopes03 are its scopes in version 0.3.
func (c *officialCard) addScheme(f cardForm, name string, scopes03 []string, scheme securityScheme) {
	if f.v1() {
		schemes := map[string]scopeList{name: {callScopes, f.bareScopes}}
		c.SecurityRequirements = append(c.SecurityRequirements, securityRequirement{schemes})
	} else {
		scheme.HTTPAuth, scheme.OAuth2 = nil, nil
	}
	if f.v03() {
		c.Security = append(c.Security, map[string][]string{name: scopes03})
	} else {
		scheme = securityScheme{HTTPAuth: scheme.HTTPAuth, OAuth2: scheme.OAuth2}
	}
	if c.SecuritySchemes == nil {
		c.SecuritySchemes = map[string]securityScheme{}
	}
	c.SecuritySchemes[name] = scheme
}
