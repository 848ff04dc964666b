package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/parley-dev/parley/internal/a2a"
	"github.com/parley-dev/parley/internal/authserver"
	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/mcp"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/rest"
	"github.com/parley-dev/parley/internal/web"
)

// keysPath is the path of the server's public keys.
const keysPath = "/.well-known/jwks.json"

// handler makes the remaining services and mounts the transports.
func (s *Server) handler(ctx context.Context, ids *ids, proxies []netip.Prefix) (http.Handler, error) {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "parley_build_info", Help: "Always 1; the label says which build is running.",
			ConstLabels: prometheus.Labels{"version": Version()},
		}, func() float64 { return 1 }),
	)
	metrics.MustRegister(s.store.Collectors()...)
	if s.pushes != nil {
		metrics.MustRegister(s.pushes.collectors()...)
	}
	metrics.MustRegister(s.hooks.collectors(s.webhooks)...)
	metrics.MustRegister(s.queue.collectors(s.tasks.LeasesExpired)...)
	caches := cacheMetrics{metrics}
	caches.add("tasks", s.tasks.CacheStats)
	caches.add("agents", s.directory.CacheStats)
	s.router = httpx.NewRouter(httpx.Options{
		Authenticator:    s.auth,
		Logger:           s.log,
		AccessLog:        s.cfg.AccessLog,
		Registerer:       metrics,
		Tracer:           s.tracer,
		RateLimit:        s.cfg.RateLimit,
		AuthFailureLimit: httpx.DefaultAuthFailureLimit,
		MaxRequests:      s.cfg.MaxRequests,
		Parked:           parkLimits(s.cfg, s.files),
		Memory:           s.memory(metrics),
		TrustedProxies:   proxies,
		HSTS:             s.hsts(),
		ResourceMetadata: s.base() + authserver.ResourceMetadata,
		Origins:          s.cfg.CORSOrigins,
	})
	router := s.router
	// Several transports publish documents under this path.
	router.Area(httpx.Area{Programs: true, CrossOrigin: true}, "/.well-known/")
	admin := identity.NewOrgAdmin(identity.OrgAdminOptions{
		Stores: s.store.IdentityStores(), Agents: s.directory, Now: Now, NewID: ids.next,
		Quotas: identity.Quotas{
			OrgKeys: s.cfg.MaxKeys, PrincipalKeys: s.cfg.MaxPrincipalKeys, Invitations: s.cfg.MaxInvitations,
		},
	})
	proposals := proposal.New(s.store.Proposals(), Now, ids.next)
	frictions := friction.New(s.store.Friction(), Now, ids.next, proposal.Check)
	followups := followup.New(s.store.Followups(), s.store.Identity(), Now, ids.next, sender{s.tasks.Tasks, ids})
	rest.Mount(router, rest.Options{
		Proposals: proposals,
		Followups: followups,
		Frictions: frictions,
		Agents:    s.agents,
		Catalogue: s.catalogue,
		Relays:    s.relayAdmin,
		Tasks:     s.tasks.Tasks,
		Workers:   s.tasks.Workers,
		OrgAdmin:  admin,
		Clients:   s.oauth,
		Accounts:  s.accounts,
		Events:    s.events,
		Webhooks:  s.webhooks,
		Tracer:    s.tracer,
		OnCache:   caches.add,
		Version:   Version(),
		PublicURL: strings.TrimRight(s.cfg.PublicURL, "/"),
		Base:      s.base(),
		Ready:     s.ready,

		SearchWaiting: s.store.SearchWaiting,
		Metrics: s.mountMetrics(promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
			EnableOpenMetrics: s.tracer != nil, // only this format has exemplars
		})),
	})
	cardKey, err := s.cardKey(ctx)
	if err != nil {
		return nil, err
	}
	keys := []string{cardKey.JWK()}
	if s.pusher != nil {
		keys = []string{s.pusher.JWK(), cardKey.JWK()}
	}
	router.HandlePublic("GET "+keysPath, httpx.KeySet(keys...))
	base, err := url.Parse(s.base())
	if err != nil {
		return nil, err
	}
	cursors, err := s.store.Secret(ctx, "card_cursor_key", rand.Text()) // shared by all nodes
	if err != nil {
		return nil, fmt.Errorf("read the key of card cursors: %w", err)
	}
	a2a.Mount(router, a2a.Options{
		Tasks: s.tasks.Tasks, Workers: s.tasks.Workers, Agents: s.agents, Directory: s.directory, Tracer: s.tracer,
		OnCache: caches.add, Version: Version(), PublicURL: base, OAuth: s.oauthURLs(),
		CardAgents: s.cfg.MaxCardAgents, CardBindings: s.cfg.CardBindings, CursorKey: []byte(cursors),
		CardKey: cardKey, KeysURL: s.base() + keysPath, Platform: s.platform, Via: s.relays.Via,
	})
	mcp.Mount(router, mcp.Options{
		Proposals: proposals, Frictions: frictions, Agents: s.agents, Catalogue: s.catalogue,
		Tasks: s.tasks.Tasks, Workers: s.tasks.Workers, Events: s.events, Version: Version(), PublicURL: s.publicURL(),
		ResourceMetadata: s.base() + authserver.ResourceMetadata + mcp.Path, Tracer: s.tracer,
	})
	return router, s.mountPages(router, web.Options{
		Accounts: s.accounts, OrgAdmin: admin, Proposals: proposals, Followups: followups, Frictions: frictions,
		Agents: s.agents, Catalogue: s.catalogue, Relays: s.relayAdmin, Tasks: s.tasks.Tasks, Workers: s.tasks.Workers,
		Events: s.events, Webhooks: s.webhooks,
		Sessions: s.store.Sessions(), Programs: s.oauth, Providers: s.providers(), PublicURL: s.base(),
		Logger: s.log, Now: Now,
	})
}

// cardKey returns the key that signs cards. All nodes share it; the first one makes it.
func (s *Server) cardKey(ctx context.Context) (*a2a.CardKey, error) {
	fresh, err := a2a.NewCardKey()
	if err != nil {
		return nil, fmt.Errorf("make a key for cards: %w", err)
	}
	text, err := s.store.Secret(ctx, "card_signing_key", fresh)
	if err != nil {
		return nil, fmt.Errorf("read the key for cards: %w", err)
	}
	return a2a.ParseCardKey(text)
}

// hsts reports whether browsers use HTTPS only: the server itself or a proxy under the public
// URL terminates TLS.
func (s *Server) hsts() bool { return s.cfg.TLS() || strings.HasPrefix(s.cfg.PublicURL, "https://") }

// publicURL returns the configured public URL, or nil.
func (s *Server) publicURL() *url.URL {
	u, err := url.Parse(strings.TrimRight(s.cfg.PublicURL, "/"))
	if err != nil || u.Host == "" {
		return nil
	}
	return u
}

// memory returns the pool that bounds the memory of requests and responses.
func (s *Server) memory(reg prometheus.Registerer) *budget.Pool {
	pool := budget.NewPool(budget.Limits{
		Memory: int64(s.cfg.RequestMemory) << 20, Response: budget.DefaultLimits.Response,
	})
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "parley_request_memory_bytes", Help: "Memory taken by large requests and responses.",
	}, func() float64 { return float64(pool.Used()) }))
	return pool
}
