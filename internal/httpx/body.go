package httpx

import (
	"net/http"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
)

// CheckLength refuses a body whose declared length is over the limit. It reads nothing, so that a
// client that sent Expect: 100-continue does not send the body.
func CheckLength(r *http.Request, limit int64) error {
	if r.ContentLength <= limit {
		return nil
	}
	return ErrTooLarge(limit)
}

// ErrTooLarge is the error for a body over the limit.
func ErrTooLarge(limit int64) error {
	return errs.New(errs.TooLarge, "request.too_large", "the body is larger than %d bytes", limit)
}

// encoded reports whether the body is compressed.
func encoded(h http.Header) bool {
	for _, v := range h["Content-Encoding"] {
		if v != "" && !strings.EqualFold(v, "identity") {
			return true
		}
	}
	return false
}

var identityOnly = []string{"identity"}

var errEncoded = errs.New(errs.Unsupported, "request.encoded",
	"compressed bodies (Content-Encoding) are not supported; send the body uncompressed")
