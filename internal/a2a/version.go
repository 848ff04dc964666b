package a2a

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
)

// The versions of the official protocol.
const (
	version1  = "1.0"
	version03 = "0.3"
)

// versionHeader names the client's protocol version. It does not select the dialect, since the
// methods of the versions have different names, but an unsupported version is refused.
const versionHeader = "A2A-Version"

// askedVersion returns the version that a request names, as major.minor, or "".
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

// checkVersion refuses an unsupported version.
func checkVersion(v string) *rpcError {
	switch v {
	case "", version1, version03:
		return nil
	}
	e := newError(codeVersion, "A2A version "+clip(v)+" is not supported; use 1.0 or 0.3")
	e.official = true
	return e
}

// cardVersion returns the version of the card that a request asks for; empty: any. Minor versions
// are compatible, so a client of a newer one gets the newest supported version.
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
		"there is no card for A2A version %q; set %s to 1.0 or 0.3, or leave it out", clip(asked), versionHeader)
}
