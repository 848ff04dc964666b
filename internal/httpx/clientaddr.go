package httpx

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
)

// ParsePrefixes reads a list of networks such as 10.0.0.0/8, or single addresses.
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
			return nil, errs.New(errs.Invalid, "config.bad_prefix", "%q is neither a network such as 10.0.0.0/8 nor an address", s)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// clientAddr is the address nearest to the client that can be believed: the
// peer's own, or, as long as the hop is a trusted proxy, what that hop says it
// got the request from. X-Forwarded-For is read from the right, because
// everything left of the first untrusted hop may be made up.
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

// parseHop also reads an address with a port, as some proxies write it.
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

// LimitKey is what a limit per client counts: an IPv6 client owns a whole /64
// and could otherwise take a new address for every try.
func LimitKey(addr netip.Addr) netip.Addr {
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}

// ClientAddr is the address of whoever sent the request, as far as the trusted
// proxies can be believed; of IPv6 the network, as limits count it.
func (rt *Router) ClientAddr(r *http.Request) netip.Addr { return LimitKey(clientAddr(r, rt.trusted)) }
