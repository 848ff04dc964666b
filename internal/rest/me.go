package rest

import (
	"context"
	"net/http"
)

const mePath = "/api/v1/me"

// Me is whom a credential speaks for, and what it may do.
type Me struct {
	Org        string   `json:"org" doc:"The org that the credential belongs to." example:"main"`
	Principal  string   `json:"principal" doc:"Whom it speaks for." example:"user:ada"`
	Name       string   `json:"name" doc:"The principal's display name." example:"Ada Lovelace"`
	Admin      bool     `json:"admin" doc:"Whether the principal is an admin of the org. What the credential may do is said by its scopes." example:"false"`
	Scopes     []string `json:"scopes" nullable:"false" doc:"What the credential may do." example:"[\"svc:tasks:read\"]"`
	Credential string   `json:"credential" doc:"The credential's id: a key's, key-…, or an access token's, tok-…; it is no secret." example:"key-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	ExpiresAt  *string  `json:"expires_at" format:"date-time" doc:"When the credential stops working; null if never." example:"2026-06-02T10:00:00.000000Z"`
}

func (a *api) registerMe() {
	register(a, operation{
		id: "get-me", method: http.MethodGet, path: mePath, tag: tagMembers,
		summary: "Get whom the credential speaks for", self: true,
		description: "Needs no scope: any key and any access token may ask.",
	}, a.getMe)
	// One operation names OAuth as an alternative, so that tools see the scheme in use; see
	// securitySchemes for why the others do not.
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
		Org: m.Org, Principal: m.Ref(), Name: m.Name, Admin: m.Admin, Scopes: names(caller.Scopes), Credential: caller.KeyID,
		ExpiresAt: stampOrNull(caller.ExpiresAt),
	}}, nil
}
