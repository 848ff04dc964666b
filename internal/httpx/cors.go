package httpx

import (
	"net/http"
	"slices"
	"strings"
)

// cors lets pages of other origins call the APIs (Cross-Origin Resource Sharing). Responses never
// allow credentials in the sense of CORS, which are cookies: a page of another origin needs a key
// or an access token.
type cors struct {
	any     bool
	origins []string
}

func newCORS(origins []string) *cors {
	if len(origins) == 0 {
		return nil
	}
	return &cors{any: slices.Contains(origins, "*"), origins: origins}
}

// Headers of requests and responses in addition to those that are always allowed.
const (
	corsAllow = "Authorization, Content-Type, Accept, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, " +
		"Prefer, X-Request-Id, A2A-Version, A2A-Extensions, X-A2A-Extensions, " +
		"MCP-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name"
	corsExpose = "ETag, Location, Link, Retry-After, RateLimit, RateLimit-Policy, WWW-Authenticate, X-Request-Id, " +
		"Idempotency-Replayed, Preference-Applied, Allow, Accept-Patch, A2A-Version, A2A-Extensions, " +
		"MCP-Protocol-Version, Mcp-Session-Id"
	corsMaxAge = "600" // seconds for which a browser remembers a preflight
)

// AllowsOrigin reports whether the request comes from a page of an allowed origin.
func (rt *Router) AllowsOrigin(r *http.Request) bool { return rt.cors.allows(r.Header["Origin"]) }

func (c *cors) allows(origin []string) bool {
	return c != nil && len(origin) == 1 && (c.any || slices.Contains(c.origins, origin[0]))
}

// answer adds the CORS headers for a request of an allowed origin. It responds to a preflight
// itself, before authentication, since a preflight has no credentials.
func (c *cors) answer(w http.ResponseWriter, r *http.Request, rt *Router) (done bool) {
	if !rt.crossOrigin(r.URL.Path) {
		return false
	}
	h := w.Header()
	h["Vary"] = varyOrigin
	origin := r.Header["Origin"]
	if !c.allows(origin) {
		return false
	}
	h["Access-Control-Allow-Origin"] = origin
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		h["Access-Control-Expose-Headers"] = []string{corsExpose}
		return false
	}
	methods := rt.allowed(r)
	if len(methods) == 0 {
		return false // 404
	}
	h["Access-Control-Allow-Methods"] = []string{strings.Join(methods, ", ")}
	h["Access-Control-Allow-Headers"] = []string{corsAllow}
	h["Access-Control-Max-Age"] = []string{corsMaxAge}
	w.WriteHeader(http.StatusNoContent)
	return true
}
