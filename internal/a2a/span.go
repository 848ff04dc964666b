package a2a

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/trace"
)

// The bindings, as spans name them.
const (
	rpcJSON = "jsonrpc"
	rpcREST = "http+json"
	rpcGRPC = "grpc"
)

// unknownMethod is the name of spans of methods that do not exist: the client chooses them.
const unknownMethod = "unknown method"

// oneTraced is one in a span of its own.
func (c *call) oneTraced(req *request, out []byte) (b []byte, err *rpcError) {
	if c.s.Tracer == nil {
		return c.one(req, out)
	}
	// A copy: what an item starts in the background may use its context after the next one has begun.
	item := *c
	name := req.method
	if _, ok := c.s.table[name]; !ok {
		name = unknownMethod
	}
	span := item.startSpan(rpcJSON, name)
	defer span.End() // also after a panic
	b, err = item.one(req, out)
	c.waited, c.blockUntil = item.waited, item.blockUntil
	if err != nil {
		endSpan(span, err)
	}
	return b, err
}

// openTraced is open in a span, which ends when the stream begins.
func (c *call) openTraced(system, name string, m *method, params []byte) (*sseStream, error) {
	span := c.startSpan(system, name)
	defer span.End() // also after a panic
	st, err := c.open(m, params)
	endSpan(span, err)
	return st, err
}

// startSpan starts the span of a method. It becomes part of the call's context.
func (c *call) startSpan(system, method string) (span trace.Span) {
	if c.s.Tracer == nil {
		return span
	}
	c.Context, span = c.s.Tracer.Start(c.Context, trace.Internal, method,
		trace.String("rpc.system", system), trace.String("rpc.method", method), trace.String("parley.agent", c.agent))
	return span
}

// endSpan ends the span of a method. The refusal of a request is not a failure.
func endSpan(span trace.Span, err error) {
	if !span.On() {
		return
	}
	var own *rpcError
	switch {
	case err == nil:
	case errors.As(err, &own):
		span.Set(trace.Int("rpc.jsonrpc.error_code", own.code))
		if own.code == codeInternal {
			span.Fail("the method failed")
		}
	case errs.KindOf(err) == errs.Internal:
		span.Fail("the method failed")
	}
	span.End()
}

// startGRPC starts the span of a gRPC method, such as "/lf.a2a.v1.A2AService/GetTask".
func (s *server) startGRPC(ctx context.Context, method string) (context.Context, trace.Span) {
	if s.Tracer == nil {
		return ctx, trace.Span{}
	}
	return s.Tracer.Start(ctx, trace.Internal, method[1:],
		trace.String("rpc.system", rpcGRPC), trace.String("rpc.method", method[1:]))
}

func endGRPC(span trace.Span, err error) {
	if !span.On() {
		return
	}
	code := status.Code(err)
	span.Set(trace.Int("rpc.grpc.status_code", int(code)))
	if grpcFailed[code] {
		span.Fail(code.String())
	}
	span.End()
}

// grpcFailed are the codes that mean a failure of the server.
var grpcFailed = map[codes.Code]bool{
	codes.Unknown: true, codes.DeadlineExceeded: true, codes.Unimplemented: true, codes.Internal: true,
	codes.Unavailable: true, codes.DataLoss: true,
}

// tracedStream is a stream whose handler runs in a span.
type tracedStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s tracedStream) Context() context.Context { return s.ctx }
