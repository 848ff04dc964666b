package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/wire"
)

// newPusher makes the client that pushes events. Its signing key is shared by all nodes; the
// first one makes it.
func (s *Server) newPusher(ctx context.Context) error {
	if !s.cfg.Push {
		return nil
	}
	fresh, err := delivery.NewKey()
	if err != nil {
		return fmt.Errorf("make a signing key: %w", err)
	}
	text, err := s.store.Secret(ctx, "push_signing_key", fresh)
	if err != nil {
		return fmt.Errorf("read the signing key: %w", err)
	}
	key, err := delivery.ParseKey(text)
	if err != nil {
		return err
	}
	s.pusher, err = delivery.NewClient(delivery.ClientOptions{
		Allow: slices.Concat(s.cfg.OutboundAllow, s.cfg.PushAllow), AllowFlag: outboundFlag, Key: key, Version: Version(),
		Now: Now, Logger: s.log,
	})
	s.pushes = newPushMetrics(s.store, s.log)
	return err
}

// newDeliveries makes what delivers events to URLs. Each kind of subscription has its source
// here. Without --push nothing is sent.
func (s *Server) newDeliveries() {
	o := delivery.Options{
		Store: s.store.Deliveries(),
		Sources: map[delivery.Kind]delivery.Source{
			dispatch.PushKind: dispatch.NewPushSource(s.store.DispatchStores(), wire.Push),
		},
		Tracer:  s.tracer,
		OnError: func(err error) { s.log.Error("background work on deliveries failed", "error", err) },
	}
	if s.pusher != nil {
		o.Sender, o.OnAttempt = s.pusher, s.pushes.count
	}
	s.deliveries = delivery.New(o)
}

// pushMetrics are the metrics of push notifications. Their only label has a fixed set of
// values.
type pushMetrics struct {
	store    *store.Store
	log      *slog.Logger
	attempts *prometheus.CounterVec

	due, dead atomic.Int64 // as of the last query
}

func newPushMetrics(st *store.Store, log *slog.Logger) *pushMetrics {
	m := &pushMetrics{store: st, log: log, attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_push_attempts_total",
		Help: "Attempts to push an event, by outcome: delivered, failed (will be repeated) or dead (given up).",
	}, []string{"outcome"})}
	for _, o := range delivery.Outcomes {
		m.attempts.WithLabelValues(string(o)) // export all outcomes from the start
	}
	return m
}

func (m *pushMetrics) count(o delivery.Outcome) { m.attempts.WithLabelValues(string(o)).Inc() }

func (m *pushMetrics) collectors() []prometheus.Collector {
	gauge := func(name, help string, value *atomic.Int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			return float64(value.Load())
		})
	}
	return []prometheus.Collector{
		m.attempts,
		gauge("parley_push_configs_due",
			"Push configurations that have something to push right now, on all nodes.", &m.due),
		gauge("parley_push_configs_dead", "Push configurations that were given up, on all nodes.", &m.dead),
	}
}

// pushLook is the interval between two updates of the gauges.
const pushLook = 2 * time.Second

// run updates the gauges until ctx ends.
func (m *pushMetrics) run(ctx context.Context) {
	sample(ctx, m.log, "push configurations", pushLook, m.look)
}

func (m *pushMetrics) look(ctx context.Context) error {
	due, dead, err := m.store.Deliveries().Count(ctx)
	if err == nil {
		m.due.Store(due)
		m.dead.Store(dead)
	}
	return err
}
