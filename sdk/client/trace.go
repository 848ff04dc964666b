package client

import "context"

// Trace is a span in W3C Trace Context: the values of the headers traceparent and tracestate. The zero
// Trace is none.
type Trace struct {
	Parent string `json:"traceparent,omitempty"`
	State  string `json:"tracestate,omitempty"`
}

type traceKey struct{}

// WithTrace returns a context whose requests belong to the trace: they carry it in their headers, and
// a task that they send passes it on to the agent's worker.
func WithTrace(ctx context.Context, t Trace) context.Context {
	if t == (Trace{}) && TraceOf(ctx) == t {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceOf returns the trace of WithTrace, or none.
func TraceOf(ctx context.Context) Trace {
	t, _ := ctx.Value(traceKey{}).(Trace)
	return t
}
