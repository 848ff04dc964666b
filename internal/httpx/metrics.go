package httpx

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts requests. Its labels are routes, methods and status classes: few, known in
// advance, and never an org or a principal, so that /metrics does not reveal who uses the server.
type metrics struct {
	inFlight prometheus.Gauge
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	shed     [len(shedReasons)]prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		return nil
	}
	m := &metrics{
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parley_http_requests_in_flight", Help: "Requests being served.",
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_http_requests_total", Help: "Requests served, by route, method and class of status.",
		}, []string{"route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "parley_http_request_duration_seconds", Help: "Time to serve a request, by route and method.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "method"}),
	}
	shed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_http_requests_shed_total",
		Help: "Requests refused to protect others, by the bound: overload, share (of a principal, org or address), " +
			"streams, waits, memory (server.busy) or search (search.busy).",
	}, []string{"reason"})
	for i, reason := range shedReasons {
		m.shed[i] = shed.WithLabelValues(reason)
	}
	reg.MustRegister(m.inFlight, m.requests, m.duration, shed)
	return m
}

// watch adds gauges of what the bounds count.
func (m *metrics) watch(reg prometheus.Registerer, a *admission, p *parking) {
	if m == nil {
		return
	}
	gauge := func(name, help string, labels prometheus.Labels, value func() int64) {
		reg.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels},
			func() float64 { return float64(value()) }))
	}
	for c := ordinary; c < classes; c++ {
		gauge("parley_http_requests_admitted", "Requests being served that count against --max-requests, by class.",
			prometheus.Labels{"class": classNames[c]}, func() int64 { return a.admitted(c) })
	}
	gauge("parley_http_streams", "Open streams.", nil, p.kinds[Stream].used.Load)
	gauge("parley_http_waits", "Requests that wait for something: long-poll claims and blocking sends.",
		nil, p.kinds[Wait].used.Load)
}

var statusClasses = [...]string{"other", "1xx", "2xx", "3xx", "4xx", "5xx"}

// route holds the metrics of one pattern, looked up once instead of per request.
type route struct {
	pattern  string
	requests [len(statusClasses)]prometheus.Counter
	duration prometheus.Observer
}

func (m *metrics) route(method, pattern string) *route {
	rt := &route{pattern: pattern}
	if m == nil {
		return rt
	}
	for i, class := range statusClasses {
		rt.requests[i] = m.requests.WithLabelValues(pattern, method, class)
	}
	rt.duration = m.duration.WithLabelValues(pattern, method)
	return rt
}

// observe counts a request. traceID, if it has one, becomes the exemplar of its duration.
func (rt *route) observe(status int, took time.Duration, traceID string) {
	if rt.duration == nil {
		return
	}
	class := status / 100
	if class >= len(statusClasses) {
		class = 0
	}
	rt.requests[class].Inc()
	if e, ok := rt.duration.(prometheus.ExemplarObserver); ok && traceID != "" {
		e.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": traceID})
		return
	}
	rt.duration.Observe(took.Seconds())
}
