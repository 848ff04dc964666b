package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// taskMetrics are the metrics of the queue of tasks. Their only label has a fixed set of values.
type taskMetrics struct {
	// Of agents without and with workers, as of the last query.
	waiting [2]atomic.Int64
	since   [2]atomic.Int64 // Unix time of the oldest one in microseconds; 0 if there is none
}

// queueClasses are the values of the label class, as indexes of the numbers above.
var queueClasses = [2]string{"offline", "online"}

// queueLook is the interval between two updates of the gauges. A long queue takes a moment to count.
const queueLook = 10 * time.Second

func (m *taskMetrics) collectors(expired func() int64) []prometheus.Collector {
	out := []prometheus.Collector{prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "parley_task_leases_expired_total",
		Help: "Leases that this node ended because their worker did not extend them in time.",
	}, func() float64 { return float64(expired()) })}
	for i, class := range queueClasses {
		labels := prometheus.Labels{"class": class}
		out = append(out,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "parley_tasks_waiting", ConstLabels: labels,
				Help: "Tasks that wait for a worker, on all nodes, of agents that have workers (online) or none (offline).",
			}, func() float64 { return float64(m.waiting[i].Load()) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "parley_tasks_waiting_seconds", ConstLabels: labels,
				Help: "Age of the oldest task that waits for a worker, by the same classes.",
			}, func() float64 {
				since := m.since[i].Load()
				if since == 0 {
					return 0
				}
				return max(0, Now().Sub(time.UnixMicro(since)).Seconds())
			}))
	}
	return out
}

func (s *Server) countTasks(ctx context.Context) error {
	waiting, err := s.store.Tasks().Waiting(ctx)
	if err != nil {
		return err
	}
	for i, w := range waiting {
		since := int64(0)
		if w.Tasks > 0 {
			since = w.Since.UnixMicro()
		}
		s.queue.waiting[i].Store(w.Tasks)
		s.queue.since[i].Store(since)
	}
	return nil
}
