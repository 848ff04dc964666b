package a2a

import (
	"net/http"
	"strings"
)

// The versions of the official protocol, as clients name them.
const (
	version1  = "1.0"
	version03 = "0.3"
)

// versionHeader names the version that a client speaks. It decides nothing, since
// the methods of the versions have different names; but one that nobody here
// speaks is refused.
const versionHeader = "A2A-Version"

// askedVersion is the version that a request names, as major.minor; empty: none.
func askedVersion(r *http.Request) string {
	v := r.Header.Get(versionHeader)
	if v == "" && strings.Contains(r.URL.RawQuery, versionHeader) {
		v = r.URL.Query().Get(versionHeader)
	}
	v = strings.TrimSpace(v)
	if v == "" {
		return ""
	}
	major, rest, _ := strings.Cut(v, ".")
	minor, _, _ := strings.Cut(rest, ".")
	if minor == "" {
		minor = "0"
	}
	return major + "." + minor
}

// checkVersion refuses a version that is not spoken here.
func checkVersion(v string) *rpcError {
	switch v {
	case "", version1, version03:
		return nil
	}
	e := newError(codeVersion, "version "+clip(v)+" of A2A is not spoken here; use 1.0 or 0.3")
	e.official = true
	return e
}
