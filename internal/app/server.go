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
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/outbound"
	"github.com/parley-dev/parley/internal/sso"
	"github.com/parley-dev/parley/internal/store"
)

// Limits against clients that hold a connection without using it.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10

	// Of HTTP/2: streams of one connection, and when a silent one is asked whether it
	// is still there.
	maxStreams  = 250
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
	// A frame's buffer is allocated by its declared size, before a byte of it has come.
	maxFrameSize = 16 << 10
)

// Server is one Parley server.
type Server struct {
	cfg config.Config
	log *slog.Logger
	now func() time.Time // of what programs are allowed; tests move it

	files    int // that the process may open; 0: no limit is known
	listener *guard
	probe    *probe
	node     string // names this process
	unlock   func() // of the data folder
	store    *store.Store
	auth     *identity.Authenticator
	agents   *agent.Registry
	tasks    *dispatch.Service
	pusher   *delivery.Client // nil: nothing is pushed
	pushes   *pushMetrics
	bus      *store.Bus // nil: no other node
	http     *http.Server

	metricsListener net.Listener // nil: /metrics is where everything is
	metricsHTTP     *http.Server

	first    *identity.First
	link     string // to set the first password with; empty: there is none
	accounts *account.Accounts
	oauth    *oauth.Service
	issuers  []*sso.Provider // other identity providers
	external *sso.Verifier   // of their access tokens; nil: none are taken

	stopping   atomic.Bool
	failed     chan error // the error that ended serving, if it was not asked for
	endWork    context.CancelFunc
	background sync.WaitGroup
}

// New takes the address and the data folder, opens the store and wires everything
// to it. The address comes first: a server that cannot have it must not touch the
// data.
func New(ctx context.Context, cfg config.Config, log *slog.Logger) (*Server, error) {
	return newServer(ctx, cfg, log, Now)
}

func newServer(ctx context.Context, cfg config.Config, log *slog.Logger, now func() time.Time) (_ *Server, err error) {
	s := &Server{cfg: cfg, log: log, now: now, files: maxFiles(), unlock: func() {}, failed: make(chan error, 2)}
	defer func() {
		if err != nil {
			_ = s.release() // the first error is the one that counts
		}
	}()
	// Whatever can be refused is refused before the store is touched.
	tlsConfig, err := newTLS(cfg, log, Now)
	if err != nil {
		return nil, err
	}
	proxies, err := httpx.ParsePrefixes(cfg.TrustedProxies)
	if err != nil {
		return nil, fmt.Errorf("--trusted-proxies: %w", err)
	}
	if err := outbound.CheckAllow(cfg.PushAllow); err != nil {
		return nil, fmt.Errorf("--push-allow: %w", err)
	}
	if err := outbound.CheckAllow(cfg.ClientDocumentsAllow); err != nil {
		return nil, fmt.Errorf("--client-documents-allow: %w", err)
	}
	if err := s.loadIssuers(); err != nil {
		return nil, err
	}
	l, err := listen(ctx, cfg.Listen, "--listen")
	if err != nil {
		return nil, err
	}
	s.listener = newGuard(l, maxConns(s.files), log)
	if cfg.MetricsListen != "" {
		if s.metricsListener, err = listen(ctx, cfg.MetricsListen, "--metrics-listen"); err != nil {
			return nil, err
		}
	}
	ids := newIDs(Now)
	s.node = nodeName(ids)
	if cfg.Database == "" {
		if s.unlock, err = store.LockDir(cfg.Data, holder()); err != nil {
			s.unlock = func() {}
			return nil, err
		}
	}
	o := serverOptions(cfg, log)
	o.Node, o.Locked = s.node, true
	if s.store, err = openStore(ctx, cfg.Store, o); err != nil {
		return nil, err
	}
	if cfg.Database == "" {
		for _, warning := range store.Exposed(cfg.Data) {
			log.Warn(warning)
		}
	}
	s.probe = newProbe(s.store.Ping)
	s.auth = identity.NewAuthenticator(s.store.Identity(), Now)
	if err := s.newPusher(ctx); err != nil {
		return nil, err
	}
	s.newTasks(ids)
	s.newLogin(ids)
	// What this node revokes it refuses at once; other nodes follow the epoch.
	s.store.OnRevoke(func(org string) {
		s.auth.Revoked(org)
		s.agents.Forget()
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
			MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxFrameSize, SendPingTimeout: pingAfter, PingTimeout: pingTimeout,
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	// Last of all: the first key is made once, and would be lost if anything failed after it.
	if s.first, err = identity.NewOperator(s.store.Identity(), Now, ids.next).Bootstrap(ctx); err != nil {
		return nil, fmt.Errorf("prepare the empty store: %w", err)
	}
	if err := s.newFirstLink(ctx); err != nil {
		s.log.Error("there is no link for the first login; make one with: parley admin link", "error", err)
	}
	if err := s.warnOfUnknownOrgs(ctx); err != nil {
		s.log.Error("it is unknown whether the orgs of --issuers exist", "error", err)
	}
	if err := s.hostEcho(ctx); err != nil {
		s.log.Error("the built-in agent does not run", "error", err)
	}
	return s, nil
}

// protocols are HTTP/1.1 and HTTP/2, the latter also without TLS: gRPC shares the
// port.
func protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// A client that vanished without closing its connection is noticed within a minute.
// If it owes nothing, by the kernel's probes: after 45 s. If something was sent to
// it, which a stream does every 15 s, by unacknowledged: at most 15 + 35 s.
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
		return nil, fmt.Errorf("the address %s is already in use; stop the program that uses it, or choose another with %s", addr, flag)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	return l, nil
}

// serverOptions are the options of a server's store.
func serverOptions(cfg config.Config, log *slog.Logger) store.Options {
	o := store.Options{SearchTimeout: cfg.SearchTimeout, Log: log}
	if cfg.Database != "" {
		o.ReadConns = cfg.DatabaseConnections
		o.StatementTimeout, o.LockTimeout = cfg.DatabaseStatementTimeout, cfg.DatabaseLockTimeout
		o.AcquireTimeout = cfg.DatabaseAcquireTimeout
	}
	return o
}

// openStore opens the store that cfg names; o holds the other options.
func openStore(ctx context.Context, cfg config.Store, o store.Options) (*store.Store, error) {
	return store.Open(ctx, storeOptions(cfg, o))
}

func storeOptions(cfg config.Store, o store.Options) store.Options {
	if o.URL = cfg.Database; o.URL == "" {
		o.Dir = cfg.Data
	}
	o.Version = Version()
	return o
}

// Start serves until Shutdown.
func (s *Server) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.endWork = cancel
	s.probe.once(ctx) // so that the first health check finds a result
	s.background.Go(func() { s.probe.run(ctx) })
	if s.pushes != nil {
		s.background.Go(func() { s.pushes.run(ctx) })
	}
	s.background.Go(func() { s.watchSchema(ctx) })
	s.background.Go(func() { s.watchKeys(ctx) })
	s.background.Go(func() { s.sweep(ctx) })
	s.background.Go(func() { s.tasks.Run(ctx) })
	if s.bus != nil {
		s.background.Go(func() { s.listen(ctx) })
	}
	if s.metricsHTTP != nil {
		s.background.Go(func() { s.serveMetrics() })
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

// Shutdown ends the server: /readyz fails first, then no connection is accepted
// any more, requests in flight get the time that was configured, and the store is
// closed last. A non-nil error means that requests were cut off.
func (s *Server) Shutdown() error {
	s.stopping.Store(true)
	time.Sleep(s.cfg.StopDelay())
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.ShutdownTimeout)
	defer cancel()
	s.tasks.Stop() // whoever waits for something waits no longer
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests were still running after %s and were cut off", s.cfg.ShutdownTimeout), s.http.Close())
	}
	s.endWork()
	if s.metricsHTTP != nil {
		_ = s.metricsHTTP.Close() // a scrape that is cut off is repeated
	}
	s.background.Wait() // also for pushes on their way, which have a limit of their own
	if s.pusher != nil {
		s.pusher.Close()
	}
	flushCtx, cancelFlush := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancelFlush()
	if ferr := s.auth.Flush(flushCtx); ferr != nil {
		s.log.Warn("could not record when keys were last used", "error", ferr)
	}
	return errors.Join(err, s.release())
}

// release gives back what New took.
func (s *Server) release() error {
	var err error
	if s.listener != nil {
		_ = s.listener.Close() // closed already if it was served
	}
	if s.metricsListener != nil {
		_ = s.metricsListener.Close()
	}
	if s.store != nil {
		err = s.store.Close()
	}
	s.unlock()
	return err
}

// ready is what /readyz asks.
func (s *Server) ready(context.Context) error {
	if s.stopping.Load() {
		return errs.New(errs.Unavailable, "server.stopping", "the server is stopping")
	}
	if err := s.store.Moved(); err != nil {
		return err
	}
	return s.probe.state()
}

// First is what was created because the store was empty; nil if it was not.
func (s *Server) First() *identity.First { return s.first }

// URL is the address of the server as a program on the same machine reaches it.
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
