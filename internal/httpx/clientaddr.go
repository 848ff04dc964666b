package httpx

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
)

// ParsePrefixes parses a list of networks such as 10.0.0.0/8, or single IP addresses.
func ParsePrefixes(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range list {
		s = strings.TrimSpace(s)
		if s == "" {
			continue
		}
		if addr, err := netip.ParseAddr(s); err == nil {
			addr = addr.Unmap()
			out = append(out, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, errs.New(errs.Invalid, "config.bad_prefix",
				"%q is neither a network such as 10.0.0.0/8 nor an IP address", s)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// clientAddr returns the most distant address that can be trusted: the peer's, or, while the hop is
// a trusted proxy, the one that the hop reports. X-Forwarded-For is read from the right, because
// everything left of the first untrusted hop may be forged.
func clientAddr(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := peer.Addr().Unmap().WithZone("")
	if len(trusted) == 0 {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for i := len(hops) - 1; i >= 0 && contains(trusted, addr); i-- {
		next, ok := parseHop(strings.TrimSpace(hops[i]))
		if !ok {
			break
		}
		addr = next
	}
	return addr
}

// parseHop also accepts an address with a port, which some proxies write.
func parseHop(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		ap, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = ap.Addr()
	}
	return addr.Unmap().WithZone(""), true
}

func contains(list []netip.Prefix, addr netip.Addr) bool {
	for _, p := range list {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// LimitKey returns what limits per client count: for IPv6 the /64 network, since its owner could
// use a new address for every try.
func LimitKey(addr netip.Addr) netip.Addr {
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}

// ClientAddr returns the address of the client, as far as the trusted proxies report it; for IPv6
// the network that limits count.
func (rt *Router) ClientAddr(r *http.Request) netip.Addr { return LimitKey(clientAddr(r, rt.trusted)) }
