package httpx

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/trace"
)

const sentParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// recorded returns a tracer, and the spans that it has ended.
func recorded() (*trace.Tracer, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	return trace.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")), spans
}

func sendTo(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A span has the route and not the path, which may contain a secret.
func TestSpansOfRequests(t *testing.T) {
	t.Parallel()
	tracer, spans := recorded()
	rt := NewRouter(Options{Authenticator: known{}, Logger: quiet(), Tracer: tracer})
	var inside trace.Context
	rt.HandleFunc("GET /things/{id}", func(_ http.ResponseWriter, r *http.Request) { inside = trace.From(r.Context()) })
	rt.HandleFunc("POST /things/{id}", func(w http.ResponseWriter, r *http.Request) {
		WriteError(w, r, errs.New(errs.Internal, "x", "broken"))
	})
	rt.HandleHealth("GET /health", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	sendTo(rt, "GET", "/things/s3cret?q=s3cret", "Authorization", "Bearer good:ann", "Traceparent", sentParent)
	sendTo(rt, "POST", "/things/s3cret", "Traceparent", "nonsense")
	sendTo(rt, "GET", "/health")
	sendTo(rt, "GET", "/nowhere/s3cret")
	sendTo(rt, "BREW", "/nowhere")

	type span struct {
		Name, Parent, Org, Route string
		Status                   int64
		Failed                   bool
	}
	var got []span
	for _, s := range spans.Ended() {
		one := span{Name: s.Name(), Failed: s.Status().Code == codes.Error}
		if s.Parent().IsValid() {
			one.Parent = s.Parent().SpanID().String()
		}
		for _, a := range s.Attributes() {
			switch a.Key {
			case "parley.org":
				one.Org = a.Value.AsString()
			case "http.route":
				one.Route = a.Value.AsString()
			case "http.response.status_code":
				one.Status = a.Value.AsInt64()
			}
			if strings.Contains(a.Value.String(), "s3cret") {
				t.Errorf("%s has the attribute %v", s.Name(), a)
			}
		}
		got = append(got, one)
	}
	want := []span{
		{"GET /things/{id}", "00f067aa0ba902b7", "acme", "/things/{id}", 200, false},
		{"POST /things/{id}", "", "", "/things/{id}", 500, true},
		{"GET unmatched", "", "", "unmatched", 404, false},
		{"_OTHER unmatched", "", "", "unmatched", 404, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	first := spans.Ended()[0].SpanContext()
	if want := fmt.Sprintf("00-%s-%s-01", first.TraceID(), first.SpanID()); inside.Parent != want {
		t.Errorf("the handler's trace is %+v, want %s", inside, want)
	}
}

// Without a tracer a handler sees the trace that the client sent.
func TestTheClientsTraceWithoutSpans(t *testing.T) {
	t.Parallel()
	rt := NewRouter(Options{Authenticator: known{}, Logger: quiet()})
	var got trace.Context
	rt.HandleFunc("GET /x", func(_ http.ResponseWriter, r *http.Request) {
		got = trace.From(context.WithoutCancel(r.Context()))
	})
	for sent, want := range map[string]string{sentParent: sentParent, "nonsense": "", "": ""} {
		if sendTo(rt, "GET", "/x", "Traceparent", sent); got.Parent != want {
			t.Errorf("sent %q, got %+v, want %q", sent, got, want)
		}
	}
}

// The latency of a recorded request has its trace as exemplar.
func TestExemplars(t *testing.T) {
	t.Parallel()
	tracer, spans := recorded()
	reg := prometheus.NewRegistry()
	rt := NewRouter(Options{Authenticator: known{}, Logger: quiet(), Tracer: tracer, Registerer: reg})
	rt.HandleFunc("GET /x", func(http.ResponseWriter, *http.Request) {})
	sendTo(rt, "GET", "/x")
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := spans.Ended()[0].SpanContext().TraceID().String()
	for _, f := range families {
		if f.GetName() != "parley_http_request_duration_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, b := range m.GetHistogram().GetBucket() {
				for _, l := range b.GetExemplar().GetLabel() {
					if l.GetName() == "trace_id" && l.GetValue() == want {
						return
					}
				}
			}
		}
	}
	t.Errorf("no exemplar with the trace %s", want)
}

// While spans are off, a traceparent is not even read, and costs no allocation.
func TestTracesCostNothingWhileTheyAreOff(t *testing.T) {
	rt := NewRouter(Options{Authenticator: known{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	rt.HandlePublic("GET /x", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	allocs := func(headers ...string) float64 {
		r := httptest.NewRequest("GET", "/x", nil)
		r.Header.Set("X-Request-Id", "one")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		return testing.AllocsPerRun(200, func() { rt.ServeHTTP(w, r) })
	}
	without, with := allocs(), allocs("Traceparent", sentParent, "Tracestate", "a=1")
	if with != without {
		t.Errorf("%v allocations with a traceparent, %v without", with, without)
	}
	ctx := &exchange{Context: t.Context(), request: httptest.NewRequest("GET", "/x", nil)}
	if n := testing.AllocsPerRun(200, func() { _ = trace.From(ctx).String() }); n != 0 {
		t.Errorf("a task without a trace costs %v allocations", n)
	}
}

// BenchmarkTraces compares requests without spans, with spans that are not sampled, and with spans.
func BenchmarkTraces(b *testing.B) {
	never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	always := sdktrace.NewTracerProvider()
	for _, c := range []struct {
		name   string
		tracer *trace.Tracer
	}{{"off", nil}, {"not sampled", trace.New(never.Tracer("x"))}, {"sampled", trace.New(always.Tracer("x"))}} {
		b.Run(c.name, func(b *testing.B) {
			rt := NewRouter(Options{Authenticator: known{}, Logger: quiet(), Tracer: c.tracer})
			rt.HandlePublic("GET /x", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			r, w := httptest.NewRequest("GET", "/x", nil), httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				rt.ServeHTTP(w, r)
			}
		})
	}
}
