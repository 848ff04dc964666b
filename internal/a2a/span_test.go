package a2a

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/trace"
)

// Each item of a batch has a span below that of the request, also one that fails. A method that does
// not exist does not name its span.
func TestEachItemOfABatchHasASpan(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	tracer := trace.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test"))
	w := newWorld(t, func(ho *httpx.Options, o *Options) { ho.Tracer, o.Tracer = tracer, tracer })
	key := w.caller("user:ada")
	message := func(text string) string {
		return `{"id":"t","message":{"role":"user","parts":[{"type":"text","text":"` + text + `"}]}}`
	}
	w.do(key, "POST", "/a2a/bot", "["+envelope("tasks/send", message("one"))+","+
		// The second waits for the task, in the background too, while the next item runs.
		envelope("tasks/send", message("two"))+","+envelope("tasks/get", `{}`)+","+envelope("s3cret", `{}`)+"]",
		"Prefer", "wait=1")
	var got []string
	request := ""
	for _, s := range spans.Ended() {
		if s.Name() == "POST /a2a/{agent}" {
			request = s.SpanContext().SpanID().String()
		}
	}
	for _, s := range spans.Ended() {
		if s.Parent().SpanID().String() == request {
			got = append(got, s.Name())
		}
	}
	if diff := cmp.Diff([]string{"tasks/send", "tasks/send", "tasks/get", "unknown method"}, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}
