package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/relay"
	"github.com/parley-dev/parley/internal/rest"
	"github.com/parley-dev/parley/internal/secret"
	"github.com/parley-dev/parley/internal/sso"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/telemetry"
	"github.com/parley-dev/parley/internal/trace"
	"github.com/parley-dev/parley/internal/web"
	"github.com/parley-dev/parley/internal/webhook"
)

// Limits against clients that hold a connection without using it.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10

	// HTTP/2: streams per connection, and when a silent connection is pinged.
	maxStreams  = 250
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
	// The buffer of a frame is allocated by its declared size, before its first byte is read.
	maxFrameSize = 16 << 10
)

// Server is one Parley server.
type Server struct {
	cfg config.Config
	log *slog.Logger
	now func() time.Time // clock of OAuth grants

	cost       web.Cost // of hashing a password
	files      int      // limit of open files; 0: unknown
	listener   *guard
	probe      *probe
	node       string // name of this process
	unlock     func() // unlocks the data folder
	store      *store.Store
	keys       *secret.Keyring // encrypts secrets in the store; nil: there is no key file
	auth       *identity.Authenticator
	agents     *agent.Registry
	directory  *agent.Directory
	catalogue  *agent.Catalogue
	tasks      *dispatch.Service
	platform   string // id of the platform, for relays
	relays     *relay.Engine
	relayAdmin *relay.Service
	pusher     *delivery.Client // nil: push notifications are off
	pushes     *pushMetrics
	deliveries *delivery.Service
	bus        *store.Bus // nil: there is no other node
	events     *event.Service
	webhooks   *webhook.Service
	hooks      *webhookMetrics
	hookSender *delivery.Client
	traces     *telemetry.Traces // nil: no spans are exported
	tracer     *trace.Tracer     // of traces
	router     *httpx.Router
	http       *http.Server

	queue       taskMetrics
	sides       []*side
	metricsSide *side // nil: /metrics is on the main listener

	first    *identity.First
	stage    *stage // nil: this is no demo
	link     string // URL to set the first password; empty: none
	accounts *account.Accounts
	oauth    *oauth.Service
	issuers  []*sso.Provider // external identity providers
	external *sso.Verifier   // verifies their access tokens; nil: none are accepted

	certs *certificates // nil: no --acme

	stopping   atomic.Bool
	failed     chan error // the error that ended serving unexpectedly
	endWork    context.CancelFunc
	background sync.WaitGroup
}

// New listens on the configured address, locks the data folder, opens the store and wires
// everything together. It listens first: a server that cannot listen must not touch the data.
func New(ctx context.Context, cfg config.Config, log *slog.Logger) (*Server, error) {
	return newServer(ctx, cfg, log, settings{now: Now, cost: web.StandardCost})
}

// settings are what only tests and the demo change.
type settings struct {
	now  func() time.Time // clock of OAuth grants
	cost web.Cost         // of hashing a password
	demo *stage           // nil: none
}

func newServer(ctx context.Context, cfg config.Config, log *slog.Logger, t settings) (_ *Server, err error) {
	s := &Server{
		cfg: cfg, log: log, now: t.now, cost: t.cost, files: maxFiles(), unlock: func() {}, failed: make(chan error, 4),
		stage: t.demo,
	}
	defer func() {
		if err != nil {
			_ = s.release() // the first error is returned
		}
	}()
	// Validate the configuration before opening the store.
	tlsConfig, err := s.newTLS(Now)
	if err != nil {
		return nil, err
	}
	proxies, err := httpx.ParsePrefixes(cfg.TrustedProxies)
	if err != nil {
		return nil, fmt.Errorf("--trusted-proxies: %w", err)
	}
	if err := checkOutbound(&cfg); err != nil {
		return nil, err
	}
	if err := s.loadIssuers(); err != nil {
		return nil, err
	}
	l, err := listen(ctx, cfg.Listen, "--listen")
	if err != nil {
		return nil, err
	}
	s.listener = newGuard(l, maxConns(s.files), log)
	if s.metricsSide, err = s.openSide(ctx, cfg.MetricsListen, "--metrics-listen", "metrics", "/metrics"); err != nil {
		return nil, err
	}
	if err := s.openACMEHTTP(ctx); err != nil {
		return nil, err
	}
	debug, err := s.openSide(ctx, cfg.DebugListen, "--debug-listen", "profiles", "/debug/pprof/")
	if err != nil {
		return nil, err
	}
	if debug != nil {
		mountDebug(debug)
	}
	ids := newIDs(Now)
	s.node = nodeName(ids)
	if err := s.startTraces(ctx); err != nil {
		return nil, err
	}
	log = s.log
	if cfg.Database == "" {
		if s.unlock, err = store.LockDir(cfg.Data, holder()); err != nil {
			s.unlock = func() {}
			return nil, err
		}
	}
	if s.keys, err = openKeys(cfg.Store); err != nil {
		return nil, err
	}
	o := serverOptions(cfg, log)
	o.Node, o.Locked, o.Tracer, o.Keys = s.node, true, s.tracer, s.keys
	if s.store, err = openStore(ctx, cfg.Store, o); err != nil {
		return nil, err
	}
	if cfg.Database == "" {
		for _, warning := range store.Exposed(cfg.Data) {
			log.Warn(warning)
		}
	}
	if err := s.readyKeys(ctx); err != nil {
		return nil, err
	}
	s.probe = newProbe(s.store.Ping)
	s.auth = identity.NewAuthenticator(s.store.Identity(), Now)
	if err := s.newPusher(ctx); err != nil {
		return nil, err
	}
	s.newDeliveries()
	if s.platform, err = s.platformID(ctx, ids); err != nil {
		return nil, err
	}
	s.newTasks(ids)
	if err := s.newRelays(); err != nil {
		return nil, err
	}
	if err := s.newWebhooks(ids); err != nil {
		return nil, err
	}
	s.newEvents()
	s.newLogin(ids)
	// Revocations by this node take effect here at once. Other nodes poll the epoch.
	s.store.OnRevoke(func(org string) {
		s.auth.Revoked(org)
		s.directory.Forget()
	})
	handler, err := s.handler(ctx, ids, proxies)
	if err != nil {
		return nil, err
	}
	s.http = &http.Server{
		Handler:           s.listener.watch(handler),
		ConnContext:       withConn,
		TLSConfig:         tlsConfig,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		Protocols:         protocols(),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams,
			MaxReadFrameSize:     maxFrameSize,
			SendPingTimeout:      pingAfter,
			PingTimeout:          pingTimeout,
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	// Bootstrap last: the first key is shown once, and would be lost if New failed after it.
	if err = s.bootstrap(ctx, ids); err != nil {
		return nil, fmt.Errorf("prepare the empty store: %w", err)
	}
	if err := s.newFirstLink(ctx); err != nil {
		s.log.Error("cannot make a link for the first login; make one with: parley admin link", "error", err)
	}
	if err := s.warnOfUnknownOrgs(ctx); err != nil {
		s.log.Error("cannot check whether the orgs of --issuers exist", "error", err)
	}
	if err := s.hostEcho(ctx); err != nil {
		s.log.Error("the built-in agent does not run", "error", err)
	}
	return s, nil
}

// protocols returns HTTP/1.1 and HTTP/2. HTTP/2 also works without TLS, because gRPC shares the
// port.
func protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// A client that disappears without closing its connection is detected within a minute: on an
// idle connection by the keep-alive probes of the kernel, after 45 s; on a stream, which sends
// every 15 s, by the limit of unacknowledged data, after at most 15 + 35 s.
const (
	probeAfter     = 15 * time.Second
	probeEvery     = 10 * time.Second
	probes         = 3
	unacknowledged = 35 * time.Second
)

func listen(ctx context.Context, addr, flag string) (net.Listener, error) {
	config := net.ListenConfig{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeAfter, Interval: probeEvery, Count: probes},
		Control:         limitUnacknowledged(unacknowledged),
	}
	l, err := config.Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf(
			"the address %s is already in use; stop the program that uses it, or choose another with %s", addr, flag)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	return l, nil
}

// serverOptions returns the store options of a server.
func serverOptions(cfg config.Config, log *slog.Logger) store.Options {
	o := store.Options{SearchTimeout: cfg.SearchTimeout, KeepOutcomes: cfg.IdempotencyRetention, Log: log}
	if cfg.Database != "" {
		o.ReadConns = cfg.DatabaseConnections
		o.StatementTimeout, o.LockTimeout = cfg.DatabaseStatementTimeout, cfg.DatabaseLockTimeout
		o.AcquireTimeout = cfg.DatabaseAcquireTimeout
		o.ReplicaURL = cfg.DatabaseReplica
	}
	return o
}

// openStore opens the store that cfg names. o holds the other options.
func openStore(ctx context.Context, cfg config.Store, o store.Options) (*store.Store, error) {
	return store.Open(ctx, storeOptions(cfg, o))
}

func storeOptions(cfg config.Store, o store.Options) store.Options {
	if o.URL = cfg.Database; o.URL == "" {
		o.Dir = cfg.Data
	}
	o.Version, o.Records, o.SessionOf = Version(), rest.Records{}, web.SessionNames
	o.Settle = eraseSettle
	return o
}

// Start serves until Shutdown.
func (s *Server) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.endWork = cancel
	s.probe.once(ctx) // the first health check needs a result
	s.background.Go(func() { s.probe.run(ctx) })
	if s.pushes != nil {
		s.background.Go(func() { s.pushes.run(ctx) })
	}
	s.background.Go(func() { sample(ctx, s.log, "waiting tasks", queueLook, s.countTasks) })
	s.background.Go(func() { trimStacks(ctx) })
	s.background.Go(func() { s.watchSchema(ctx) })
	s.background.Go(func() { s.watchKeys(ctx) })
	s.background.Go(func() { s.keepSecrets(ctx) })
	s.background.Go(func() { s.sweep(ctx) })
	s.background.Go(func() { s.indexAgents(ctx) })
	s.background.Go(func() { s.tasks.Run(ctx) })
	s.background.Go(func() { s.relays.Run(ctx) })
	s.background.Go(func() { s.deliveries.Run(ctx) })
	s.background.Go(func() { s.webhooks.Run(ctx) })
	s.background.Go(func() { s.events.Run(ctx, s.cfg.EventRetention) })
	if s.bus != nil {
		s.background.Go(func() { s.listen(ctx) })
	}
	if s.stage != nil {
		s.background.Go(func() { s.stage.company.Run(ctx) })
	}
	for _, d := range s.sides {
		s.background.Go(func() { s.serveSide(d) })
	}
	if s.certs != nil {
		for _, domain := range s.certs.domains {
			s.background.Go(func() { s.certs.run(ctx, domain) })
		}
	}
	s.background.Go(func() {
		var err error
		if s.cfg.TLS() {
			err = s.http.ServeTLS(s.listener, "", "")
		} else {
			err = s.http.Serve(s.listener)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("the server stopped serving: %w", err)
		}
	})
}

// Shutdown stops the server. First /readyz fails, then no connection is accepted, then
// running requests get the configured time to finish. The store is closed last. An error means
// that requests were cut off.
func (s *Server) Shutdown() error {
	s.stopping.Store(true)
	time.Sleep(s.cfg.StopDelay())
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.ShutdownTimeout)
	defer cancel()
	s.tasks.Stop() // ends long polls and streams
	s.webhooks.Stop()
	err := s.http.Shutdown(ctx)
	if serr := s.router.CloseStreams(ctx); err == nil {
		err = serr
	}
	if err != nil {
		cut := fmt.Errorf("requests were still running after %s and were cut off", s.cfg.ShutdownTimeout)
		err = errors.Join(cut, s.http.Close())
	}
	s.endWork()
	for _, d := range s.sides {
		d.close()
	}
	s.background.Wait() // also waits for deliveries in flight, at most delivery.StopGrace
	if s.pusher != nil {
		s.pusher.Close()
	}
	s.hookSender.Close()
	flushCtx, cancelFlush := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancelFlush()
	if ferr := s.auth.Flush(flushCtx); ferr != nil {
		s.log.Warn("could not record when keys were last used", "error", ferr)
	}
	return errors.Join(err, s.release())
}

// release frees the resources that New acquired.
func (s *Server) release() error {
	var err error
	if s.listener != nil {
		_ = s.listener.Close() // already closed if the server was started
	}
	for _, d := range s.sides {
		d.close()
	}
	if s.store != nil {
		err = s.store.Close()
	}
	s.stopTraces()
	s.unlock()
	return err
}

// ready returns nil if the server is ready, for /readyz.
func (s *Server) ready(context.Context) error {
	if s.stopping.Load() {
		return errs.New(errs.Unavailable, "server.stopping", "the server is stopping")
	}
	if err := s.store.Moved(); err != nil {
		return err
	}
	return s.probe.state()
}

// First returns what New created because the store was empty, or nil.
func (s *Server) First() *identity.First { return s.first }

// URL returns the URL of the server for programs on the same machine.
func (s *Server) URL() string {
	scheme := "http"
	if s.cfg.TLS() {
		scheme = "https"
	}
	addr, ok := s.listener.Addr().(*net.TCPAddr)
	if !ok {
		return scheme + "://" + s.listener.Addr().String()
	}
	host := addr.IP.String()
	if addr.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return fmt.Sprintf("%s://%s", scheme, net.JoinHostPort(host, fmt.Sprint(addr.Port)))
}
