// Package rest serves the REST API under /api/v1: proposals, follow-ups, friction, agents,
// workers, keys and members, together with its OpenAPI document and the documentation page.
//
// An operation decodes the request, calls one service method and encodes the result. The rules
// live in the domain packages. This package must not know SQL or another transport.
package rest

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/cache"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/relay"
	"github.com/parley-dev/parley/internal/trace"
	"github.com/parley-dev/parley/internal/webhook"
)

// Options configures the API.
type Options struct {
	Proposals *proposal.Proposals
	Followups *followup.Followups
	Frictions *friction.Frictions
	Agents    *agent.Registry
	Catalogue *agent.Catalogue
	Relays    *relay.Service
	Tasks     *dispatch.Tasks
	Workers   *dispatch.Workers
	OrgAdmin  *identity.OrgAdmin
	Clients   *oauth.Service
	Accounts  *account.Accounts
	Events    *event.Service
	Webhooks  *webhook.Service
	Tracer    *trace.Tracer // nil: no spans

	Version   string // build version shown in the OpenAPI document; default "dev"
	PublicURL string // base URL shown in the OpenAPI document; if empty, no server is named
	Base      string // base URL in the examples of the documentation page; default PublicURL

	// KeepAlive is how often an idle stream of events sends something, and Recheck how often it
	// authenticates its caller again; 0: every 15 and every two seconds.
	KeepAlive, Recheck time.Duration
	// Ready reports whether the server can handle requests. Nil means always ready.
	Ready func(ctx context.Context) error
	// SearchWaiting returns how many proposals the text index lacks, for /readyz. Nil means none.
	SearchWaiting func() int64
	// Metrics serves /metrics. Nil means the route does not exist.
	Metrics http.Handler
	// PageCacheBytes limits the memory of the cache of encoded list pages.
	// 0 means DefaultPageCache; a negative value disables the cache.
	PageCacheBytes int64
	// OnCache gets the look-ups of a cache, for metrics; may be nil.
	OnCache func(name string, stats func() cache.Stats)
}

// DefaultPageCache is the default size of the page cache in bytes.
const DefaultPageCache = 64 << 20

type api struct {
	huma      huma.API
	proposals *proposal.Proposals
	followups *followup.Followups
	frictions *friction.Frictions
	agents    *agent.Registry
	catalogue *agent.Catalogue
	relays    *relay.Service
	tasks     *dispatch.Tasks
	workers   *dispatch.Workers
	admin     *identity.OrgAdmin
	clients   *oauth.Service
	accounts  *account.Accounts
	events    *event.Service
	webhooks  *webhook.Service
	router    *httpx.Router
	tracer    *trace.Tracer
	publicURL string
	keepAlive time.Duration
	recheck   time.Duration
}

// Mount adds the routes of the API to the router.
func Mount(rt *httpx.Router, o Options) {
	mountSystem(rt, o, describe(rt, o))
}

// describe adds the operations under /api/v1 and returns the OpenAPI document.
func describe(rt *httpx.Router, o Options) *huma.OpenAPI {
	a := &api{
		proposals: o.Proposals, followups: o.Followups, frictions: o.Frictions,
		agents: o.Agents, catalogue: o.Catalogue, relays: o.Relays, tasks: o.Tasks, workers: o.Workers,
		admin: o.OrgAdmin, clients: o.Clients, accounts: o.Accounts, events: o.Events, webhooks: o.Webhooks,
		router: rt, tracer: o.Tracer, publicURL: o.PublicURL,
		keepAlive: cmp.Or(o.KeepAlive, 15*time.Second), recheck: cmp.Or(o.Recheck, 2*time.Second),
	}
	rt.Area(httpx.Area{Programs: true, CrossOrigin: true}, "/api/")
	a.huma = newHuma(routes{rt, newPageCache(o)}, o)
	schemaOf[httpx.Problem](a)
	a.registerProposals()
	a.registerTriage()
	a.registerNotes()
	a.registerVotes()
	a.registerFollowups()
	a.registerFriction()
	a.registerAgents()
	a.registerCatalogue()
	a.registerOrgTasks()
	a.registerReruns()
	a.registerOrgPushes()
	a.registerWorkers()
	a.registerKeys()
	a.registerOwnKeys()
	a.registerMembers()
	a.registerInvitations()
	a.registerClients()
	a.registerWebhooks()
	a.registerMe()
	a.registerAudit()
	a.registerEvents()
	doc := a.huma.OpenAPI()
	documentSystem(doc)
	documentA2A(doc)
	linkOperations(doc)
	exampleTimes(doc)
	demandValues(doc)
	openAnswers(doc)
	return doc
}

// routes registers huma's operations on the router. The page cache wraps only the list of
// proposals and single proposals. It runs after authentication.
type routes struct {
	*httpx.Router
	pages *pageCache
}

// routeOf is the metadata key under which an operation stores its httpx.Route.
const routeOf = "route"

// Handle implements huma.Adapter.
func (m routes) Handle(op *huma.Operation, handle func(huma.Context)) {
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle(humago.NewContext(op, r, w))
	})
	switch {
	case op.Method != http.MethodGet || m.pages == nil:
	case op.Path == proposalsPath:
		h = m.pages.wrap(identity.ListProposals, h)
	case op.Path == proposalPath:
		h = m.pages.wrap(identity.ReadProposal, h)
	}
	m.HandleRoute(op.Method+" "+op.Path, op.Metadata[routeOf].(httpx.Route), h)
}
