package rest

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// call is the request of a handler, beside the decoded input.
type call struct {
	identity.Access
	post    dispatch.Post // of a worker's call, instead of the Access
	to      dispatch.Call // of a sender's call, instead of the Access
	request *http.Request
	// response is for handlers that write their response themselves, or wait.
	response http.ResponseWriter
	accept   []string // the Accept header
	target   string   // target of an audited action, if the path does not contain it
}

type callKey struct{}

// register adds an operation with its guard and documentation. It converts all errors of the
// handler into problems.
func register[I, O any](a *api, op operation, handle func(context.Context, *call, *I) (*O, error)) {
	doc := op.document()
	doc.Middlewares = huma.Middlewares{a.guard(op)}
	switch {
	case op.worker:
		doc.Middlewares = huma.Middlewares{a.guardWorker}
	case op.sender:
		doc.Middlewares = huma.Middlewares{a.guardSender}
	case op.self:
		doc.Middlewares = huma.Middlewares{a.guardSelf(op)}
	}
	huma.Register(a.huma, doc, func(ctx context.Context, in *I) (*O, error) {
		c := ctx.Value(callKey{}).(*call)
		out, err := handle(ctx, c, in)
		if err == nil {
			err = take(ctx, out)
		}
		if err != nil {
			a.refused(c.request, op, c.target, err)
			return nil, httpx.NewProblem(ctx, worded(op.method, err))
		}
		return out, nil
	})
}
