package rest

import (
	"context"
	"net/http"
)

const mePath = "/api/v1/me"

// Me describes the credential of the request and its principal.
type Me struct {
	Org        string   `json:"org" doc:"Org of the credential." example:"main"`
	Principal  string   `json:"principal" doc:"Principal of the credential." example:"user:ada"`
	Name       string   `json:"name" doc:"Display name of the principal." example:"Ada Lovelace"`
	Admin      bool     `json:"admin" doc:"Whether the principal is an admin. Scopes alone authorize the credential." example:"false"`
	Scopes     []string `json:"scopes" nullable:"false" doc:"Scopes of the credential." example:"[\"svc:tasks:read\"]"`
	Credential string   `json:"credential" doc:"Id of the key (key-…) or access token (tok-…); not secret." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	ExpiresAt  *string  `json:"expires_at" format:"date-time" doc:"When the credential expires; null if never."`
}

func (a *api) registerMe() {
	register(a, operation{
		id: "get-me", method: http.MethodGet, path: mePath, tag: tagMembers,
		summary: "Get the principal of the credential", self: true,
		description: "Works with any API key or access token. No scope required.",
	}, a.getMe)
	// This operation also lists OAuth, so that tools see the scheme in use. securitySchemes
	// explains why the other operations do not.
	a.huma.OpenAPI().Paths[mePath].Get.Security = []map[string][]string{{"bearer": {}}, {"oauth2": {}}}
}

type meOutput struct{ Body Me }

func (a *api) getMe(ctx context.Context, c *call, _ *struct{}) (*meOutput, error) {
	caller := c.Caller()
	m, err := a.admin.Self(ctx, c.Access)
	if err != nil {
		return nil, err
	}
	return &meOutput{Body: Me{
		Org: m.Org, Principal: m.Ref(), Name: m.Name, Admin: m.Admin, Scopes: names(caller.Scopes),
		Credential: caller.KeyID, ExpiresAt: stampOrNull(caller.ExpiresAt),
	}}, nil
}
