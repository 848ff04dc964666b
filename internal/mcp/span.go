package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/trace"
)

// traced runs each method in a span. The span of a tool has its name; other names are not shown,
// because the client chooses them.
func (s *server) traced(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (_ sdk.Result, err error) {
		name := method
		if call, ok := req.(*sdk.CallToolRequest); ok && call.Params != nil {
			if _, known := s.actions[call.Params.Name]; known {
				name += " " + call.Params.Name
			}
		}
		ctx, span := s.Tracer.Start(ctx, trace.Internal, name,
			trace.String("rpc.system", "mcp"), trace.String("rpc.method", method))
		defer func() {
			if err != nil && errs.KindOf(err) == errs.Internal {
				span.Fail("the method failed")
			}
			span.End()
		}()
		return next(ctx, method, req)
	}
}
