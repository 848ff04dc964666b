package a2a

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
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

// cardVersion is the version of the card that a request asks for; empty: any. Minor
// versions are compatible, so that a client of a newer one gets the newest that there is.
func cardVersion(r *http.Request) (string, error) {
	asked := askedVersion(r)
	major, minor, _ := strings.Cut(asked, ".")
	n, err := strconv.Atoi(minor)
	switch {
	case asked == "":
		return "", nil
	case major == "1" && err == nil && n >= 0:
		return version1, nil
	case major == "0" && err == nil && n >= 3:
		return version03, nil
	}
	return "", errs.New(errs.Malformed, "request.version",
		"there is no card of version %q of A2A; ask with %s 1.0 or 0.3, or without", clip(asked), versionHeader)
}
