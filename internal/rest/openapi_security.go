package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/identity"
)

// securitySchemes returns the accepted credentials: an API key, or an access token of the server's
// own authorization server, both as a bearer token. Operations refer to the first only, which
// covers the second: TypeScript clients of openapi-generator omit the word Bearer if OAuth is an
// alternative.
func securitySchemes(base string) map[string]*huma.SecurityScheme {
	scopes := map[string]string{
		string(identity.TasksRead):  "Read proposals, votes, follow-ups and friction.",
		string(identity.TasksWrite): "Submit proposals, vote, create follow-ups and report friction.",
		string(identity.Admin):      "Resolve proposals, and administer the org.",
		string(identity.A2AWrite):   "Call agents.",
	}
	return map[string]*huma.SecurityScheme{
		"bearer": {
			Type: "http", Scheme: "bearer",
			Description: "An API key of a user, an agent or a service of the org, or an access token; see oauth2.",
		},
		"oauth2": {
			Type: "oauth2",
			Description: "Access tokens for users and services; see docs/auth.md. Send them as bearer tokens. " +
				"Scopes of the form agent:ID restrict a token to these agents.",
			Flows: &huma.OAuthFlows{
				AuthorizationCode: &huma.OAuthFlow{
					AuthorizationURL: base + "/oauth/authorize", TokenURL: base + "/oauth/token",
					RefreshURL: base + "/oauth/token", Scopes: scopes,
				},
				ClientCredentials: &huma.OAuthFlow{TokenURL: base + "/oauth/token", Scopes: scopes},
			},
		},
	}
}
