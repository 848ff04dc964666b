package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/webhook"
)

// newWebhooks makes the service for webhooks, which also delivers their events. newEvents tells it
// which logs have grown. It has a delivery engine and a client of its own, so that pushes and
// webhooks do not delay each other, and webhooks work without --push.
func (s *Server) newWebhooks(ids *ids) (err error) {
	s.hookSender, err = delivery.NewClient(delivery.ClientOptions{
		Allow: s.cfg.OutboundAllow, AllowFlag: outboundFlag, Version: Version(), Now: Now, Logger: s.log,
	})
	if err != nil {
		return err
	}
	s.hooks = newWebhookMetrics()
	s.webhooks = webhook.NewService(webhook.Options{
		Store: s.store.Webhooks(), Log: s.store.Events(), Sender: s.hookSender, CheckURL: s.hookSender.CheckURL,
		Now: Now, NewID: ids.next, Base: s.base(), Most: s.cfg.MaxWebhooks, OnAttempt: s.hooks.count,
		Tracer:  s.tracer,
		OnError: func(err error) { s.log.Error("background work on webhooks failed", "error", err) },
	})
	return nil
}

// webhookMetrics are the metrics of webhooks.
type webhookMetrics struct{ attempts *prometheus.CounterVec }

func newWebhookMetrics() *webhookMetrics {
	m := &webhookMetrics{attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_webhook_attempts_total",
		Help: "Attempts to deliver an event to a webhook, by outcome: delivered, failed (will be repeated) or " +
			"dead (given up).",
	}, []string{"outcome"})}
	for _, o := range delivery.Outcomes {
		m.attempts.WithLabelValues(string(o)) // export all outcomes from the start
	}
	return m
}

func (m *webhookMetrics) count(o delivery.Outcome) { m.attempts.WithLabelValues(string(o)).Inc() }

// collectors returns all metrics. The gauges are as of the last poll of the service, so that a
// scrape does not wait for the store.
func (m *webhookMetrics) collectors(s *webhook.Service) []prometheus.Collector {
	gauge := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			return float64(value())
		})
	}
	return []prometheus.Collector{
		m.attempts,
		gauge("parley_webhooks_due", "Webhooks that have something to deliver right now, on all nodes.", func() int64 {
			due, _ := s.Counts()
			return due
		}),
		gauge("parley_webhooks_failed", "Webhooks that were given up, on all nodes.", func() int64 {
			_, failed := s.Counts()
			return failed
		}),
	}
}
