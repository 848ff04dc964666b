package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

// allowList is what the operator lets through beside the public internet.
type allowList []allowed

// allowed is one entry: a name, or addresses; an empty port means any.
type allowed struct {
	name   string
	prefix netip.Prefix
	port   string
}

var hostname = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// CheckAllow refuses a list that New would refuse.
func CheckAllow(list []string) error {
	_, err := parseAllow(list)
	return err
}

func parseAllow(list []string) (allowList, error) {
	var out allowList
	for _, s := range list {
		a, ok := parseAllowed(strings.ToLower(strings.TrimSpace(s)))
		if !ok {
			return nil, fmt.Errorf("%q is neither a host, host:port, an IP address nor a network such as 10.0.0.0/8", s)
		}
		out = append(out, a)
	}
	return out, nil
}

func parseAllowed(s string) (allowed, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return allowed{prefix: p.Masked()}, true
	}
	host, port := s, ""
	if _, err := netip.ParseAddr(s); err != nil {
		if h, p, err := net.SplitHostPort(s); err == nil {
			n, err := strconv.Atoi(p)
			if err != nil || n < 1 || n > 65535 {
				return allowed{}, false
			}
			host, port = h, strconv.Itoa(n)
		}
	}
	if a, err := netip.ParseAddr(host); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return allowed{prefix: netip.PrefixFrom(a, a.BitLen()), port: port}, true
	}
	host = strings.TrimSuffix(host, ".")
	return allowed{name: host, port: port}, hostname.MatchString(host)
}

func (l allowList) hasName(host, port string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, a := range l {
		if a.name != "" && a.name == host && (a.port == "" || a.port == port) {
			return true
		}
	}
	return false
}

func (l allowList) hasAddr(ip netip.Addr, port string) bool {
	ip = ip.Unmap()
	for _, a := range l {
		if a.name == "" && a.prefix.Contains(ip) && (a.port == "" || a.port == port) {
			return true
		}
	}
	return false
}

// guard decides where a connection may go.
type guard struct {
	allow allowList
	ssrf  *ssrf.Guardian
}

func newGuard(list []string) (*guard, error) {
	allow, err := parseAllow(list)
	if err != nil {
		return nil, err
	}
	return &guard{allow: allow, ssrf: ssrf.New(ssrf.WithAnyPort())}, nil
}

// How a refusal goes on.
const remedy = "; an operator can allow it with --push-allow"

// check refuses an address that cannot be right, before anybody connects to it. The
// words follow the name of the field.
func (g *guard) check(raw string) error {
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
		return errors.New("must start with https://" + remedy)
	case literal && (ip.Zone() != "" || g.ssrf.SafeAddr(ip) != nil):
		return errors.New("must not be an address of a private or special network" + remedy)
	case isLocalhost(host):
		return errors.New("must not be this machine" + remedy)
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
func (g *guard) control(network, address string, c syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().Zone() == "" && g.allow.hasAddr(at.Addr(), strconv.Itoa(int(at.Port()))) {
		return nil
	}
	if g.ssrf.Safe(network, address, c) != nil {
		return &failure{why: "its name leads to an address of a private or special network" + remedy, permanent: true}
	}
	return nil
}
