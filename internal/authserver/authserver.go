// Package authserver is the OAuth 2.1 transport: authorization codes with PKCE, client
// credentials, refresh tokens, revocation, introspection, dynamic registration and metadata.
//
// A library implements the protocol. This package connects it with the grants and tokens of
// package oauth, which decides what may be granted. It makes sure that no secret is stored in
// clear, that codes and refresh tokens work once, and that scopes only shrink. It must not
// know SQL or how pages look.
package authserver

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/luikyv/go-oidc/pkg/goidc"
	"github.com/luikyv/go-oidc/pkg/provider"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/outbound"
)

// Pages shows pages to people.
type Pages interface {
	// Wrap adds the session of the signed-in person to requests, and refuses forms of other
	// sites.
	Wrap(h http.Handler) http.Handler
	// SignedIn returns the signed-in person, or nil.
	SignedIn(r *http.Request) (*identity.Member, error)
	// SignIn redirects to the sign-in page, and from there to next.
	SignIn(w http.ResponseWriter, r *http.Request, next string)
	Consent(w http.ResponseWriter, r *http.Request, q oauth.Question)
	Problem(w http.ResponseWriter, r *http.Request, status int, message string)
}

// Requests stores authorization requests while people decide.
type Requests interface {
	PutRequest(ctx context.Context, id identity.Hash, data []byte, expires time.Time) error
	Request(ctx context.Context, id identity.Hash, now time.Time) ([]byte, error)
	// EndRequest deletes a request. It returns NotFound if the request was decided before.
	EndRequest(ctx context.Context, id identity.Hash) error
}

// Members looks up the members of an org.
type Members interface {
	Member(ctx context.Context, p identity.Principal) (identity.Member, error)
}

// Options configure the authorization server.
type Options struct {
	Service  *oauth.Service
	Requests Requests
	Members  Members
	Pages    Pages
	Issuer   string   // the public URL, without a trailing slash
	Only     []string // paths that a token can be restricted to, such as "/mcp"
	Others   []string // other issuers whose tokens are accepted
	// Documents guards requests for OAuth Client ID Metadata Documents; nil: not supported.
	Documents *outbound.Guard
	Logger    *slog.Logger
	Now       func() time.Time
}

// Paths of the endpoints. RFC 8414 and RFC 9728 fix those of the metadata.
const (
	prefix        = "/oauth"
	AuthorizePath = prefix + "/authorize"
	TokenPath     = prefix + "/token"
	introspect    = prefix + "/introspect"
	revokePath    = prefix + "/revoke"
	registerPath  = prefix + "/register"

	// ServerMetadata is the path of the metadata of the authorization server.
	ServerMetadata = "/.well-known/oauth-authorization-server"
	// ResourceMetadata is the path of the metadata of the protected resource. The path of the
	// resource follows it.
	ResourceMetadata = "/.well-known/oauth-protected-resource"
)

const (
	codeLifetime    = time.Minute
	requestLifetime = 10 * time.Minute
	maxForm         = 64 << 10

	// Per IP address, registerBurst clients can be registered at once, and one more every
	// registerEvery. The same limit applies to metadata documents per person.
	registerBurst = 20
	registerEvery = 10 * time.Second
)

type server struct {
	Options
	router    *httpx.Router
	protocol  http.Handler
	registers *httpx.Throttle
	readings  *httpx.Throttle // of metadata documents, by person
	documents *http.Client    // for metadata documents; nil: not supported
	limits    callLimits
}

// Mount adds the routes of the server to the router.
func Mount(rt *httpx.Router, o Options) error {
	s := &server{
		Options: o, router: rt,
		registers: httpx.NewThrottle(registerEvery, registerBurst, o.Now),
		readings:  httpx.NewThrottle(registerEvery, registerBurst, o.Now),
		limits:    newCallLimits(o.Now),
	}
	if o.Documents != nil {
		s.documents = o.Documents.Client(documentTimeout)
	}
	op, err := s.provider()
	if err != nil {
		return fmt.Errorf("set up the authorization server: %w", err)
	}
	s.protocol = op.Handler()
	rt.Area(httpx.Area{Programs: true}, prefix+"/")
	rt.Area(httpx.Area{CrossOrigin: true}, TokenPath, introspect, revokePath, registerPath)
	rt.Area(httpx.Area{Secret: true}, AuthorizePath+"/")
	rt.HandlePublic("GET "+AuthorizePath, o.Pages.Wrap(http.HandlerFunc(s.authorize)))
	rt.HandlePublic("POST "+AuthorizePath+"/{callback}", o.Pages.Wrap(http.HandlerFunc(s.answer)))
	rt.HandlePublic("POST "+TokenPath, http.HandlerFunc(s.direct))
	rt.HandlePublic("POST "+introspect, http.HandlerFunc(s.direct))
	rt.HandlePublic("POST "+revokePath, http.HandlerFunc(s.direct))
	rt.HandlePublic("POST "+registerPath, http.HandlerFunc(s.register))
	rt.HandlePublic("GET "+ServerMetadata, document(s.serverDocument()))
	for _, path := range append([]string{""}, o.Only...) {
		rt.HandlePublic("GET "+ResourceMetadata+path, document(s.resourceDocument(path)))
	}
	return nil
}

func (s *server) provider() (*provider.Provider, error) {
	m := &manager{s}
	scopes := make([]goidc.Scope, 0, len(identity.AllScopes)+1)
	for _, scope := range identity.AllScopes {
		scopes = append(scopes, goidc.NewScope(string(scope)))
	}
	scopes = append(scopes, goidc.NewDynamicScope(agentScope, func(asked string) bool {
		_, err := identity.ParseScope(asked)
		return err == nil && strings.HasPrefix(asked, agentScope+":")
	}))
	resources := s.resources()
	life := s.Service.Lifetimes()
	noKeys := func(context.Context) (goidc.JSONWebKeySet, error) { return goidc.JSONWebKeySet{}, nil }
	always := func(*http.Request, *goidc.AuthnSession, *goidc.Client) bool { return true }
	return provider.New(s.Issuer, m, noKeys,
		provider.WithPathPrefix(prefix),
		provider.WithAuthorizeEndpoint("/authorize"), provider.WithTokenEndpoint("/token"),
		provider.WithTokenIntrospectionEndpoint("/introspect"), provider.WithTokenRevocationEndpoint("/revoke"),
		provider.WithScopes(scopes...),
		provider.WithAuthCodeGrant(m, goidc.ResponseTypeCode),
		provider.WithAuthCodeLifetime(int(codeLifetime/time.Second)),
		provider.WithAuthCodeFunc(random),
		provider.WithAuthSessionLifetime(int(requestLifetime/time.Second)),
		provider.WithAuthnSessionIDFunc(random),
		provider.WithGrantIDFunc(func(context.Context) string { return s.Service.NewGrantID() }),
		provider.WithPKCERequired(goidc.CodeChallengeMethodSHA256),
		provider.WithIssuerResponseParameter(),
		provider.WithClientCredentialsGrant(),
		provider.WithRefreshTokenGrant(m),
		provider.WithRefreshTokenRotation(),
		provider.WithRefreshTokenLifetime(int(life.Refresh/time.Second)),
		provider.WithRefreshTokenFunc(random),
		provider.WithRefreshTokenShouldIssue(func(context.Context, *goidc.Client, *goidc.Grant) bool { return true }),
		provider.WithOpaqueTokens(m),
		provider.WithOpaqueTokenFunc(func(context.Context, *goidc.Grant) string { return identity.NewToken() }),
		provider.WithTokenOptions(func(context.Context, *goidc.Grant, *goidc.Client) goidc.TokenOptions {
			return goidc.NewOpaqueTokenOptions(int(life.Token / time.Second))
		}),
		provider.WithTokenClaims(m.claims),
		provider.WithGrantHandler(m.handleGrant),
		provider.WithTokenHandler(m.handleToken),
		provider.WithResourceIndicators(resources[0], resources[1:]...),
		provider.WithNoneAuthn(), provider.WithSecretBasicAuthn(), provider.WithSecretPostAuthn(),
		provider.WithClientSecretVerifier(m.verifySecret),
		provider.WithTokenIntrospection(m.mayIntrospect),
		provider.WithTokenRevocation(func(context.Context, *goidc.Client) bool { return true }),
		// Needed to look up clients. Its routes are not mounted.
		provider.WithDCR(m),
		provider.WithPolicies(goidc.NewPolicy("consent", always, s.decide)),
		provider.WithErrorRenderer(s.renderError),
		provider.WithErrorHandler(s.logError),
		provider.WithJTIConsumer(func(context.Context, string) error { return nil }), // assertions are not supported
	)
}

// agentScope stands for all restrictions to agents.
const agentScope = "agent"

func random(context.Context) string { return strings.ToLower(rand.Text() + rand.Text()) }

// resources returns the resource URLs that a token can be requested for. Some clients append a
// slash.
func (s *server) resources() []string {
	out := []string{s.Issuer, s.Issuer + "/"}
	for _, path := range s.Only {
		out = append(out, s.Issuer+path, s.Issuer+path+"/")
	}
	return out
}

// audience returns the path of the resources. It is empty for the whole service.
func (s *server) audience(resources goidc.Resources) string {
	only := ""
	for i, r := range resources {
		path := strings.TrimSuffix(strings.TrimPrefix(r, s.Issuer), "/")
		if i > 0 && path != only {
			return "" // several resources
		}
		only = path
	}
	return only
}

func (s *server) resourcesOf(audience string) goidc.Resources {
	if audience == "" {
		return nil
	}
	return goidc.Resources{s.Issuer + audience}
}
