// Package rest is the Proposals API, follow-ups, and what agents and their
// workers need, over HTTP: the operations under /api/v1, their OpenAPI document
// and its page.
//
// An operation decodes, calls one service method and encodes; every rule lives
// in the domain packages. The package knows no SQL and no other transport.
package rest

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/proposal"
)

// Options are what the API needs.
type Options struct {
	Proposals *proposal.Proposals
	Followups *followup.Followups
	Frictions *friction.Frictions
	Agents    *agent.Registry
	Tasks     *dispatch.Tasks
	Workers   *dispatch.Workers
	OrgAdmin  *identity.OrgAdmin
	Clients   *oauth.Service
	Accounts  *account.Accounts

	Version   string // of the build, shown in the OpenAPI document; empty: "dev"
	PublicURL string // shown in the OpenAPI document; empty: the documents name no server

	// Ready says whether the server can do its work; nil: always.
	Ready func(ctx context.Context) error
	// Metrics serves /metrics; nil: there is none.
	Metrics http.Handler
	// PageCacheBytes bounds the memory for encoded list pages. 0: DefaultPageCache;
	// negative: no cache.
	PageCacheBytes int64
}

// DefaultPageCache is the size of the page cache of a server that was not told otherwise.
const DefaultPageCache = 64 << 20

type api struct {
	huma      huma.API
	proposals *proposal.Proposals
	followups *followup.Followups
	frictions *friction.Frictions
	agents    *agent.Registry
	tasks     *dispatch.Tasks
	workers   *dispatch.Workers
	admin     *identity.OrgAdmin
	clients   *oauth.Service
	accounts  *account.Accounts
	router    *httpx.Router
	publicURL string
}

// Mount adds every route of the API to the router.
func Mount(rt *httpx.Router, o Options) {
	mountSystem(rt, o, describe(rt, o))
}

// describe adds the operations under /api/v1 and returns the document of the API.
func describe(rt *httpx.Router, o Options) *huma.OpenAPI {
	a := &api{
		proposals: o.Proposals, followups: o.Followups, frictions: o.Frictions, agents: o.Agents, tasks: o.Tasks, workers: o.Workers,
		admin: o.OrgAdmin, clients: o.Clients, accounts: o.Accounts, router: rt, publicURL: o.PublicURL,
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
	a.registerOrgTasks()
	a.registerOrgPushes()
	a.registerWorkers()
	a.registerKeys()
	a.registerOwnKeys()
	a.registerMembers()
	a.registerInvitations()
	a.registerClients()
	a.registerMe()
	a.registerAudit()
	doc := a.huma.OpenAPI()
	documentSystem(doc)
	documentA2A(doc)
	linkOperations(doc)
	demandValues(doc)
	openAnswers(doc)
	return doc
}

// routes puts huma's operations on the router. The page cache stands in front of
// the list alone, and behind authentication.
type routes struct {
	*httpx.Router
	pages *pageCache
}

// routeOf is where an operation's metadata has its httpx.Route.
const routeOf = "route"

// Handle implements huma.Adapter.
func (m routes) Handle(op *huma.Operation, handle func(huma.Context)) {
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(humago.NewContext(op, r, w)) })
	if op.Method == http.MethodGet && op.Path == proposalsPath && m.pages != nil {
		h = m.pages.wrap(h)
	}
	m.HandleRoute(op.Method+" "+op.Path, op.Metadata[routeOf].(httpx.Route), h)
}
