// Package outbound sends HTTP requests to URLs that users configure.
//
// Without care, such a URL makes the server call hosts that only it can reach (SSRF). Therefore
// only https is used, redirects are not followed, no proxy is used, and the IP address is checked
// when the connection is made, after the name was resolved. The operator can allow exceptions.
package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// Options configure a Guard.
type Options struct {
	Allow []string // host, host:port, IP or CIDR that is allowed although it is not public, also over http
	Flag  string   // the operator's flag that sets Allow, for error messages

	// NoSharing keeps requests to one host from waiting for each other: there is no limit of
	// connections, and no HTTP/2, whose requests share one. The caller limits the number of requests.
	NoSharing bool

	Resolver *net.Resolver // nil: the system's
	TLS      *tls.Config   // nil: the system's roots
}

// Guard decides where a connection may go.
type Guard struct {
	o     Options
	allow allowList
	ssrf  *ssrf.Guardian
}

// New makes a Guard.
func New(o Options) (*Guard, error) {
	allow, err := parseAllow(o.Allow)
	if err != nil {
		return nil, err
	}
	return &Guard{o: o, allow: allow, ssrf: ssrf.New(ssrf.WithAnyPort())}, nil
}

// Refused is the error of a connection that the guard did not allow. It does not repeat the
// address.
type Refused struct{ why string }

func (r *Refused) Error() string { return r.why }

// maxHeader bounds the header of a response, in bytes.
const maxHeader = 64 << 10

// connectTimeout bounds a connection and its TLS handshake, for requests that have no other limit.
const connectTimeout = 10 * time.Second

// Dial connects to an address if the guard allows it.
func (g *Guard) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Resolver: g.o.Resolver, Control: g.control, Timeout: connectTimeout}
	if host, port, err := net.SplitHostPort(addr); err == nil && g.allow.hasName(host, port) {
		d.Control = nil
	}
	return d.DialContext(ctx, network, addr)
}

// Client returns a client whose connections the guard checks. timeout bounds a whole request; 0
// means no limit.
func (g *Guard) Client(timeout time.Duration) *http.Client {
	t := &http.Transport{
		Proxy:                  nil, // a proxy would connect for us, unchecked
		DialContext:            g.Dial,
		TLSHandshakeTimeout:    connectTimeout,
		TLSClientConfig:        g.o.TLS,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    4,
		MaxConnsPerHost:        16,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}
	if g.o.NoSharing {
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true)
		t.MaxIdleConnsPerHost, t.MaxConnsPerHost = 16, 0
	}
	return &http.Client{
		Timeout:       timeout,
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// remedy ends an error message with what an operator can do.
func (g *Guard) remedy() string {
	if g.o.Flag == "" {
		return ""
	}
	return "; an operator can allow it with " + g.o.Flag
}

// Check rejects a URL that can be rejected without a connection. The error is a predicate that
// follows the name of the field.
func (g *Guard) Check(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return errors.New("must be an absolute URL")
	}
	host, port := u.Hostname(), portOf(u)
	if g.allow.hasName(host, port) {
		return nil
	}
	ip, err := netip.ParseAddr(host)
	literal := err == nil
	switch {
	case literal && ip.Zone() == "" && g.allow.hasAddr(ip, port):
		return nil
	case u.Scheme != "https":
		return errors.New("must start with https://" + g.remedy())
	case literal && (ip.Zone() != "" || g.ssrf.SafeAddr(ip) != nil):
		return errors.New("must not be an address of a private or special network" + g.remedy())
	case isLocalhost(host):
		return errors.New("must not point to this machine" + g.remedy())
	}
	return nil
}

func isLocalhost(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

// control checks the resolved address right before the connection is made, so that a name that
// resolves differently before or after does not matter (DNS rebinding).
func (g *Guard) control(network, address string, c syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().Zone() == "" &&
		g.allow.hasAddr(at.Addr(), strconv.Itoa(int(at.Port()))) {
		return nil
	}
	if g.ssrf.Safe(network, address, c) != nil {
		return &Refused{"its host name does not resolve to a public address" + g.remedy()}
	}
	return nil
}
