package httpx

import (
	"net/http"
	"testing"
)

func TestPagesOfConfiguredOriginsMayCall(t *testing.T) {
	t.Parallel()
	router := func(origins ...string) *Router {
		rt := NewRouter(Options{Authenticator: known{}, Logger: quiet(), Origins: origins})
		rt.Area(Area{CrossOrigin: true}, "/api/", "/a2a/", "/mcp", "/oauth/token", "/.well-known/")
		ok := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
		for _, pattern := range []string{"GET /api/v1/me", "POST /a2a/{agent}", "POST /mcp", "GET /login"} {
			rt.HandleFunc(pattern, ok)
		}
		rt.HandlePublic("POST /oauth/token", http.HandlerFunc(ok))
		rt.HandlePublic("GET /.well-known/oauth-authorization-server", http.HandlerFunc(ok))
		return rt
	}
	one := router("https://app.example")
	const allow, credentials = "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials"
	for _, path := range []string{
		"/api/v1/me", "/a2a/echo", "/mcp", "/oauth/token", "/.well-known/oauth-authorization-server",
	} {
		method := http.MethodPost
		if path == "/api/v1/me" || path[:2] == "/." {
			method = http.MethodGet
		}
		preflight := send(one, http.MethodOptions, path, "Origin", "https://app.example",
			"Access-Control-Request-Method", method, "Access-Control-Request-Headers", "authorization,content-type")
		h := preflight.Header()
		if preflight.Code != http.StatusNoContent || h.Get(allow) != "https://app.example" ||
			h.Get("Access-Control-Allow-Headers") == "" || h.Get(credentials) != "" || h.Get("Vary") != "Origin" {
			t.Errorf("preflight of %s: status = %d, want 204 with CORS headers: %v", path, preflight.Code, h)
		}
		if got, want := h.Get("Access-Control-Allow-Methods"), method; got != want && got != "GET, HEAD" {
			t.Errorf("preflight of %s: methods = %q, want %q", path, got, want)
		}
		res := send(one, method, path, "Origin", "https://app.example", "Authorization", "Bearer good:ada")
		if h := res.Header(); res.Code != http.StatusOK || h.Get(allow) != "https://app.example" ||
			h.Get(credentials) != "" || h.Get("Access-Control-Expose-Headers") == "" {
			t.Errorf("%s: status = %d, want 200 with CORS headers: %v", path, res.Code, h)
		}
		for _, origin := range []string{
			"https://evil.example", "http://app.example", "https://app.example.evil", "null", "",
		} {
			for _, rt := range []*Router{one, router()} {
				asked := send(rt, http.MethodOptions, path, "Origin", origin, "Access-Control-Request-Method", method)
				got := send(rt, method, path, "Origin", origin)
				if asked.Code == http.StatusNoContent || asked.Header().Get(allow) != "" || got.Header().Get(allow) != "" {
					t.Errorf("%s: origin %q is allowed, want no CORS headers", path, origin)
				}
			}
		}
	}
	// Pages can read refusals too.
	res := send(one, http.MethodGet, "/api/v1/me", "Origin", "https://app.example", "Authorization", "Bearer bad")
	if res.Code != http.StatusUnauthorized || res.Header().Get(allow) == "" ||
		res.Header().Get("Vary") != "Authorization, Origin" {
		t.Errorf("refusal: status = %d, want 401 with CORS headers: %v", res.Code, res.Header())
	}
	// HTML pages and unknown paths have no CORS headers.
	for _, path := range []string{"/login", "/nowhere", "/api/v1/nowhere"} {
		res := send(one, http.MethodOptions, path,
			"Origin", "https://app.example", "Access-Control-Request-Method", "GET")
		if res.Code == http.StatusNoContent {
			t.Errorf("preflight of %s: status = %d, want another than 204: %v", path, res.Code, res.Header())
		}
	}
	if res := send(one, http.MethodGet, "/login", "Origin", "https://app.example"); res.Header().Get(allow) != "" {
		t.Error("/login has CORS headers, want none")
	}
	res = send(router("*"), http.MethodOptions, "/mcp",
		"Origin", "https://any.example", "Access-Control-Request-Method", "POST")
	if got := res.Header().Get(allow); got != "https://any.example" {
		t.Errorf("any origin: %s = %q, want https://any.example", allow, got)
	}
}
