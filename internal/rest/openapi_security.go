package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/identity"
)

// securitySchemes are the credentials that operations take: an API key, or an access
// token of the server's own authorization server, both as a bearer token. Operations
// refer to the first alone, which covers the second: clients that openapi-generator
// makes for TypeScript send a token without the word Bearer if OAuth is an alternative.
func securitySchemes(base string) map[string]*huma.SecurityScheme {
	scopes := map[string]string{
		string(identity.TasksRead):  "Read proposals, votes, follow-ups and friction.",
		string(identity.TasksWrite): "Submit proposals, vote, create follow-ups and report friction.",
		string(identity.Admin):      "Resolve proposals, and administer the org.",
		string(identity.A2AWrite):   "Call agents.",
	}
	return map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "An API key of a user, an agent or a service of the org, or an access token; see oauth2."},
		"oauth2": {
			Type: "oauth2", Description: "How to get an access token, for a person or for a service; see docs/auth.md. It is sent as a bearer token. An agent:ID among the scopes restricts it to agents.",
			Flows: &huma.OAuthFlows{
				AuthorizationCode: &huma.OAuthFlow{
					AuthorizationURL: base + "/oauth/authorize", TokenURL: base + "/oauth/token", RefreshURL: base + "/oauth/token", Scopes: scopes,
				},
				ClientCredentials: &huma.OAuthFlow{TokenURL: base + "/oauth/token", Scopes: scopes},
			},
		},
	}
}
