package store

import (
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the Prometheus metrics of the store. No label depends on data.
type metrics struct {
	size, seconds prometheus.Histogram
	pool          []prometheus.Collector
}

func newMetrics() *metrics {
	return &metrics{
		size: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "parley_store_batch_writes", Help: "Writes that shared one commit.",
			Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256},
		}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "parley_store_batch_seconds", Help: "Time to run and commit one batch of writes.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 12),
		}),
	}
}

// batch counts a batch. traceID, if it has one, becomes the exemplar of its duration.
func (m *metrics) batch(writes int, took time.Duration, traceID string) {
	m.size.Observe(float64(writes))
	if e, ok := m.seconds.(prometheus.ExemplarObserver); ok && traceID != "" {
		e.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": traceID})
		return
	}
	m.seconds.Observe(took.Seconds())
}

func (m *metrics) gauge(name, help string, value func() float64) {
	m.pool = append(m.pool, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

func (m *metrics) observePool(p *connPool) {
	m.gauge("parley_store_connections", "Open connections to the database.",
		func() float64 { return float64(p.Stat().TotalConns()) })
	m.gauge("parley_store_connections_in_use", "Connections in use.",
		func() float64 { return float64(p.Stat().AcquiredConns()) })
	m.gauge("parley_store_connection_waits", "Times that a request had to wait for a connection.",
		func() float64 { return float64(p.waits.Load()) })
}

func (m *metrics) observeLite(e *lite) {
	m.gauge("parley_store_connections", "Open connections to the database.",
		func() float64 { return float64(e.readers.size) })
	m.gauge("parley_store_connections_in_use", "Connections in use.",
		func() float64 { return float64(e.readers.size - len(e.readers.conns)) })
	m.gauge("parley_store_connection_waits", "Times that a request had to wait for a connection.",
		func() float64 { return float64(e.readers.waits.Load()) })
	m.gauge("parley_store_database_bytes", "Size of the SQLite file.", fileSize(e.path))
	m.gauge("parley_store_wal_bytes", "Size of SQLite's write-ahead log, which checkpoints keep small.",
		fileSize(e.path+"-wal"))
	if _, known := FreeBytes(filepath.Dir(e.path)); known {
		m.gauge("parley_store_free_bytes", "Space that is left on the disk of the data folder.", func() float64 {
			n, _ := FreeBytes(filepath.Dir(e.path))
			return float64(n)
		})
	}
}

// fileSize returns a function for the size of a file, which is 0 if there is none.
func fileSize(path string) func() float64 {
	return func() float64 {
		st, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return float64(st.Size())
	}
}

func (m *metrics) observeLane(l *lane) {
	m.gauge("parley_store_slow_connections", "Connections for searches and other slow reads.",
		func() float64 { return float64(l.size) })
	m.gauge("parley_store_slow_connections_in_use", "Slow reads that run.",
		func() float64 { return float64(l.inUse()) })
	m.gauge("parley_store_slow_waiting", "Slow reads that wait for a connection.",
		func() float64 { return float64(l.queue()) })
	m.gauge("parley_store_slow_connection_waits", "Times that a slow read had to wait for a connection.",
		func() float64 { return float64(l.waits.Load()) })
	m.gauge("parley_store_slow_busy", "Slow reads that were refused or ran into their deadline.",
		func() float64 { return float64(l.busy.Load()) })
}

func (m *metrics) observeReplica(r *replica) {
	m.gauge("parley_store_replica_usable", "1 if reads that may be stale use the replica, 0 if they use the database itself.",
		func() float64 {
			if r.usable.Load() {
				return 1
			}
			return 0
		})
	m.gauge("parley_store_replica_lag_seconds", "How old the data of the replica is; -1 if that is unknown.",
		func() float64 { return max(-1, time.Duration(r.lag.Load()*1000).Seconds()) })
}

func (m *metrics) observeSearch(x *searchIndex) {
	m.gauge("parley_store_search_waiting", "Proposals that wait to be added to the text index, as of a moment ago.",
		func() float64 { return float64(max(0, x.waiting.Load())) })
}

func (m *metrics) observeQueue(queues ...*queue) {
	m.gauge("parley_store_queue", "Writes that wait for a commit.", func() float64 {
		waiting := 0
		for _, q := range queues {
			waiting += len(q.waiting)
		}
		return float64(waiting)
	})
}

// Collectors returns the store's metrics for a registry.
func (s *Store) Collectors() []prometheus.Collector {
	return append([]prometheus.Collector{s.met.size, s.met.seconds}, s.met.pool...)
}
