// Package telemetry exports spans to a collector by OTLP, over HTTP or gRPC, as the standard OTEL_*
// environment variables say. Without them it does nothing.
//
// Spans wait in a bounded queue and are sent in the background: if the collector is slow or cannot be
// reached, spans are dropped, and no request waits. The package knows nothing about what the spans
// are of; package trace starts them.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/parley-dev/parley/internal/trace"
)

// Name is the default of OTEL_SERVICE_NAME, and the name of the instrumentation.
const Name = "parley"

// Traces exports spans until Close.
type Traces struct {
	Tracer   *trace.Tracer
	provider *sdktrace.TracerProvider
}

// Start begins to export. It returns nil if the environment does not ask for it.
func Start(ctx context.Context, version, node string, log *slog.Logger) (*Traces, error) {
	s, err := read(os.Getenv)
	for _, w := range s.warnings {
		log.Warn(w)
	}
	if err != nil || !s.on {
		return nil, err
	}
	// Both are global. What they report is about the export, whichever server of the process began it.
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(&reporter{log: log, now: time.Now})
	exporter, err := otlptrace.New(ctx, newClient(s))
	if err != nil {
		return nil, fmt.Errorf("export traces: %w", err)
	}
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", Name), attribute.String("service.version", version),
			attribute.String("service.instance.id", node)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv()) // last: it takes precedence
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	return &Traces{trace.New(p.Tracer(Name)), p}, nil
}

// newClient returns the client for the collector. The default endpoint of the exporters needs TLS, unlike
// that of the specification.
func newClient(s settings) otlptrace.Client {
	switch {
	case s.grpc && s.endpoint:
		return otlptracegrpc.NewClient()
	case s.grpc:
		return otlptracegrpc.NewClient(otlptracegrpc.WithEndpointURL("http://localhost:4317"))
	case s.endpoint:
		return otlptracehttp.NewClient()
	}
	return otlptracehttp.NewClient(otlptracehttp.WithEndpointURL("http://localhost:4318/v1/traces"))
}

// Close sends the spans that wait, until ctx ends. It may be called on nil.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// reportEvery is the interval between log lines about the export.
const reportEvery = time.Minute

// reporter logs errors of the export, one line for each interval.
type reporter struct {
	log  *slog.Logger
	now  func() time.Time
	last atomic.Int64 // Unix time in ns
	more atomic.Int64 // errors since the last line
}

// Handle implements otel.ErrorHandler.
func (r *reporter) Handle(err error) {
	last, now := r.last.Load(), r.now()
	if last != 0 && now.Sub(time.Unix(0, last)) < reportEvery || !r.last.CompareAndSwap(last, now.UnixNano()) {
		r.more.Add(1)
		return
	}
	r.log.Warn("traces could not be exported; requests are not affected, but spans are lost",
		"error", err, "errors_since_last_line", r.more.Swap(0))
}
