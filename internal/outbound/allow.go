package outbound

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// allowList is what the operator allows in addition to public addresses.
type allowList []allowed

// allowed is one entry: a host name or a network. An empty port means any.
type allowed struct {
	name   string
	prefix netip.Prefix
	port   string
}

var hostname = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// CheckAllow returns the error that New would return for the list.
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
