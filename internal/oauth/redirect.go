package oauth

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
)

// Bounds of what a client may register.
const (
	maxRedirects = 10
	maxURI       = 1000
)

// checkRedirect refuses an address that a code must not be sent to: it has to be
// https, http to this very machine, or a scheme of an app's own.
func checkRedirect(s string) error {
	u, err := url.Parse(s)
	bad := func(why string) error {
		return errs.New(errs.Invalid, "oauth.bad_redirect_uri", "%q cannot be a redirect address: %s", clip(s), why)
	}
	switch {
	case err != nil || u.Scheme == "" || len(s) > maxURI:
		return bad("it must be an absolute address of at most 1000 characters")
	case u.Fragment != "" || strings.Contains(s, "#"):
		return bad("it must have no fragment")
	case u.User != nil:
		return bad("it must have no user")
	}
	for _, r := range s {
		if r <= ' ' || r >= 0x7f {
			return bad("it must consist of plain characters")
		}
	}
	switch u.Scheme {
	case "https":
		if u.Host == "" {
			return bad("it must name a host")
		}
	case "http":
		if !loopback(u.Hostname()) {
			return bad("http is for this machine only (127.0.0.1, [::1], localhost); use https")
		}
	default:
		// A scheme of one's own should be named after a domain (RFC 8252, 7.1). Widely used
		// editors are not that careful, but name a host: cursor://anysphere.cursor-mcp/….
		switch {
		case slices.Contains(NotApps, u.Scheme):
			return bad("the scheme " + u.Scheme + " does not lead to an app")
		case !strings.Contains(u.Scheme, ".") && u.Host == "":
			return bad("a scheme of an app's own must be a domain name written backwards, as com.example.app:/done, or be followed by a host, as app://example/done")
		}
	}
	return nil
}

// NotApps are schemes that browsers keep for themselves, or that other things than an
// app answer to.
var NotApps = []string{
	"about", "blob", "cid", "data", "file", "filesystem", "ftp", "ftps", "intent", "jar", "javascript", "ldap", "ldaps", "mailto", "ms-msdt", "nfs", "search-ms",
	"sftp", "sms", "smb", "ssh", "tel", "telnet", "vbscript", "view-source", "ws", "wss",
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// MatchRedirect reports whether a code may be sent to the address: it must be one of
// the registered ones, letter by letter, but for the port of an address on the
// user's own machine, which the client's system chooses anew each time (RFC 8252, 7.3).
func MatchRedirect(registered []string, asked string) bool {
	if slices.Contains(registered, asked) {
		return true
	}
	want, ok := withoutPort(asked)
	return ok && slices.ContainsFunc(registered, func(r string) bool {
		have, ok := withoutPort(r)
		return ok && have == want
	})
}

// withoutPort is an address on this machine with its port taken off.
func withoutPort(s string) (string, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" || !loopback(u.Hostname()) || u.User != nil || strings.Contains(s, "#") {
		return "", false
	}
	if u.Host = u.Hostname(); strings.Contains(u.Host, ":") {
		u.Host = "[" + u.Host + "]"
	}
	return u.String(), true
}

func clip(s string) string {
	if len(s) > 100 {
		s = s[:100] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
