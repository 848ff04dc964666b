package rest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-dev/parley/internal/httpx"
)

// discard is a ResponseWriter without cost.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

func benchList(b *testing.B, cacheBytes int64) {
	benchRead(b, cacheBytes, func(*world, string) string { return proposals })
}

// benchRead measures requests for one path through the whole handler.
func benchRead(b *testing.B, cacheBytes int64, pathOf func(w *world, secret string) string) {
	w := newWorld(b, func(h *httpx.Options, o *Options) {
		h.RateLimit, h.AuthFailureLimit, h.Registerer = 1_000_000_000, 20, prometheus.NewRegistry()
		o.PageCacheBytes = cacheBytes
	})
	ada := w.admin("acme", "user:ada")
	for range 30 {
		w.submit(ada, "acme")
	}
	r := httptest.NewRequest("GET", pathOf(w, ada), nil)
	r.Header.Set("Authorization", "Bearer "+ada)
	out := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(out.header)
		w.handler.ServeHTTP(out, r)
	}
}

// BenchmarkListCached measures a hit of the page cache through the whole handler.
func BenchmarkListCached(b *testing.B) { benchList(b, 0) }

// BenchmarkListUncached measures the same request without the cache.
func BenchmarkListUncached(b *testing.B) { benchList(b, -1) }

// BenchmarkGet measures a request for one record.
func BenchmarkGet(b *testing.B) {
	benchRead(b, -1, func(w *world, secret string) string { return proposals + "/" + w.submit(secret, "acme").ID })
}
