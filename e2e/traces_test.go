package e2e

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/metadata"

	"github.com/parley-dev/parley/internal/servertest"
	"github.com/parley-dev/parley/sdk/client"
	"github.com/parley-dev/parley/sdk/worker"
)

// tracerOf returns the tracer of a program beside the server, such as a user's sender or worker.
func tracerOf(t *testing.T, c *collector, service string) oteltrace.Tracer {
	t.Helper()
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(c.http+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service))))
	t.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return p.Tracer(service)
}

func traceparent(s oteltrace.Span) string {
	sc := s.SpanContext()
	return fmt.Sprintf("00-%s-%s-%s", sc.TraceID(), sc.SpanID(), sc.TraceFlags())
}

// remember is a receiver that remembers the traces of the requests that it gets.
type remember struct {
	url string

	mu      sync.Mutex
	parents []string
}

func newRemember(t *testing.T) *remember {
	t.Helper()
	r := &remember{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.parents = append(r.parents, req.Header.Get("traceparent"))
	}))
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

func (r *remember) has(match func(parent string) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.parents, match)
}

// work runs a worker until the test ends.
func (o *taskOrg) work(t *testing.T, handle worker.Handler) {
	t.Helper()
	w, err := worker.New(worker.Config{
		URL: o.server.base, Agent: o.agent, Key: o.worker, Logger: slog.New(slog.DiscardHandler), Grace: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, handle) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the worker ended: %v", err)
		}
	})
}

// sendMessage is a message with a push configuration, in a batch with a call that fails.
func sendMessage(id, push string) []object {
	return []object{
		envelope("SendMessage", object{
			"message": object{"messageId": id, "role": "ROLE_USER", "parts": []object{{"text": "hello"}}},
			"configuration": object{
				"returnImmediately":          true,
				"taskPushNotificationConfig": object{"url": push},
			},
		}),
		envelope("GetTask", object{"id": "nothing"}),
	}
}

// TestATraceCrossesSenderServerAndWorker: a sender, the server and a worker send their spans to one
// collector. The spans of a task form one trace, from the sender to the worker and back.
func TestATraceCrossesSenderServerAndWorker(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		t.Parallel()
		c := newCollector(t)
		env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.http}
		if e.name == "postgres" {
			env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.grpc, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}
		}
		env = append(env, "OTEL_SERVICE_NAME=server", "OTEL_BSP_SCHEDULE_DELAY=50")
		s := serveIn(t, e, env, append([]string{"--access-log", "--outbound-allow", "127.0.0.1"}, calm...)...)
		o := newTaskOrg(t, s, "traced")
		pushes, hooks := newRemember(t), newRemember(t)
		s.cli(t, "user", "create", "boss", "--org", o.org, "--admin")
		admin := hookOrg{o.org, s.newKey(t, o.org, "user:boss", "svc:tasks:read", "svc:tasks:write", "svc:admin:admin")}
		if err := admin.post(t.Context(), s.base, "/webhooks", object{
			"url": hooks.url, "types": []string{"task.completed"},
		}); err != nil {
			t.Fatal(err)
		}
		sender, work := tracerOf(t, c, "sender"), tracerOf(t, c, "worker")
		send := func(id string) string {
			_, ask := sender.Start(t.Context(), "ask")
			defer ask.End()
			res := must(post(t.Context(), s.base+"/a2a/"+o.agent, o.sender, sendMessage(id, pushes.url),
				"traceparent: "+traceparent(ask), "tracestate: sender=x"))(t)
			body := must(io.ReadAll(res.Body))(t)
			if _ = res.Body.Close(); !strings.Contains(string(body), "TASK_STATE_") {
				t.Fatalf("%s: %s", res.Status, body)
			}
			return ask.SpanContext().TraceID().String()
		}
		first := send("waits in the queue")
		o.work(t, func(ctx context.Context, task *worker.Task) error {
			if task.Trace.State != "sender=x" || client.TraceOf(ctx) != task.Trace {
				return fmt.Errorf("the worker got the trace %+v, its context %+v", task.Trace, client.TraceOf(ctx))
			}
			parts := strings.Split(task.Trace.Parent, "-")
			id, _ := oteltrace.TraceIDFromHex(parts[1])
			parent, _ := oteltrace.SpanIDFromHex(parts[2])
			_, span := work.Start(oteltrace.ContextWithRemoteSpanContext(ctx, oteltrace.NewSpanContext(
				oteltrace.SpanContextConfig{TraceID: id, SpanID: parent, TraceFlags: oteltrace.FlagsSampled})), "work")
			defer span.End()
			return task.Complete(client.WithTrace(ctx, client.Trace{Parent: traceparent(span)}), worker.Text("done"))
		})
		checkTrace(t, c, first, pushes, hooks)
		eventually(t, soon, "the worker waits", func() bool {
			return strings.Contains(metricsOf(t, s, ""), "parley_http_waits 1")
		})
		second := send("finds a waiting worker")
		checkTrace(t, c, second, pushes, hooks)
		checkGRPCSpans(t, c, s, o)
		// Of several requests in one bucket, the last one is its exemplar.
		if m := metricsOf(t, s, "application/openmetrics-text"); !strings.Contains(m, `# {trace_id="`+first+`"}`) &&
			!strings.Contains(m, `# {trace_id="`+second+`"}`) {
			t.Errorf("the latencies have no exemplar of the traces %s and %s:\n%s", first, second, m)
		}
		if m := metricsOf(t, s, ""); strings.Contains(m, "trace_id") {
			t.Error("the text format has exemplars")
		}
		if log := s.Stderr.String(); !strings.Contains(log, "trace_id="+first+" span_id=") {
			t.Errorf("no line of the log has the trace %s", first)
		}
		if all := c.String(); strings.Contains(all, o.sender) || strings.Contains(all, o.worker) {
			t.Error("a span contains a key")
		}
	})
}

// checkTrace checks the tree of spans of one task.
func checkTrace(t *testing.T, c *collector, trace string, pushes, hooks *remember) {
	t.Helper()
	ask := c.find(t, "the sender's span", func(s seenSpan) bool { return s.trace == trace && s.service == "sender" })
	request := c.below(t, ask, "server", "POST /a2a/{agent}")
	if request.kind != tracepb.Span_SPAN_KIND_SERVER || request.attributes["http.response.status_code"] != "200" ||
		request.attributes["parley.org"] != "traced" {
		t.Errorf("the request is %+v", request)
	}
	c.below(t, request, "server", "GetTask") // the other item of the batch
	send := c.below(t, request, "server", "SendMessage")
	if send.attributes["rpc.system"] != "jsonrpc" {
		t.Errorf("the method is %+v", send)
	}
	batch := c.below(t, send, "server", "store.batch")
	if !slices.Contains(batch.links, send.id) || batch.attributes["parley.writes"] == "" {
		t.Errorf("the batch is %+v, want a link to its write %s", batch, send.id)
	}
	claim := c.below(t, send, "server", "task.claim")
	poll := c.find(t, "the worker's request for the claim", func(s seenSpan) bool {
		return slices.Contains(claim.links, s.id)
	})
	if poll.name != "POST /api/v1/agents/{agent}/claim" && poll.name != "POST /api/v1/agents/{agent}/work" {
		t.Errorf("the claim is linked to %+v", poll)
	}
	work := c.below(t, claim, "worker", "work")
	report := c.below(t, work, "server", "task.report")
	if report.attributes["parley.status"] != "completed" || !slices.Contains(report.links, send.id) {
		t.Errorf("the report is %+v, want a link to %s", report, send.id)
	}
	exchange := c.find(t, "the worker's request with the report", func(s seenSpan) bool {
		return slices.Contains(report.links, s.id) && s.id != send.id
	})
	if exchange.name != "POST /api/v1/agents/{agent}/work" {
		t.Errorf("the report is linked to %+v", exchange)
	}
	for name, receiver := range map[string]*remember{"push delivery": pushes, "webhook delivery": hooks} {
		sent := c.below(t, send, "server", name)
		if sent.kind != tracepb.Span_SPAN_KIND_CLIENT {
			t.Errorf("%s has the kind %v", name, sent.kind)
		}
		if !receiver.has(func(parent string) bool { return parent == "00-"+trace+"-"+sent.id+"-01" }) {
			t.Errorf("%s: the receiver did not get the span %s", name, sent.id)
		}
	}
}

// checkGRPCSpans calls the agent over gRPC.
func checkGRPCSpans(t *testing.T, c *collector, s *server, o *taskOrg) {
	t.Helper()
	_, span := tracerOf(t, c, "sender").Start(t.Context(), "ask over gRPC")
	ctx := metadata.AppendToOutgoingContext(bearing(t.Context(), o.sender), "traceparent", traceparent(span))
	if _, err := dialGRPC(t, s).GetTask(ctx, &a2apb.GetTaskRequest{Tenant: o.agent, Id: "nothing"}); err == nil {
		t.Error("got a task that does not exist")
	}
	span.End()
	ask := c.find(t, "the sender's span", func(s seenSpan) bool { return s.name == "ask over gRPC" })
	request := c.below(t, ask, "server", "POST /lf.a2a.v1.A2AService/{method}")
	method := c.below(t, request, "server", "lf.a2a.v1.A2AService/GetTask")
	if method.attributes["rpc.system"] != "grpc" || method.attributes["rpc.grpc.status_code"] != "5" {
		t.Errorf("the method is %+v", method)
	}
}

func metricsOf(t *testing.T, s *server, accept string) string {
	t.Helper()
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/metrics", nil))(t)
	req.Header.Set("Accept", accept)
	res := must(taskClient.Do(req))(t)
	defer func() { _ = res.Body.Close() }()
	return string(must(io.ReadAll(res.Body))(t))
}

// TestASendersTracePassesThrough: a server that exports no spans passes the sender's trace on
// unchanged. An invalid one is ignored.
func TestASendersTracePassesThrough(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e engine) {
		t.Parallel()
		const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		s := serve(t, e, append([]string{"--push-allow", "127.0.0.1"}, calm...)...)
		o := newTaskOrg(t, s, "passed")
		pushes := newRemember(t)
		send := func(id string, headers ...string) {
			res := must(post(t.Context(), s.base+"/a2a/"+o.agent, o.sender, sendMessage(id, pushes.url), headers...))(t)
			_ = res.Body.Close()
		}
		send("a", "traceparent: "+parent, "tracestate: a=1,b=2")
		send("b", "traceparent: nonsense")
		send("c")
		got := make(chan client.Trace, 3)
		o.work(t, func(_ context.Context, task *worker.Task) error {
			got <- task.Trace
			return nil
		})
		want := []client.Trace{{Parent: parent, State: "a=1,b=2"}, {}, {}}
		for range want {
			if one := <-got; !slices.Contains(want, one) {
				t.Errorf("the worker got the trace %+v", one)
			} else {
				want = slices.Delete(want, slices.Index(want, one), slices.Index(want, one)+1)
			}
		}
		for _, sent := range []string{parent, ""} {
			eventually(t, soon, fmt.Sprintf("a push with the trace %q", sent), func() bool {
				return pushes.has(func(p string) bool { return p == sent })
			})
		}
		if pushes.has(func(p string) bool { return p != parent && p != "" }) {
			t.Errorf("pushes had the traces %q", pushes.parents)
		}
	})
}

// TestACollectorThatDoesNotRespond neither slows nor fails requests, nor keeps the server from
// stopping, and costs few lines of the log.
func TestACollectorThatDoesNotRespond(t *testing.T) {
	t.Parallel()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t) // accepts, and says nothing
	t.Cleanup(func() { _ = l.Close() })
	s := serveIn(t, engine{"sqlite", []string{"--data", t.TempDir()}}, []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + l.Addr().String(), "OTEL_BSP_SCHEDULE_DELAY=10",
		"OTEL_EXPORTER_OTLP_TIMEOUT=200", "OTEL_BSP_EXPORT_TIMEOUT=200", "OTEL_BSP_MAX_QUEUE_SIZE=64",
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=16",
	}, calm...)
	o := newTaskOrg(t, s, "silent")
	for i := range 500 {
		must(o.peer().send(t.Context(), o.agent, fmt.Sprint("t", i), "hello"))(t)
	}
	eventually(t, soon, "a line about the collector", func() bool {
		return strings.Contains(s.Stderr.String(), "traces could not be exported")
	})
	began := time.Now()
	if err := s.Stop(syscall.SIGTERM); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the server took %v to stop", took)
	}
	if n := strings.Count(s.Stderr.String(), "traces could not be exported"); n > 2 {
		t.Errorf("%d lines about the collector", n)
	}
}

// TestBadTraceSettingsAreRefused: the server does not start with settings that it would ignore.
func TestBadTraceSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{
		"OTEL_TRACES_EXPORTER=zipkin", "OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318",
	} {
		cmd := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir())
		cmd.Env = servertest.Environ(setting)
		out, err := cmd.CombinedOutput()
		name, _, _ := strings.Cut(setting, "=")
		if err == nil || !strings.Contains(string(out), name+" must be") {
			t.Errorf("%s: %v\n%s", setting, err, out)
		}
	}
}
