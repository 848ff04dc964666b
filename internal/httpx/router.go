package httpx

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/trace"
)

// Authenticator authenticates the bearer of a token.
type Authenticator interface {
	Authenticate(ctx context.Context, secret string) (*identity.Caller, error)
}

// Options configure a Router. The zero value serves without limits, metrics or an access log;
// routes added with Handle need an Authenticator.
type Options struct {
	Authenticator Authenticator
	Logger        *slog.Logger          // nil: slog.Default()
	AccessLog     bool                  // log every request, not only failed ones
	Registerer    prometheus.Registerer // nil: no metrics
	Tracer        *trace.Tracer         // nil: no spans

	// RateLimit is how many requests a second a principal may make, with bursts of five times as
	// many. An agent's workers may make fifty times as many. 0: no limit.
	RateLimit int
	// AuthFailureLimit is how many bad credentials a second one client address may send, with
	// bursts as above. 0: no limit.
	AuthFailureLimit int
	// MaxRequests is how many requests are served at the same time in each class; one principal may
	// have half of them, and one org two thirds. 0: no limit.
	MaxRequests int
	// Parked bounds streams and waiting requests, which do not count as being served.
	Parked ParkLimits
	// Origins are the web origins whose pages may call the server with bearer credentials; "*" is
	// any.
	Origins []string
	// HSTS tells browsers to use only HTTPS for this host from now on.
	HSTS bool
	// ResourceMetadata is the URL of the document that describes where to get access tokens (RFC
	// 9728). Challenges contain it. Empty: none.
	ResourceMetadata string
	// Memory bounds what requests and responses may hold; nil: no limit.
	Memory *budget.Pool
	// TrustedProxies are the hops whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix

	// Recheck is how often a long request authenticates its caller again; 0: every four seconds.
	Recheck time.Duration

	Now func() time.Time // nil: time.Now
}

// DefaultMaxRequests is the default of MaxRequests.
const DefaultMaxRequests = 768

// DefaultAuthFailureLimit is the default of AuthFailureLimit.
const DefaultAuthFailureLimit = 20

// Router gives every request an id, routes it, recovers from panics, counts and logs it.
type Router struct {
	mux       *http.ServeMux
	refused   map[string]bool // patterns of RefuseMethods
	auth      Authenticator
	sessions  Sessions // nil: no sessions
	pages     Page     // nil: browsers get problem documents too
	log       *slog.Logger
	accessLog bool
	now       func() time.Time
	trusted   []netip.Prefix
	hsts      bool
	areas     []area
	cors      *cors    // nil: no origin is allowed
	vary      []string // the Vary header of private responses
	recheck   time.Duration
	ids       *requestIDs
	memory    *budget.Pool
	metadata  string

	metrics      *metrics
	tracer       *trace.Tracer
	unmatched    *route
	perPrincipal *limits[identity.Principal]
	perWorker    *limits[identity.Principal]
	perAddress   *limits[netip.Addr]
	admission    *admission // nil: no limit
	parking      *parking
	streams      *streams
	shedLogged   atomic.Int64 // when the log last mentioned refusals, in ns
}

// NewRouter makes a Router without routes.
func NewRouter(o Options) *Router {
	rt := &Router{
		mux: http.NewServeMux(), refused: map[string]bool{}, auth: o.Authenticator,
		log: o.Logger, accessLog: o.AccessLog, now: o.Now,
		trusted: o.TrustedProxies, recheck: cmp.Or(o.Recheck, RecheckEvery), ids: newRequestIDs(), memory: o.Memory,
		metadata: o.ResourceMetadata,
		metrics:  newMetrics(o.Registerer), tracer: o.Tracer, admission: newAdmission(o.MaxRequests),
		parking: newParking(o.Parked), streams: newStreams(),
		hsts: o.HSTS, vary: varyAuth,
		perPrincipal: newLimits[identity.Principal]("principal", o.RateLimit),
		perWorker:    newLimits[identity.Principal]("worker", o.RateLimit*workerFactor),
		perAddress:   newLimits[netip.Addr]("credentials", o.AuthFailureLimit),
	}
	if rt.cors = newCORS(o.Origins); rt.cors != nil {
		rt.vary = varyAuthOrigin
	}
	if rt.log == nil {
		rt.log = slog.Default()
	}
	if rt.now == nil {
		rt.now = time.Now
	}
	rt.metrics.watch(o.Registerer, rt.admission, rt.parking)
	rt.unmatched = rt.metrics.route("any", "unmatched")
	rt.mux.HandleFunc("/", rt.fallback)
	return rt
}

// Handle adds a route whose caller is authenticated and rate limited first. A request without
// credentials passes with no caller: the handler decides whether it needs one. Responses are
// private unless the handler changes that.
func (rt *Router) Handle(pattern string, h http.Handler) { rt.HandleRoute(pattern, Route{}, h) }

// HandleRoute is Handle with options.
func (rt *Router) HandleRoute(pattern string, ro Route, h http.Handler) {
	if ro.Refuse == nil {
		ro.Refuse = WriteError
	}
	c := ordinary
	if ro.Worker {
		c = worker
	}
	path := pattern
	if _, p, ok := strings.Cut(pattern, " "); ok {
		path = p
	}
	rt.add(pattern, c, ro.Refuse, rt.private(rt.authenticate(path, ro, h)))
}

// workerFactor is how many times the rate of others a worker may have.
const workerFactor = 50

// HandleFunc is Handle for a function.
func (rt *Router) HandleFunc(pattern string, h func(http.ResponseWriter, *http.Request)) {
	rt.Handle(pattern, http.HandlerFunc(h))
}

// HandlePublic adds a route that ignores credentials.
func (rt *Router) HandlePublic(pattern string, h http.Handler) {
	rt.add(pattern, ordinary, WriteError, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := rt.admit(exchangeOf(r.Context())); err != nil {
			WriteError(w, r, err)
			return
		}
		h.ServeHTTP(w, r)
	}))
}

// HandleHealth adds a public route that is served however busy the server is. Its handler must not
// wait for anything.
func (rt *Router) HandleHealth(pattern string, h http.Handler) {
	rt.add(pattern, unlimited, WriteError, h)
}

// add adds a route. refuse writes the response when the class has no slot.
func (rt *Router) add(pattern string, c class, refuse ErrorWriter, h http.Handler) {
	method, target, ok := strings.Cut(pattern, " ")
	if !ok {
		method, target = "any", pattern
	}
	ro := rt.metrics.route(method, target)
	rt.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		x.route = ro
		if c == worker {
			x.detach()
		}
		if rt.tracer != nil && c != unlimited {
			rt.startSpan(x)
		}
		if !rt.admission.enter(x, c) {
			refuse(w, r, rt.shed(x, shedOverload, errOverloaded))
			return
		}
		if encoded(r.Header) {
			w.Header()["Accept-Encoding"] = identityOnly
			refuse(w, r, errEncoded)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// ServeHTTP implements http.Handler.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{
		Context: r.Context(), route: rt.unmatched, start: rt.now(),
		request: r, router: rt, trusted: rt.trusted, metadata: rt.metadata,
	}
	x.rec.ResponseWriter = w
	x.rec.x, x.account.Pool = x, rt.memory
	x.id[0] = rt.ids.next(r.Header["X-Request-Id"])
	setHeaders(w.Header(), x)
	if rt.hsts {
		w.Header()["Strict-Transport-Security"] = strictTransport
	}
	r = r.WithContext(x)
	if rt.metrics != nil {
		rt.metrics.inFlight.Inc()
	}
	defer rt.finish(x, r)
	if !clean(r.URL.EscapedPath()) {
		rt.refuse(&x.rec, r, NewProblem(r.Context(), errs.ErrNotFound))
		return
	}
	if rt.cors != nil && rt.cors.answer(&x.rec, r, rt) {
		return
	}
	rt.mux.ServeHTTP(&x.rec, r)
}

// clean reports whether the mux would accept the path unchanged. The mux redirects any other path
// to its clean form; here such a path is a 404.
func clean(p string) bool {
	if p == "" || p[0] != '/' {
		return false
	}
	c := path.Clean(p)
	return c == p || len(c)+1 == len(p) && c != "/" && p[len(p)-1] == '/'
}

// Log returns the router's logger.
func (rt *Router) Log() *slog.Logger { return rt.log }

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
}

// RefuseMethods responds to the methods with 405, for a path that the mux would otherwise match
// with another route.
func (rt *Router) RefuseMethods(path string, methods ...string) {
	for _, m := range methods {
		rt.refused[m+" "+path] = true
		rt.HandlePublic(m+" "+path, http.HandlerFunc(rt.fallback))
	}
}

// fallback serves requests that no route matches: 405 if another method would match, else 404.
func (rt *Router) fallback(w http.ResponseWriter, r *http.Request) {
	if x := exchangeOf(r.Context()); rt.tracer != nil && !x.span.On() {
		rt.startSpan(x)
	}
	allowed := rt.allowed(r)
	if len(allowed) == 0 {
		rt.refuse(w, r, NewProblem(r.Context(), errs.ErrNotFound))
		return
	}
	rt.refuse(w, r, methodNotAllowed(r.Context(), allowed))
}

// Page shows an error to people.
type Page func(w http.ResponseWriter, r *http.Request, status int, message string)

// ShowErrors shows error pages to people who open a URL in a browser, outside of the areas for
// programs: for unknown URLs, and for requests that are refused before a page is reached. Call it
// before the first request.
func (rt *Router) ShowErrors(p Page) { rt.pages = p }

// refuse responds to a request with an error, as a page if a person made it.
func (rt *Router) refuse(w http.ResponseWriter, r *http.Request, p *Problem) {
	if rt.pages == nil || !fromBrowser(r) || rt.forPrograms(r.URL.Path) {
		p.Write(w)
		return
	}
	maps.Copy(w.Header(), p.headers)
	message := p.Detail
	if p.Status == http.StatusNotFound {
		message = "there is no page at this URL"
	}
	rt.pages(w, r, p.Status, strings.ToUpper(message[:1])+message[1:]+".")
}

// fromBrowser reports whether a person opened the URL.
func fromBrowser(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// allowed lists the methods that routes accept for the request's path.
func (rt *Router) allowed(r *http.Request) (out []string) {
	for _, m := range methods {
		probe := &http.Request{Method: m, URL: r.URL, Host: r.Host}
		if _, pattern := rt.mux.Handler(probe); pattern != "/" && pattern != "" && !rt.refused[pattern] {
			out = append(out, m)
		}
	}
	return out
}
