package oauth

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
)

// Bounds of a registration.
const (
	maxRedirects = 10
	maxURI       = 1000
)

// checkRedirect returns an error unless a code may be sent to the URI: it must have the
// scheme https, http to the loopback interface, or the private scheme of an app.
func checkRedirect(s string) error {
	u, err := url.Parse(s)
	bad := func(why string) error {
		return errs.New(errs.Invalid, "oauth.bad_redirect_uri", "%q cannot be a redirect URI: %s", clip(s), why)
	}
	switch {
	case err != nil || u.Scheme == "" || len(s) > maxURI:
		return bad("it must be an absolute URL of at most 1000 characters")
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
		// A private scheme should be a reversed domain name (RFC 8252, 7.1). Some widely used
		// editors have another scheme, but a host: cursor://anysphere.cursor-mcp/….
		switch {
		case slices.Contains(NotApps, u.Scheme):
			return bad("the scheme " + u.Scheme + " does not lead to an app")
		case !strings.Contains(u.Scheme, ".") && u.Host == "":
			return bad("the private scheme of an app must be a reversed domain name, as in com.example.app:/done, " +
				"or be followed by a host, as in app://example/done")
		}
	}
	return nil
}

// NotApps are schemes that browsers or other programs handle, so they cannot belong to an
// app.
var NotApps = []string{
	"about", "blob", "cid", "data", "file", "filesystem", "ftp", "ftps", "intent", "jar", "javascript", "ldap", "ldaps",
	"mailto", "ms-msdt", "nfs", "search-ms", "sftp", "sms", "smb", "ssh", "tel", "telnet", "vbscript", "view-source",
	"ws", "wss",
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// MatchRedirect reports whether a code may be sent to the requested URI: it must equal a
// registered one, except for the port of a loopback URI, which the client's system chooses
// each time (RFC 8252, 7.3).
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

// withoutPort returns a loopback URI without its port.
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
