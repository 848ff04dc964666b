package httpx

import (
	"net/http"
	"strconv"
	"strings"
)

// KeySet serves a set of public keys (RFC 7517). Each argument is one JWK.
func KeySet(jwks ...string) http.Handler {
	body := []byte(`{"keys":[` + strings.Join(jwks, ",") + "]}\n")
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/jwk-set+json")
		h.Set("Content-Length", strconv.Itoa(len(body)))
		h.Set("Cache-Control", "public, max-age=3600")
		_, _ = w.Write(body) // the client may be gone
	})
}
