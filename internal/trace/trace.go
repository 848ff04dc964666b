// Package trace follows requests and tasks through the program, as spans of OpenTelemetry.
//
// Context (context.go) is the identity of a span that travels in headers and in the row of a task.
// A Tracer starts spans. It is nil unless traces are exported, and callers on hot paths test that
// before they do anything, so that traces cost nothing while they are off. Package telemetry makes
// the Tracer; this one knows neither the exporters nor their configuration.
package trace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// Kind is the part that a span has in a conversation.
type Kind = oteltrace.SpanKind

// The kinds of spans.
const (
	Internal = oteltrace.SpanKindInternal
	Server   = oteltrace.SpanKindServer // serves a request
	Client   = oteltrace.SpanKindClient // sends one
)

// Attr is an attribute of a span. Attributes contain neither secrets nor names of people.
type Attr = attribute.KeyValue

// String returns an attribute.
func String(key, value string) Attr { return attribute.String(key, value) }

// Int returns an attribute.
func Int(key string, value int) Attr { return attribute.Int(key, value) }

// MaxLinks limits the links of one span.
const MaxLinks = 128

// Tracer starts spans. A nil Tracer starts none.
type Tracer struct{ tracer oteltrace.Tracer }

// New returns a Tracer.
func New(t oteltrace.Tracer) *Tracer { return &Tracer{t} }

// Start starts a span below the one of ctx. The returned context has the new one.
func (t *Tracer) Start(ctx context.Context, kind Kind, name string, attrs ...Attr) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	ctx, s := t.tracer.Start(ctx, name, oteltrace.WithSpanKind(kind), oteltrace.WithAttributes(attrs...))
	return ctx, Span{s}
}

// StartIn starts a span below parent, which another process or an earlier request has started, and
// links it to the span of ctx. Without a parent it is Start.
func (t *Tracer) StartIn(
	ctx context.Context, parent Context, kind Kind, name string, attrs ...Attr,
) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	sc := parent.remote()
	if !sc.IsValid() {
		return t.Start(ctx, kind, name, attrs...)
	}
	options := []oteltrace.SpanStartOption{oteltrace.WithSpanKind(kind), oteltrace.WithAttributes(attrs...)}
	if here := oteltrace.SpanContextFromContext(ctx); here.IsValid() {
		options = append(options, oteltrace.WithLinks(oteltrace.Link{SpanContext: here}))
	}
	ctx, s := t.tracer.Start(oteltrace.ContextWithRemoteSpanContext(ctx, sc), name, options...)
	return ctx, Span{s}
}

// Mark identifies a span of this process, for StartFor.
type Mark = oteltrace.SpanContext

// MarkOf returns the mark of the span of ctx. ok is false if there is none, or if it is not recorded.
func MarkOf(ctx context.Context) (m Mark, ok bool) {
	m = oteltrace.SpanContextFromContext(ctx)
	return m, m.IsValid() && m.IsSampled()
}

// StartFor starts a span of work that is done for several others at once. It is below the first of
// them, so that it is recorded if they are, and has links to all, at most MaxLinks.
func (t *Tracer) StartFor(work []Mark, name string, attrs ...Attr) Span {
	if t == nil || len(work) == 0 {
		return Span{}
	}
	links := make([]oteltrace.Link, 0, min(len(work), MaxLinks))
	for _, m := range work[:cap(links)] {
		links = append(links, oteltrace.Link{SpanContext: m})
	}
	ctx := oteltrace.ContextWithSpanContext(context.Background(), work[0])
	_, s := t.tracer.Start(ctx, name, oteltrace.WithAttributes(attrs...), oteltrace.WithLinks(links...))
	return Span{s}
}

// Span is a running span. The methods of the zero Span do nothing.
type Span struct{ span oteltrace.Span }

// On reports whether there is a span.
func (s Span) On() bool { return s.span != nil }

// Set adds attributes.
func (s Span) Set(attrs ...Attr) {
	if s.span != nil {
		s.span.SetAttributes(attrs...)
	}
}

// Link adds a link to another span, if there is one.
func (s Span) Link(to Context) {
	if s.span == nil {
		return
	}
	if sc := to.remote(); sc.IsValid() {
		s.span.AddLink(oteltrace.Link{SpanContext: sc})
	}
}

// Fail marks the span as failed. The message must not contain secrets.
func (s Span) Fail(message string) {
	if s.span != nil {
		s.span.SetStatus(codes.Error, message)
	}
}

// End ends the span.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}

// Context returns the identity of the span.
func (s Span) Context() Context {
	if s.span == nil {
		return Context{}
	}
	return contextOf(s.span.SpanContext())
}

// TraceID returns the id of the trace, or "" if it is not recorded.
func (s Span) TraceID() string {
	if s.span == nil || !s.span.SpanContext().IsSampled() {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// IDs returns the ids of the trace and of the span of ctx, or "".
func IDs(ctx context.Context) (traceID, spanID string) {
	if sc := oteltrace.SpanContextFromContext(ctx); sc.IsValid() {
		return sc.TraceID().String(), sc.SpanID().String()
	}
	return "", ""
}
