package text

import (
	"net/url"
	"strconv"
	"strings"
)

// ValidPort reports whether a URL can have the port; "" is the default one.
func ValidPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// Origin returns the scheme and the host of a URL, which contain no secrets. It is empty if the URL
// is invalid.
func Origin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}
