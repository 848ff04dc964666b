package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// collector receives spans by OTLP, over HTTP and over gRPC.
type collector struct {
	collectorpb.UnimplementedTraceServiceServer
	http, grpc string // URLs

	mu    sync.Mutex
	spans []seenSpan
}

// seenSpan is a span as the collector received it.
type seenSpan struct {
	service           string
	name              string
	kind              tracepb.Span_SpanKind
	trace, id, parent string   // in hexadecimal form
	links             []string // ids of spans
	attributes        map[string]string
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	web := httptest.NewServer(http.HandlerFunc(c.serveHTTP))
	t.Cleanup(web.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	rpc := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(rpc, c)
	go func() { _ = rpc.Serve(l) }()
	t.Cleanup(rpc.Stop)
	c.http, c.grpc = web.URL, "http://"+l.Addr().String()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the collector has:\n%s", c)
		}
	})
	return c
}

func (c *collector) serveHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = z
	}
	b, err := io.ReadAll(body)
	in := &collectorpb.ExportTraceServiceRequest{}
	if err == nil {
		err = proto.Unmarshal(b, in)
	}
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, fmt.Sprint("not OTLP: ", r.URL.Path, err), http.StatusBadRequest)
		return
	}
	out, _ := c.Export(r.Context(), in)
	b, _ = proto.Marshal(out)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(b)
}

// Export implements the service of gRPC.
func (c *collector) Export(
	_ context.Context, in *collectorpb.ExportTraceServiceRequest,
) (*collectorpb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range in.GetResourceSpans() {
		service := attributesOf(of.GetResource().GetAttributes())["service.name"]
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				seen := seenSpan{
					service: service, name: s.GetName(), kind: s.GetKind(), trace: hex.EncodeToString(s.GetTraceId()),
					id: hex.EncodeToString(s.GetSpanId()), parent: hex.EncodeToString(s.GetParentSpanId()),
					attributes: attributesOf(s.GetAttributes()),
				}
				for _, l := range s.GetLinks() {
					seen.links = append(seen.links, hex.EncodeToString(l.GetSpanId()))
				}
				c.spans = append(c.spans, seen)
			}
		}
	}
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

func attributesOf(list []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range list {
		if v, ok := a.GetValue().GetValue().(*commonpb.AnyValue_IntValue); ok {
			out[a.GetKey()] = fmt.Sprint(v.IntValue)
		} else {
			out[a.GetKey()] = a.GetValue().GetStringValue()
		}
	}
	return out
}

// find waits for a span that matches, and returns it.
func (c *collector) find(t *testing.T, what string, match func(seenSpan) bool) seenSpan {
	t.Helper()
	var found seenSpan
	eventually(t, soon, "the collector has "+what, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.IndexFunc(c.spans, match)
		if i >= 0 {
			found = c.spans[i]
		}
		return i >= 0
	})
	return found
}

// below waits for a span of that service and name below another one.
func (c *collector) below(t *testing.T, parent seenSpan, service, name string) seenSpan {
	t.Helper()
	return c.find(t, fmt.Sprintf("%s of %s below %s", name, service, parent.name), func(s seenSpan) bool {
		return s.service == service && s.name == name && s.trace == parent.trace && s.parent == parent.id
	})
}

func (c *collector) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b bytes.Buffer
	for _, s := range c.spans {
		fmt.Fprintf(&b, "%s %s ^%-16s %-8s %s →%s %v\n", s.trace, s.id, s.parent, s.service, s.name,
			strings.Join(s.links, ","), s.attributes)
	}
	return b.String()
}
