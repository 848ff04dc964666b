package httpx

import (
	"net/http"
	"slices"

	"github.com/parley-dev/parley/internal/trace"
)

// startSpan starts the span of a request whose route is known. It has neither the path nor the query,
// which may contain secrets. The span becomes part of the request's context.
func (rt *Router) startSpan(x *exchange) {
	method := x.request.Method
	if !slices.Contains(methods, method) {
		method = "_OTHER" // the client chooses it
	}
	parent := trace.Parse(x.request.Header["Traceparent"], x.request.Header["Tracestate"])
	x.Context, x.span = rt.tracer.StartIn(x.Context, parent, trace.Server, method+" "+x.route.pattern,
		trace.String("http.request.method", method), trace.String("http.route", x.route.pattern),
		trace.String("parley.request_id", x.id[0]))
}

// endSpan ends the span of a request.
func (x *exchange) endSpan(status int) {
	x.span.Set(trace.Int("http.response.status_code", status))
	if x.caller != nil {
		x.span.Set(trace.String("parley.org", x.caller.Org))
	}
	if status >= http.StatusInternalServerError && !x.abandoned(status) {
		x.span.Fail(http.StatusText(status))
	}
	x.span.End()
}

// sentTrace returns the trace that the client sent, or nil. The header is read only by what passes
// the trace on, such as a new task.
func (x *exchange) sentTrace() *trace.Context {
	parent := x.request.Header["Traceparent"]
	if len(parent) == 0 {
		return nil
	}
	c := trace.Parse(parent, x.request.Header["Tracestate"])
	return &c
}
