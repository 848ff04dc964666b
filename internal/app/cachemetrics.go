package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-dev/parley/internal/cache"
)

// cacheMetrics registers the look-ups of caches. Their only label is the name of the cache.
type cacheMetrics struct{ reg prometheus.Registerer }

func (m cacheMetrics) add(name string, stats func() cache.Stats) {
	counter := func(metric, help string, value func(cache.Stats) uint64) {
		m.reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: metric, Help: help, ConstLabels: prometheus.Labels{"cache": name},
		}, func() float64 { return float64(value(stats())) }))
	}
	counter("parley_cache_hits_total", "Look-ups that a cache answered, by cache.",
		func(s cache.Stats) uint64 { return s.Hits })
	counter("parley_cache_misses_total", "Look-ups that a cache could not answer, by cache.",
		func(s cache.Stats) uint64 { return s.Misses })
}
