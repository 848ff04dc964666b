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
	for _, path := range []string{"/api/v1/me", "/a2a/echo", "/mcp", "/oauth/token", "/.well-known/oauth-authorization-server"} {
		method := http.MethodPost
		if path == "/api/v1/me" || path[:2] == "/." {
			method = http.MethodGet
		}
		preflight := send(one, http.MethodOptions, path, "Origin", "https://app.example",
			"Access-Control-Request-Method", method, "Access-Control-Request-Headers", "authorization,content-type")
		h := preflight.Header()
		if preflight.Code != http.StatusNoContent || h.Get(allow) != "https://app.example" || h.Get("Access-Control-Allow-Headers") == "" ||
			h.Get(credentials) != "" || h.Get("Vary") != "Origin" {
			t.Errorf("preflight of %s: %d %v", path, preflight.Code, h)
		}
		if got, want := h.Get("Access-Control-Allow-Methods"), method; got != want && got != "GET, HEAD" {
			t.Errorf("preflight of %s allows %q", path, got)
		}
		res := send(one, method, path, "Origin", "https://app.example", "Authorization", "Bearer good:ada")
		if h := res.Header(); res.Code != http.StatusOK || h.Get(allow) != "https://app.example" || h.Get(credentials) != "" ||
			h.Get("Access-Control-Expose-Headers") == "" {
			t.Errorf("%s: %d %v", path, res.Code, h)
		}
		for _, origin := range []string{"https://evil.example", "http://app.example", "https://app.example.evil", "null", ""} {
			for _, rt := range []*Router{one, router()} {
				asked := send(rt, http.MethodOptions, path, "Origin", origin, "Access-Control-Request-Method", method)
				got := send(rt, method, path, "Origin", origin)
				if asked.Code == http.StatusNoContent || asked.Header().Get(allow) != "" || got.Header().Get(allow) != "" {
					t.Errorf("%s: origin %q is allowed", path, origin)
				}
			}
		}
	}
	// A refusal can be read, too.
	res := send(one, http.MethodGet, "/api/v1/me", "Origin", "https://app.example", "Authorization", "Bearer bad")
	if res.Code != http.StatusUnauthorized || res.Header().Get(allow) == "" || res.Header().Get("Vary") != "Authorization, Origin" {
		t.Errorf("%d %v", res.Code, res.Header())
	}
	// Pages and unknown paths are not for other origins.
	for _, path := range []string{"/login", "/nowhere", "/api/v1/nowhere"} {
		if res := send(one, http.MethodOptions, path, "Origin", "https://app.example", "Access-Control-Request-Method", "GET"); res.Code == http.StatusNoContent {
			t.Errorf("%s: %d %v", path, res.Code, res.Header())
		}
	}
	if res := send(one, http.MethodGet, "/login", "Origin", "https://app.example"); res.Header().Get(allow) != "" {
		t.Error("a page may be read by another origin")
	}
	if res := send(router("*"), http.MethodOptions, "/mcp", "Origin", "https://any.example", "Access-Control-Request-Method", "POST"); res.Header().Get(allow) != "https://any.example" {
		t.Errorf("%d %v", res.Code, res.Header())
	}
}
