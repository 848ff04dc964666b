package rest

import (
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// OAuthClient is an OAuth client that an admin registered, without its secret.
type OAuthClient struct {
	ID           string   `json:"id" doc:"OAuth client_id." example:"client-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Name         string   `json:"name" doc:"Name shown on the consent page." example:"Reports"`
	RedirectURIs []string `json:"redirect_uris" nullable:"false" doc:"Redirect URIs." example:"[\"com.example.reports:/done\"]"`
	Scopes       []string `json:"scopes" nullable:"false" doc:"Scopes that it may ask for." example:"[\"svc:tasks:read\"]"`
	Method       string   `json:"method" doc:"Client authentication at the token endpoint; none: it has no secret." example:"none"`
	CreatedAt    string   `json:"created_at" format:"date-time" doc:"When it was registered."`
	CreatedBy    string   `json:"created_by" doc:"Who registered it." example:"user:ada"`

	OldSecretExpiresAt *string `json:"old_secret_expires_at" format:"date-time" doc:"End of the previous secret; null without an overlap."`
}

// TransformSchema adds the enumeration of the domain.
func (OAuthClient) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "method", oneOf(oauth.Methods))
	return s
}

// OAuthClientWithSecret is a client with its secret.
type OAuthClientWithSecret struct {
	Secret *string `json:"secret" doc:"OAuth client_secret, shown once; null if the method is none."`
	OAuthClient
}

// TransformSchema adds the enumeration of the domain.
func (OAuthClientWithSecret) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "method", oneOf(oauth.Methods))
	return s
}

// OAuthClientList is a page of clients.
type OAuthClientList struct {
	Clients    []OAuthClient `json:"clients" nullable:"false" doc:"Clients, newest first; empty past the end."`
	NextCursor *string       `json:"next_cursor" doc:"Cursor of the next page; null on the last page."`
}

// OAuthClientCreation is the body that registers a client.
type OAuthClientCreation struct {
	Name         string   `json:"name" doc:"Name shown on the consent page." example:"Reports"`
	RedirectURIs []string `json:"redirect_uris" nullable:"false" example:"[\"com.example.reports:/done\"]"`
	Scopes       []string `json:"scopes,omitempty" nullable:"false" example:"[\"svc:tasks:read\"]"`
	Method       *string  `json:"method,omitempty" example:"client_secret_basic"`
}

// TransformSchema adds the limits of the domain, and descriptions.
func (OAuthClientCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	clientSchema(s)
	property(s, "redirect_uris",
		describedAs("Redirect URIs: https, http to the user's own machine, or a custom scheme such as "+
			"com.example.app:/done."))
	property(s, "scopes", describedAs("Scopes that the client may ask for: svc:tasks:read, svc:tasks:write, svc:a2a:write, "+
		"svc:admin:admin, agent:ID or agent:*. Default: all except svc:admin:admin."))
	property(s, "method", oneOf(oauth.Methods),
		describedAs("Client authentication at the token endpoint. Default: none, for a client without a secret."))
	return s
}

// OAuthClientPatch is the body of a change to a client.
type OAuthClientPatch struct {
	Name         *string   `json:"name,omitempty" doc:"A new name."`
	RedirectURIs *[]string `json:"redirect_uris,omitempty" nullable:"false"`
	Scopes       *[]string `json:"scopes,omitempty" nullable:"false" doc:"Scopes; replaces all." example:"[\"svc:tasks:read\"]"`
}

// TransformSchema adds the limits of the domain, and descriptions.
func (OAuthClientPatch) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	clientSchema(s)
	property(s, "redirect_uris",
		describedAs("Redirect URIs; replaces all. Authorization codes that were sent to a removed one are rejected."))
	one := 1
	s.MinProperties = &one
	return s
}

// OAuthClientRotation is the body that rotates the secret of a client.
type OAuthClientRotation struct {
	OverlapSeconds *int `json:"overlap_seconds,omitempty" doc:"How long the old secret keeps working; default 0." example:"3600"`
}

// TransformSchema adds the limits of the domain.
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

// notApps excludes schemes that do not open an app.
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
