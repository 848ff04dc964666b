package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/internal/errs"
)

// certificates gets the certificates of --acme and renews them. They are kept in the store, so that
// a restart needs no new ones, and all nodes share them and their challenges.
type certificates struct {
	manager *autocert.Manager
	domains []string
	log     *slog.Logger
	states  map[string]*certState // by domain
}

// certState is what became of the certificate of a domain. Only run orders one for the first time: if
// every handshake did, clients would use up the limits of the certificate authority.
type certState struct {
	tried chan struct{} // closed after the first attempt
	once  sync.Once
	have  atomic.Bool
}

func (s *certState) set(have bool) {
	s.have.Store(s.have.Load() || have)
	s.once.Do(func() { close(s.tried) })
}

// newACME prepares the certificates of --acme. The store is opened later, before the first use.
func (s *Server) newACME() (*tls.Config, error) {
	client, err := acmeClient(s.cfg)
	if err != nil {
		return nil, err
	}
	domains := slices.Clone(s.cfg.ACMEDomains)
	for i, d := range domains {
		domains[i] = strings.ToLower(d)
	}
	s.certs = &certificates{domains: domains, log: s.log, states: map[string]*certState{}}
	for _, d := range domains {
		s.certs.states[d] = &certState{tried: make(chan struct{})}
	}
	s.certs.manager = &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: certCache{s}, Client: client, Email: s.cfg.ACMEEmail,
		HostPolicy: s.certs.allow,
	}
	return &tls.Config{
		GetCertificate: s.certs.forClient, GetConfigForClient: noteHello, MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1", acme.ALPNProto}, // the last one is for challenges
	}, nil
}

// domain returns the domain of --acme that a Host header or a server name is, or "".
func (c *certificates) domain(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !slices.Contains(c.domains, host) {
		return ""
	}
	return host
}

// allow is the policy of the manager: nothing is ordered or answered for other hosts. Challenges over HTTP
// come with the port, unless it is 80.
func (c *certificates) allow(_ context.Context, host string) error {
	if c.domain(host) == "" {
		return fmt.Errorf("the host %q is not one of --acme", host)
	}
	return nil
}

// forClient returns the certificate for a handshake. A client that names no host gets that of the first
// domain: so health checks by IP address work.
func (c *certificates) forClient(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if hello.ServerName == "" {
		named := *hello
		named.ServerName = c.domains[0]
		hello = &named
	}
	state := c.states[c.domain(hello.ServerName)]
	if state == nil || slices.Contains(hello.SupportedProtos, acme.ALPNProto) { // refused, or a challenge
		return c.manager.GetCertificate(hello)
	}
	select {
	case <-state.tried:
	case <-hello.Context().Done():
		return nil, hello.Context().Err()
	}
	if !state.have.Load() {
		return nil, fmt.Errorf("there is no certificate for %s yet; the log says why", hello.ServerName)
	}
	return c.manager.GetCertificate(hello)
}

// acmeTimeout bounds one request to the certificate authority.
const acmeTimeout = 30 * time.Second

func acmeClient(cfg config.Config) (*acme.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone() // it uses the proxy of the environment
	if cfg.ACMECA != "" {
		pem, err := os.ReadFile(cfg.ACMECA)
		if err != nil {
			return nil, fmt.Errorf("cannot use --acme-ca: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cannot use --acme-ca: %s has no certificate in PEM form", cfg.ACMECA)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &acme.Client{
		DirectoryURL: cfg.ACMEDirectory, UserAgent: "parley/" + Version(),
		HTTPClient: &http.Client{Transport: transport, Timeout: acmeTimeout},
	}, nil
}

// certCache keeps accounts, certificates and challenges among the secrets of the store.
type certCache struct{ server *Server }

// certPrefix starts the names of these secrets.
const certPrefix = "acme:"

// Get implements autocert.Cache.
func (c certCache) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := c.server.store.KeptSecret(ctx, certPrefix+key)
	if errors.Is(err, errs.ErrNotFound) {
		return nil, autocert.ErrCacheMiss
	}
	return []byte(value), err
}

// Put implements autocert.Cache.
func (c certCache) Put(ctx context.Context, key string, data []byte) error {
	return c.server.store.KeepSecret(ctx, certPrefix+key, string(data))
}

// Delete implements autocert.Cache.
func (c certCache) Delete(ctx context.Context, key string) error {
	return c.server.store.ForgetSecret(ctx, certPrefix+key)
}

const (
	certRetry    = 70 * time.Second // after a failure; doubled up to certLook. The manager forgets it after a minute
	certLook     = time.Hour        // how often a certificate is looked at
	minCertRetry = time.Second
)

// run gets the certificate of each domain before the first client needs it, and logs what becomes
// of it. The manager renews it in the background, after two thirds of its lifetime.
func (c *certificates) run(ctx context.Context, domain string) {
	var last *x509.Certificate
	failures := 0
	for {
		leaf, err := c.get(ctx, domain)
		c.states[domain].set(err == nil)
		var wait time.Duration
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			wait = min(certRetry<<min(failures, 10), certLook)
			failures++
			c.log.Error("no certificate; the certificate authority must reach this server under the domain, on port 443, "+
				"or port 80 with --acme-http-listen", "domain", domain, "error", err, "retry_in", wait.String())
		default:
			failures, wait = 0, c.report(domain, last, leaf)
			last = leaf
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// report logs a new certificate, and one that expires although it should have been renewed. It
// returns when to look again.
func (c *certificates) report(domain string, last, leaf *x509.Certificate) time.Duration {
	lifetime, left := leaf.NotAfter.Sub(leaf.NotBefore), time.Until(leaf.NotAfter)
	switch {
	case last == nil || !last.Equal(leaf):
		c.log.Info("using a certificate", "domain", domain, "issuer", leaf.Issuer.CommonName,
			"serial", leaf.SerialNumber.Text(16), "expires", leaf.NotAfter.Format(time.RFC3339))
	case left < lifetime/6:
		c.log.Warn("the certificate expires soon and could not be renewed; is the certificate authority reachable, and "+
			"this server from there?", "domain", domain, "expires", leaf.NotAfter.Format(time.RFC3339))
	}
	return max(min(lifetime/10, certLook), minCertRetry)
}

// get returns the certificate for a domain, and orders it if there is none. An order cannot be
// interrupted, so get returns without it when ctx ends.
func (c *certificates) get(ctx context.Context, domain string) (*x509.Certificate, error) {
	type result struct {
		leaf *x509.Certificate
		err  error
	}
	done := make(chan result, 1)
	go func() {
		// The manager takes a client without elliptic curves for an old one that needs RSA.
		cert, err := c.manager.GetCertificate(&tls.ClientHelloInfo{
			ServerName: domain, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		})
		if err != nil {
			done <- result{err: err}
			return
		}
		leaf := cert.Leaf
		if leaf == nil {
			leaf, err = x509.ParseCertificate(cert.Certificate[0])
		}
		done <- result{leaf, err}
	}()
	select {
	case r := <-done:
		return r.leaf, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// acmeConns bounds the connections to the plain HTTP address: an eighth of those of the server.
const acmeConns = 8

// openACMEHTTP listens for http-01 challenges and for requests to redirect.
func (s *Server) openACMEHTTP(ctx context.Context) error {
	d, err := s.openSide(ctx, s.cfg.ACMEHTTPAddress(), "--acme-http-listen", "redirects to HTTPS", "/")
	if err != nil || d == nil {
		return err
	}
	g := newGuard(d.listener, maxConns(s.files)/acmeConns, s.log)
	d.listener = g
	d.http.Handler = g.watch(s.certs.manager.HTTPHandler(http.HandlerFunc(s.redirectToHTTPS)))
	d.http.ConnContext = withConn
	d.http.ReadTimeout, d.http.WriteTimeout, d.http.IdleTimeout = readHeaderTimeout, readHeaderTimeout, readHeaderTimeout
	return nil
}

// redirectToHTTPS redirects reads. Other requests are refused: they may have sent a key without
// encryption, and the sender should notice.
func (s *Server) redirectToHTTPS(w http.ResponseWriter, r *http.Request) {
	host, path := s.certs.domain(r.Host), r.URL.RequestURI()
	switch {
	case host == "" || !strings.HasPrefix(path, "/"):
		http.Error(w, "This server does not serve this host.", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "Use https. If the request contained a key, revoke it: it was not encrypted.", http.StatusBadRequest)
	default:
		http.Redirect(w, r, "https://"+s.httpsHost(host)+path, http.StatusPermanentRedirect)
	}
}

// httpsHost adds the port by which browsers reach a domain, if it is not 443.
func (s *Server) httpsHost(domain string) string {
	if u, err := url.Parse(s.cfg.PublicURL); err == nil && strings.EqualFold(u.Hostname(), domain) {
		return strings.ToLower(u.Host)
	}
	if addr, ok := s.listener.Addr().(*net.TCPAddr); ok && addr.Port != 443 {
		return net.JoinHostPort(domain, strconv.Itoa(addr.Port))
	}
	return domain
}
