package store

import (
	"context"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/parley-dev/parley/internal/trace"
)

// A batch has one span, below its first write and linked to all of them, up to a bound. Writes
// without a span are counted only.
func TestABatchIsLinkedToItsWrites(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	tracer := trace.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test"))
	q := newQueue(newMetrics(), tracer)
	const traced, plain = trace.MaxLinks + 20, 5
	var answers []<-chan error
	write := func(ctx context.Context) {
		answer := make(chan error, 1)
		before := len(q.waiting)
		go func() { answer <- q.do(ctx, func(*tx) error { return nil }) }()
		for len(q.waiting) == before { // nothing is served yet
			select {
			case err := <-answer:
				t.Fatal(err)
			default:
			}
		}
		answers = append(answers, answer)
	}
	var first trace.Context
	for i := range traced {
		ctx, span := tracer.Start(t.Context(), trace.Internal, "write")
		if i == 0 {
			first = span.Context()
		}
		write(ctx)
		span.End()
	}
	for range plain {
		write(t.Context())
	}
	q.serve(maxBatch, func([]*request) {})
	for _, answer := range answers {
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
	}
	q.close()
	var batches []sdktrace.ReadOnlySpan
	for _, s := range spans.Ended() {
		if s.Name() == "store.batch" {
			batches = append(batches, s)
		}
	}
	if len(batches) != 1 {
		t.Fatalf("%d spans of batches, want 1", len(batches))
	}
	b := batches[0]
	if len(b.Links()) != trace.MaxLinks || b.Links()[0].SpanContext.SpanID() != b.Parent().SpanID() ||
		first.Parent[36:52] != b.Parent().SpanID().String() {
		t.Errorf("the batch has %d links and the parent %v", len(b.Links()), b.Parent().SpanID())
	}
	for _, a := range b.Attributes() {
		if a.Key == "parley.writes" && a.Value.AsInt64() != traced+plain {
			t.Errorf("the batch has %d writes, want %d", a.Value.AsInt64(), traced+plain)
		}
	}
}

// Without a tracer, a write costs no more than before.
func TestWritesWithoutSpans(t *testing.T) {
	q := newQueue(newMetrics(), nil)
	q.serve(maxBatch, func([]*request) {})
	defer q.close()
	ctx, fn := t.Context(), func(*tx) error { return nil }
	// The request and its channel.
	if n := testing.AllocsPerRun(100, func() { _ = q.do(ctx, fn) }); n > 2 {
		t.Errorf("%v allocations, want 2", n)
	}
}
