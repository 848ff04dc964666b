package httpx

import "net/http"

// The values are shared by all responses: net/http only reads them, and Set and Add replace the
// slice instead of writing into it.
var (
	noSniff    = []string{"nosniff"}
	noReferrer = []string{"no-referrer"}
	// Responses are data, not pages; the few pages set their own policy.
	noContent = []string{"default-src 'none'; frame-ancestors 'none'"}
	noStore   = []string{"no-store"}
	varyAuth  = []string{"Authorization"}
	// If pages of other origins may read responses, the allowed origin is part of the response.
	varyOrigin     = []string{"Origin"}
	varyAuthOrigin = []string{"Authorization, Origin"}
	// One year, which the preload lists of browsers require. Subdomains may belong to other
	// services.
	strictTransport = []string{"max-age=31536000"}
)

// setHeaders sets the headers that every response has.
func setHeaders(h http.Header, x *exchange) {
	h["X-Request-Id"] = x.id[:]
	h["X-Content-Type-Options"] = noSniff
	h["Referrer-Policy"] = noReferrer
	h["Content-Security-Policy"] = noContent
}

// private marks responses as belonging to one caller, so that no cache shares them.
func (rt *Router) private(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Cache-Control"] = noStore
		h["Vary"] = rt.vary
		next.ServeHTTP(w, r)
	})
}
