package rest

import (
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// OAuthClient is a program that an admin registered, without its secret.
type OAuthClient struct {
	ID           string   `json:"id" doc:"The client_id of OAuth." example:"client-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Name         string   `json:"name" doc:"What people read when they are asked." example:"Reports"`
	RedirectURIs []string `json:"redirect_uris" nullable:"false" doc:"Where the answer may go." example:"[\"com.example.reports:/done\"]"`
	Scopes       []string `json:"scopes" nullable:"false" doc:"What the program may ask for at most." example:"[\"svc:tasks:read\"]"`
	Method       string   `json:"method" doc:"How the program proves who it is at the token endpoint; none: it has no secret." example:"none"`
	CreatedAt    string   `json:"created_at" format:"date-time" doc:"When it was registered." example:"2026-03-02T10:00:00.000000Z"`
	CreatedBy    string   `json:"created_by" doc:"Who registered it." example:"user:ada"`

	OldSecretExpiresAt *string `json:"old_secret_expires_at" format:"date-time" doc:"Until when the secret before the last rotation works, or worked; null if it ended at once, or there was none." example:"2026-03-02T11:00:00.000000Z"`
}

// TransformSchema takes the list from the domain.
func (OAuthClient) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "method", oneOf(oauth.Methods))
	return s
}

// OAuthClientWithSecret is a client with its secret.
type OAuthClientWithSecret struct {
	Secret *string `json:"secret" doc:"The client_secret of OAuth, shown this once; null if the method is none."`
	OAuthClient
}

// TransformSchema takes the list from the domain.
func (OAuthClientWithSecret) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "method", oneOf(oauth.Methods))
	return s
}

// OAuthClientList is one page of clients.
type OAuthClientList struct {
	Clients    []OAuthClient `json:"clients" nullable:"false" doc:"The page, newest first; empty past the end."`
	NextCursor *string       `json:"next_cursor" doc:"Continues the list as the parameter cursor; null on the last page."`
}

// OAuthClientCreation is the body that registers a client.
type OAuthClientCreation struct {
	Name         string   `json:"name" doc:"What people read when they are asked." example:"Reports"`
	RedirectURIs []string `json:"redirect_uris" nullable:"false" doc:"Where the answer may go: https, http to the person's own machine, or a scheme like com.example.app:/done." example:"[\"com.example.reports:/done\"]"`
	Scopes       []string `json:"scopes,omitempty" nullable:"false" doc:"What the program may ask for at most: svc:tasks:read, svc:tasks:write, svc:a2a:write, svc:admin:admin, agent:ID or agent:*; all but svc:admin:admin if left out." example:"[\"svc:tasks:read\"]"`
	Method       *string  `json:"method,omitempty" doc:"How the program proves who it is at the token endpoint; none, which is also what is meant if it is left out: it has no secret." example:"client_secret_basic"`
}

// TransformSchema takes the limits from the domain.
func (OAuthClientCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	clientSchema(s)
	property(s, "method", oneOf(oauth.Methods))
	return s
}

// OAuthClientPatch is the body of a change to a client.
type OAuthClientPatch struct {
	Name         *string   `json:"name,omitempty" doc:"A new name."`
	RedirectURIs *[]string `json:"redirect_uris,omitempty" nullable:"false" doc:"All its addresses anew. A code that was sent to one which is not among them is refused."`
	Scopes       *[]string `json:"scopes,omitempty" nullable:"false" doc:"All that it may ask for at most, anew." example:"[\"svc:tasks:read\"]"`
}

// TransformSchema takes the limits from the domain.
func (OAuthClientPatch) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	clientSchema(s)
	one := 1
	s.MinProperties = &one
	return s
}

// OAuthClientRotation is the body that replaces the secret of a client.
type OAuthClientRotation struct {
	OverlapSeconds *int `json:"overlap_seconds,omitempty" doc:"How long the old secret works beside the new one; 0 if left out." example:"3600"`
}

// TransformSchema takes the limits from the domain.
func (OAuthClientRotation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "overlap_seconds", between(0, int(identity.MaxOverlap/time.Second)))
	return s
}

func clientSchema(s *huma.Schema) {
	property(s, "name", length(1, identity.MaxName), matching(namePattern()))
	property(s, "redirect_uris", items(1, oauth.MaxRedirects), eachItem(matching(redirectPattern), notApps))
	property(s, "scopes", items(1, identity.MaxScopes),
		eachItem(matching(scopePattern(identity.TasksRead, identity.TasksWrite, identity.Admin, identity.A2AWrite))))
}

// notApps leaves out schemes that lead to no app.
func notApps(s *huma.Schema) {
	s.Not = &huma.Schema{Pattern: "^(" + strings.Join(oauth.NotApps, "|") + "):"}
}

func items(least, most int) func(*huma.Schema) {
	return func(s *huma.Schema) {
		if least > 0 {
			s.MinItems = &least
		}
		s.MaxItems = &most
	}
}

func clientOf(c *oauth.Client) OAuthClient {
	return OAuthClient{
		ID: c.ID, Name: c.Name, RedirectURIs: c.RedirectURIs, Scopes: names(c.Scopes), Method: string(c.Method),
		CreatedAt: stamp(c.CreatedAt), CreatedBy: c.CreatedBy, OldSecretExpiresAt: stampOrNull(c.OldSecretExpires),
	}
}
