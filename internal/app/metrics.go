package app

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// mountMetrics protects /metrics with the configured key, and serves it on the configured
// listener. It returns the handler for the router, or nil if there is a separate listener.
func (s *Server) mountMetrics(h http.Handler) http.Handler {
	if s.cfg.MetricsKey != "" {
		h = requireKey(s.cfg.MetricsKey, h)
	}
	if s.metricsSide == nil {
		return h
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", h)
	s.metricsSide.http.Handler = mux
	return nil
}

// requireKey refuses requests without the key. It compares hashes, so that the time does not
// reveal anything about the key, not even its length.
func requireKey(key string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(key))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(token)))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="metrics"`)
			http.Error(w, "send the key of --metrics-key as \"Authorization: Bearer <key>\"", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
