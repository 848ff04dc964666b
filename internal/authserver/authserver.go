// Package authserver speaks OAuth 2.1 to clients: authorization codes with PKCE,
// client credentials, refresh tokens, revocation, introspection, registration and
// the documents that describe all that.
//
// The protocol is spoken by a library; this package shows it our grants and tokens,
// and puts right what the library leaves to its user: nothing secret reaches the
// store, every code and refresh token works once, and scopes only ever shrink. What
// may be granted to whom is decided in package oauth. Pages are shown by whoever
// implements Pages.
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

// Pages is what people see.
type Pages interface {
	// Wrap gives a handler the session of whoever is signed in, and keeps forms of
	// other sites out.
	Wrap(h http.Handler) http.Handler
	// SignedIn returns who is signed in; nil: nobody.
	SignedIn(r *http.Request) (*identity.Member, error)
	// SignIn leads to a page to sign in on, and to the address after that.
	SignIn(w http.ResponseWriter, r *http.Request, next string)
	Consent(w http.ResponseWriter, r *http.Request, q oauth.Question)
	Problem(w http.ResponseWriter, r *http.Request, status int, message string)
}

// Requests keeps what clients asked for while people decide.
type Requests interface {
	PutRequest(ctx context.Context, id identity.Hash, data []byte, expires time.Time) error
	Request(ctx context.Context, id identity.Hash, now time.Time) ([]byte, error)
	// EndRequest deletes a request; NotFound: it was answered before.
	EndRequest(ctx context.Context, id identity.Hash) error
}

// Members knows who is in an org.
type Members interface {
	Member(ctx context.Context, p identity.Principal) (identity.Member, error)
}

// Options are what the server needs.
type Options struct {
	Service  *oauth.Service
	Requests Requests
	Members  Members
	Pages    Pages
	Issuer   string   // the public address, without a slash at its end
	Only     []string // paths that a token can be made for alone, as "/mcp"
	Others   []string // issuers whose tokens are taken, too
	// Documents is how the documents of clients are read that are named by their
	// addresses; nil: there are no such clients.
	Documents *outbound.Guard
	Logger    *slog.Logger
	Now       func() time.Time
}

// The paths. AuthorizePath and TokenPath are the endpoints of the OAuth flows; those of
// the documents are fixed by RFC 8414 and RFC 9728.
const (
	prefix        = "/oauth"
	AuthorizePath = prefix + "/authorize"
	TokenPath     = prefix + "/token"
	introspect    = prefix + "/introspect"
	revokePath    = prefix + "/revoke"
	registerPath  = prefix + "/register"

	// ServerMetadata is where the authorization server describes itself.
	ServerMetadata = "/.well-known/oauth-authorization-server"
	// ResourceMetadata is where a resource says who gives out tokens for it; the
	// resource's own path follows.
	ResourceMetadata = "/.well-known/oauth-protected-resource"
)

const (
	codeLifetime    = time.Minute
	requestLifetime = 10 * time.Minute
	maxForm         = 64 << 10

	// One address may register this many clients at once, and one more every so often;
	// one person may be sent here by as many that are described elsewhere.
	registerBurst = 20
	registerEvery = 10 * time.Second
)

type server struct {
	Options
	router    *httpx.Router
	protocol  http.Handler
	registers *httpx.Throttle
	readings  *httpx.Throttle // of documents, by person
	documents *http.Client    // nil: there are none
	limits    callLimits
}

// Mount adds the routes of the server to the router.
func Mount(rt *httpx.Router, o Options) error {
	s := &server{
		Options: o, router: rt,
		registers: httpx.NewThrottle(registerEvery, registerBurst, o.Now), readings: httpx.NewThrottle(registerEvery, registerBurst, o.Now),
		limits: newCallLimits(o.Now),
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
	return provider.New(s.Issuer, m, func(context.Context) (goidc.JSONWebKeySet, error) { return goidc.JSONWebKeySet{}, nil },
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
		// Clients are looked up by it; its own routes are not among ours.
		provider.WithDCR(m),
		provider.WithPolicies(goidc.NewPolicy("consent", func(*http.Request, *goidc.AuthnSession, *goidc.Client) bool { return true }, s.decide)),
		provider.WithErrorRenderer(s.renderError),
		provider.WithErrorHandler(s.logError),
		provider.WithJTIConsumer(func(context.Context, string) error { return nil }), // no assertions are taken
	)
}

// agentScope stands for all restrictions to agents.
const agentScope = "agent"

func random(context.Context) string { return strings.ToLower(rand.Text() + rand.Text()) }

// resources are the addresses that a token can be asked for. Some clients write the
// service's own with a slash at the end.
func (s *server) resources() []string {
	out := []string{s.Issuer, s.Issuer + "/"}
	for _, path := range s.Only {
		out = append(out, s.Issuer+path, s.Issuer+path+"/")
	}
	return out
}

// audience is the path that the resources stand for; empty: the whole service.
func (s *server) audience(resources goidc.Resources) string {
	only := ""
	for i, r := range resources {
		path := strings.TrimSuffix(strings.TrimPrefix(r, s.Issuer), "/")
		if i > 0 && path != only {
			return "" // several were asked for and allowed
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
