// Package mcp offers the platform to agents as tools of the Model Context Protocol: streamable HTTP
// without sessions at POST /mcp, and stdio for local clients (stdio.go), which forwards to it.
//
// A tool decodes, calls one service method and encodes, with the same rules and errors as the REST
// API. The org is always the caller's. The package knows no SQL and no other transport.
package mcp

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/trace"
	"github.com/parley-dev/parley/internal/wire"
)

// Options are the dependencies of the tools.
type Options struct {
	Proposals *proposal.Proposals
	Frictions *friction.Frictions
	Agents    *agent.Registry
	Catalogue *agent.Catalogue
	Tasks     *dispatch.Tasks
	Workers   *dispatch.Workers
	Events    *event.Service
	Tracer    *trace.Tracer // nil: no spans

	Version string // of the build; empty: "dev"
	// PublicURL is the URL under which clients reach the server; nil: unknown.
	PublicURL *url.URL
	// ResourceMetadata is the URL of the document that describes where to get tokens (RFC 9728).
	// Challenges contain it; empty: none.
	ResourceMetadata string
}

// Path is the path of the endpoint.
const Path = "/mcp"

// MaxBody is the maximum size of a request, in bytes.
const MaxBody = 1 << 20

// server holds the services for the tools.
type server struct {
	Options
	router *httpx.Router
	origin *http.CrossOriginProtection
	next   http.Handler
	// actions are the actions that the tools need permission for.
	actions map[string]identity.Action
}

// Mount adds the endpoint to the router.
func Mount(rt *httpx.Router, o Options) {
	o.Version = cmp.Or(o.Version, "dev")
	s := &server{
		Options: o, router: rt, origin: http.NewCrossOriginProtection(), actions: map[string]identity.Action{},
	}
	older, newer := s.handler(s.tools(false)), s.handler(s.tools(true))
	s.next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case listens(r):
			s.serveListen(w, r)
		case r.Header.Get("MCP-Protocol-Version") >= stepUp:
			newer.ServeHTTP(w, r)
		default:
			older.ServeHTTP(w, r)
		}
	})
	rt.Area(httpx.Area{Programs: true, CrossOrigin: true}, Path)
	rt.Area(httpx.Area{Programs: true}, Path+"/")
	rt.HandleRoute("POST "+Path, httpx.Route{Refuse: s.refuse}, s)
}

// handler serves requests without sessions.
func (s *server) handler(m *sdk.Server) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return m }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: MaxBody, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // local checks instead, with the public URL
	})
}

// ServeHTTP checks the request as a whole; the SDK does the rest.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.check(r); err != nil {
		s.refuse(w, r, err)
		return
	}
	if err := httpx.CheckLength(r, MaxBody); err != nil {
		s.refuse(w, r, err)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if budget.IsBusy(err) {
		s.refuse(w, r, err) // no memory for the body
		return
	}
	if err != nil {
		s.refuse(w, r, errs.Wrap(err, errs.TooLarge, "request.too_large",
			"the body is larger than %d bytes, or could not be read", MaxBody))
		return
	}
	values := wire.Values(body)
	if values > maxValues {
		s.refuse(w, r, errs.New(errs.TooLarge, "request.too_many_values",
			"the body has more than %d JSON values; send large data as a file", maxValues))
		return
	}
	if err := prepare(r.Context(), values); err != nil {
		s.refuse(w, r, err)
		return
	}
	// One request is one call, because the rate limit counts requests.
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		s.refuse(w, r, errs.New(errs.Malformed, "request.batch",
			"batches are not supported; send one JSON-RPC message per request"))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	httpx.AllowWait(w, maxWait)
	s.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, r)))
}

// maxValues is the maximum number of JSON values in a request: each becomes an object, more than
// once.
const maxValues = 20_000

// valueSize is the approximate size of a decoded value.
const valueSize = 160

// prepare takes the memory of decoded values and, if there are many, a lane to decode them in: a
// small request can keep a processor busy for long.
func prepare(ctx context.Context, values int64) error {
	account := budget.From(ctx)
	if err := account.Hold(ctx, values*valueSize); err != nil {
		return err
	}
	return account.Work(ctx)
}

// requestKey is the context key of the HTTP request, for tools.
type requestKey struct{}

// scopes are the scopes that the tools need. With svc:admin:admin alone, only list_agents works.
var scopes = []identity.Scope{identity.TasksRead, identity.TasksWrite, identity.A2AWrite}

func (s *server) check(r *http.Request) error {
	if r.Header.Get("Origin") != "" && (!s.local(r) || !s.router.AllowsOrigin(r) && s.origin.Check(r) != nil) {
		return errs.New(errs.Forbidden, "auth.cross_origin",
			"pages of other origins may not call this endpoint; a browser must use the server's public URL "+
				"or an origin of --cors-origins, "+
				"and on a loopback address Host must be a loopback name or that of --public-url")
	}
	c := httpx.CallerOf(r.Context())
	if c == nil {
		_, err := identity.Authorize(nil, "", identity.ListProposals)
		return err
	}
	if !c.Scopes.Has(identity.Admin) && !slices.ContainsFunc(scopes, c.Scopes.Has) {
		return identity.MissingScope("use the tools", scopes...)
	}
	return s.askForMore(r, c)
}

// stepUp is the first revision whose official client asks the user for the scope that a refusal
// names. With older ones, the tool's own error is more helpful. It is also the first revision that
// has subscriptions without sessions.
const stepUp = "2026-07-28"

// askForMore refuses a request as a whole if it calls a tool whose scope the user has not granted
// to the program, but could.
func (s *server) askForMore(r *http.Request, c *identity.Caller) error {
	// Revisions are dates. From this one on, headers name the method and the tool, and the SDK
	// compares them with the body.
	if !c.Delegated || r.Header.Get("MCP-Protocol-Version") < stepUp || r.Header.Get("Mcp-Method") != "tools/call" {
		return nil
	}
	action, known := s.actions[r.Header.Get("Mcp-Name")]
	if !known {
		return nil
	}
	if _, err := authorize(c, action); err != nil && errs.As(err).Scope != "" {
		return err
	}
	return nil
}

// local reports whether the Host of a browser request that arrived on a loopback address is a
// loopback name or the public URL. Another name means DNS rebinding: the page belongs to another
// site.
func (s *server) local(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !loopback(at.String()) {
		return true
	}
	return loopback(r.Host) || s.PublicURL != nil && strings.EqualFold(r.Host, s.PublicURL.Host)
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// refuse writes a problem document. Its challenge names where to get tokens and which scopes to
// request.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := httpx.NewProblem(r.Context(), err)
	if h := p.GetHeaders(); s.ResourceMetadata != "" && h.Get("WWW-Authenticate") != "" {
		// The metadata of this resource replaces that of the whole service.
		challenge, _, _ := strings.Cut(h.Get("WWW-Authenticate"), httpx.MetadataParameter)
		if p.Scope == "" {
			challenge += `, scope="` + identity.Scopes(scopes).String() + `"`
		}
		h.Set("WWW-Authenticate", challenge+httpx.MetadataParameter+`"`+s.ResourceMetadata+`"`)
	}
	p.Write(w)
}
