package httpx

import "net/http"

// The values are shared by all answers: net/http only reads them, and Set and
// Add replace the slice instead of writing into it.
var (
	noSniff    = []string{"nosniff"}
	noReferrer = []string{"no-referrer"}
	// Answers are data, not pages; the few pages set a policy of their own.
	noContent = []string{"default-src 'none'; frame-ancestors 'none'"}
	noStore   = []string{"no-store"}
	varyAuth  = []string{"Authorization"}
	// If pages of other origins may read responses, each names the origin that may.
	varyOrigin     = []string{"Origin"}
	varyAuthOrigin = []string{"Authorization, Origin"}
	// A year, as browsers' lists want it. Subdomains are other services' business.
	strictTransport = []string{"max-age=31536000"}
)

// setHeaders writes what every answer carries.
func setHeaders(h http.Header, x *exchange) {
	h["X-Request-Id"] = x.id[:]
	h["X-Content-Type-Options"] = noSniff
	h["Referrer-Policy"] = noReferrer
	h["Content-Security-Policy"] = noContent
}

// private marks answers that belong to one caller, so that no cache on the way
// hands them to another.
func (rt *Router) private(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["Cache-Control"] = noStore
		h["Vary"] = rt.vary
		next.ServeHTTP(w, r)
	})
}
