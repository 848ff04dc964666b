package rest

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// Client is a program that an admin registered, without its secret.
type Client struct {
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
func (Client) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "method", oneOf(oauth.Methods))
	return s
}

// NewClient is a client with its secret.
type NewClient struct {
	Secret *string `json:"secret" doc:"The client_secret of OAuth, shown this once; null if the method is none."`
	Client
}

// TransformSchema takes the list from the domain.
func (NewClient) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "method", oneOf(oauth.Methods))
	return s
}

// ClientList is one page of clients.
type ClientList struct {
	Clients    []Client `json:"clients" nullable:"false" doc:"The page, newest first; empty past the end."`
	NextCursor *string  `json:"next_cursor" doc:"Continues the list as the parameter cursor; null on the last page."`
}

// ClientCreation is the body that registers a client.
type ClientCreation struct {
	Name         string   `json:"name" doc:"What people read when they are asked." example:"Reports"`
	RedirectURIs []string `json:"redirect_uris" nullable:"false" doc:"Where the answer may go: https, http to the person's own machine, or a scheme like com.example.app:/done." example:"[\"com.example.reports:/done\"]"`
	Scopes       []string `json:"scopes,omitempty" nullable:"false" doc:"What the program may ask for at most: svc:tasks:read, svc:tasks:write, svc:a2a:write, svc:admin:admin, agent:ID or agent:*; all but svc:admin:admin if left out." example:"[\"svc:tasks:read\"]"`
	Method       *string  `json:"method,omitempty" doc:"How the program proves who it is at the token endpoint; none: it has no secret." example:"client_secret_basic"`
}

// TransformSchema takes the limits from the domain.
func (ClientCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "name", length(1, identity.MaxName))
	property(s, "redirect_uris", items(1, oauth.MaxRedirects))
	property(s, "scopes", items(1, identity.MaxScopes))
	property(s, "method", oneOf(oauth.Methods), byDefault(string(oauth.Public)))
	return s
}

// ClientPatch is the body of a change to a client.
type ClientPatch struct {
	Name         *string   `json:"name,omitempty" doc:"A new name."`
	RedirectURIs *[]string `json:"redirect_uris,omitempty" nullable:"false" doc:"All its addresses anew. A code that was sent to one which is not among them is refused."`
	Scopes       *[]string `json:"scopes,omitempty" nullable:"false" doc:"All that it may ask for at most, anew." example:"[\"svc:tasks:read\"]"`
}

// TransformSchema takes the limits from the domain.
func (ClientPatch) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "name", length(1, identity.MaxName))
	property(s, "redirect_uris", items(1, oauth.MaxRedirects))
	property(s, "scopes", items(1, identity.MaxScopes))
	one := 1
	s.MinProperties = &one
	return s
}

// ClientRotation is the body that replaces the secret of a client.
type ClientRotation struct {
	OverlapSeconds *int `json:"overlap_seconds,omitempty" doc:"How long the old secret works beside the new one; 0 if left out." example:"3600"`
}

// TransformSchema takes the limits from the domain.
func (ClientRotation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "overlap_seconds", between(0, int(identity.MaxOverlap/time.Second)), byDefault(0))
	return s
}

func items(least, most int) func(*huma.Schema) {
	return func(s *huma.Schema) {
		s.MinItems, s.MaxItems = &least, &most
	}
}

func clientOf(c *oauth.Client) Client {
	return Client{
		ID: c.ID, Name: c.Name, RedirectURIs: c.RedirectURIs, Scopes: names(c.Scopes), Method: string(c.Method),
		CreatedAt: stamp(c.CreatedAt), CreatedBy: c.CreatedBy, OldSecretExpiresAt: stampOrNull(c.OldSecretExpires),
	}
}
