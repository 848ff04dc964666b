// Package mcp shows the platform to agents as tools, over the Model Context
// Protocol: streamable HTTP without sessions at POST /mcp, and on stdio for local
// clients (stdio.go), which forwards to it.
//
// A tool decodes, calls one service method and encodes, as an operation of the REST
// interface does, with the same rules and the same errors. The org is always the
// caller's own. The package knows no SQL and no other transport.
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
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/wire"
)

// Options are what the tools need.
type Options struct {
	Proposals *proposal.Proposals
	Frictions *friction.Frictions
	Agents    *agent.Registry
	Tasks     *dispatch.Tasks
	Workers   *dispatch.Workers

	Version string // of the build; empty: "dev"
	// PublicURL is the address under which clients reach the server; nil: unknown.
	PublicURL *url.URL
	// ResourceMetadata is the address of the document that says where tokens come
	// from (RFC 9728), for those who come without one; empty: there is none.
	ResourceMetadata string
}

// Path is where the tools are.
const Path = "/mcp"

// MaxBody bounds a request, in bytes.
const MaxBody = 1 << 20

// server holds the services for the tools.
type server struct {
	Options
	router *httpx.Router
	origin *http.CrossOriginProtection
	next   http.Handler
	// actions is what each tool does, as far as rights go.
	actions map[string]identity.Action
}

// Mount adds the route of the tools to the router.
func Mount(rt *httpx.Router, o Options) {
	o.Version = cmp.Or(o.Version, "dev")
	s := &server{Options: o, router: rt, origin: http.NewCrossOriginProtection(), actions: map[string]identity.Action{}}
	tools := s.tools()
	s.next = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return tools }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: MaxBody, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // see local, which knows the public address
	})
	rt.Area(httpx.Area{Programs: true, CrossOrigin: true}, Path)
	rt.Area(httpx.Area{Programs: true}, Path+"/")
	rt.HandleRoute("POST "+Path, httpx.Route{Refuse: s.refuse}, s)
}

// ServeHTTP checks what concerns a request as a whole; the SDK does the rest.
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
		s.refuse(w, r, err) // there is no memory for it
		return
	}
	if err != nil {
		s.refuse(w, r, errs.Wrap(err, errs.TooLarge, "request.too_large", "the body is larger than %d bytes, or could not be read", MaxBody))
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
	// One request is one call: the rate limit counts requests.
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		s.refuse(w, r, errs.New(errs.Malformed, "request.batch", "send one JSON-RPC message a request; batches are not supported"))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	httpx.AllowWait(w, maxWait)
	s.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, r)))
}

// maxValues is how many JSON values a request may have: each is decoded to an object of
// its own, more than once.
const maxValues = 20_000

// valueSize is about what one value takes once it is decoded, each time.
const valueSize = 160

// prepare takes the memory of decoded values and, if there are many, a lane to decode them
// in: a request of few bytes can keep a processor busy for long.
func prepare(ctx context.Context, values int64) error {
	account := budget.From(ctx)
	if err := account.Hold(ctx, values*valueSize); err != nil {
		return err
	}
	return account.Work(ctx)
}

// requestKey is where a tool finds the request that it was called by.
type requestKey struct{}

// scopes are those that the tools need; with svc:admin:admin alone there is
// list_agents.
var scopes = []identity.Scope{identity.TasksRead, identity.TasksWrite, identity.A2AWrite}

func (s *server) check(r *http.Request) error {
	if r.Header.Get("Origin") != "" && (!s.local(r) || !s.router.AllowsOrigin(r) && s.origin.Check(r) != nil) {
		return errs.New(errs.Forbidden, "auth.cross_origin",
			"pages of other hosts may not call this; a browser must come from the server's own public address "+
				"or an origin of --cors-origins, and on a loopback address Host must be a loopback name or that of --public-url")
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

// stepUp is the first revision whose official client asks its person for the scope
// that a refusal names. Older ones fail with less than the tool's own error says.
const stepUp = "2026-07-28"

// askForMore refuses a request as a whole if it calls a tool for which its person has
// not given the program the scope, but can.
func (s *server) askForMore(r *http.Request, c *identity.Caller) error {
	// Revisions are dates. From this one on the headers say what is called, and the SDK
	// holds them against the body.
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

// local reports whether a browser's request that arrived on this machine names this
// machine, or the public address: if a name of somebody else's was made to lead here
// (DNS rebinding), the page is not ours.
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

// refuse answers with a problem document; a challenge says where tokens come from, and
// what to ask for.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := httpx.NewProblem(r.Context(), err)
	if h := p.GetHeaders(); s.ResourceMetadata != "" && h.Get("WWW-Authenticate") != "" {
		// The metadata of this resource takes the place of that of the whole service.
		challenge, _, _ := strings.Cut(h.Get("WWW-Authenticate"), httpx.MetadataParameter)
		if p.Scope == "" {
			challenge += `, scope="` + identity.Scopes(scopes).String() + `"`
		}
		h.Set("WWW-Authenticate", challenge+httpx.MetadataParameter+`"`+s.ResourceMetadata+`"`)
	}
	p.Write(w)
}
