// Package outbound makes requests to addresses that strangers name.
//
// This is where the server could be made to call what only it can reach. Therefore
// only https is used, no redirect is followed, no proxy is asked, and the address is
// checked when the connection is made, after the name was looked up. An operator's
// list says what is let through all the same.
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

// Options say where a Guard lets requests go.
type Options struct {
	Allow []string // host, host:port, IP or CIDR that is used although it is not public, also over http
	Flag  string   // the operator's setting that Allow came from, for refusals

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

// Refused says why a connection was not made. It does not repeat the address.
type Refused struct{ why string }

func (r *Refused) Error() string { return r.why }

// maxHeader bounds the header of an answer, in bytes.
const maxHeader = 64 << 10

// Client returns a client that connects where the guard lets it, for requests that
// may take so long all in all.
func (g *Guard) Client(timeout time.Duration) *http.Client {
	open := &net.Dialer{Resolver: g.o.Resolver}
	guarded := &net.Dialer{Resolver: g.o.Resolver, Control: g.control}
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			Proxy: nil, // a proxy would connect for us, unchecked
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if host, port, err := net.SplitHostPort(addr); err == nil && g.allow.hasName(host, port) {
					return open.DialContext(ctx, network, addr)
				}
				return guarded.DialContext(ctx, network, addr)
			},
			TLSClientConfig:        g.o.TLS,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
			MaxIdleConns:           64,
			MaxIdleConnsPerHost:    4,
			MaxConnsPerHost:        16,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// remedy is how a refusal goes on.
func (g *Guard) remedy() string {
	if g.o.Flag == "" {
		return ""
	}
	return "; an operator can allow it with " + g.o.Flag
}

// Check refuses an address that cannot be right, before anybody connects to it. The
// words follow the name of the field.
func (g *Guard) Check(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return errors.New("must be an absolute address")
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
		return errors.New("must not be this machine" + g.remedy())
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

// control is called with the address that a name led to, right before the
// connection is made: what the name says later, or said before, does not matter.
func (g *Guard) control(network, address string, c syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().Zone() == "" && g.allow.hasAddr(at.Addr(), strconv.Itoa(int(at.Port()))) {
		return nil
	}
	if g.ssrf.Safe(network, address, c) != nil {
		return &Refused{"its name leads to no public address" + g.remedy()}
	}
	return nil
}
