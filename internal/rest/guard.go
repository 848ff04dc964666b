package rest

import (
	"cmp"
	"context"
	"mime"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

// guard stands before an operation. It authorizes first: whoever may not ask
// learns nothing from the validation of what was asked. An id that no record can
// have is a 404 like any unknown one. Then it checks what needs no service: the
// media type and the parameters.
func (a *api) guard(op operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		access, err := identity.Authorize(httpx.CallerOf(r.Context()), r.PathValue("org"), op.action)
		if err == nil && op.validID != nil && !op.validID(pathID(r)) {
			err = errs.ErrNotFound
		}
		if err == nil {
			err = checkRequest(ctx.Operation(), r)
		}
		if err != nil {
			if r.Method == http.MethodPatch && errs.KindOf(err) == errs.Unsupported {
				w.Header().Set("Accept-Patch", "application/json") // RFC 5789, 2.2
			}
			a.refused(r, op, "", err)
			httpx.WriteError(w, r, err)
			return
		}
		pass(ctx, r, &call{Access: access, request: r}, next)
	}
}

// pathID is the id in the path; that of a member is its ref.
func pathID(r *http.Request) string { return cmp.Or(r.PathValue("id"), r.PathValue("ref")) }

// refused tells the audit log of an administrative action that was not done.
func (a *api) refused(r *http.Request, op operation, target string, cause error) {
	if op.audit == "" {
		return
	}
	org := r.PathValue("org")
	if c := httpx.CallerOf(r.Context()); op.self && c != nil {
		org = c.Org
	}
	err := a.admin.Refused(r.Context(), org, op.audit, cmp.Or(target, pathID(r)), cause)
	if err != nil {
		a.router.Log().ErrorContext(r.Context(), "a refusal is missing in the audit log", "error", err, "request_id", httpx.RequestID(r.Context()))
	}
}

// guardWorker is guard for the calls of workers: they name no org, and what
// counts is whether the caller may work for the agent.
func (a *api) guardWorker(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	post, err := a.workers.Serve(r.Context(), httpx.CallerOf(r.Context()), r.PathValue("agent"))
	if err == nil {
		err = checkRequest(ctx.Operation(), r)
	}
	if err != nil {
		httpx.WriteError(w, r, err)
		return
	}
	pass(ctx, r, &call{post: post, request: r}, next)
}

// guardSelf is guard for what any credential may ask about itself. What changes its keys is
// authorized further by the operation.
func (a *api) guardSelf(op operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		caller, org := httpx.CallerOf(r.Context()), ""
		if caller != nil {
			org = caller.Org
		}
		access, err := identity.Authorize(caller, org, identity.ReadSelf)
		if err == nil {
			err = checkRequest(ctx.Operation(), r)
			if op.validID != nil && !op.validID(pathID(r)) {
				err = errs.ErrNotFound
			}
		}
		if err != nil {
			httpx.WriteError(w, r, err)
			return
		}
		pass(ctx, r, &call{Access: access, request: r}, next)
	}
}

func pass(ctx huma.Context, r *http.Request, c *call, next func(huma.Context)) {
	// Answers are JSON whatever is asked for, so there is nothing to negotiate.
	delete(r.Header, "Accept")
	next(huma.WithContext(ctx, context.WithValue(r.Context(), callKey{}, c)))
}

func checkRequest(op *huma.Operation, r *http.Request) error {
	if op.RequestBody != nil {
		if err := checkMediaType(r.Header); err != nil {
			return err
		}
		if err := httpx.CheckLength(r, op.MaxBodyBytes-1); err != nil {
			return err
		}
	}
	return checkParameters(op.Parameters, r)
}

// checkMediaType lets JSON and its relatives pass, and takes a missing type for JSON. The
// formats of patches are refused: a change here is an object with the fields to change,
// where null has another meaning than in a merge patch, and is no list of operations.
func checkMediaType(h http.Header) error {
	given := h["Content-Type"]
	if len(given) == 0 {
		return nil
	}
	mt, params, err := mime.ParseMediaType(given[0])
	charset := params["charset"]
	ok := err == nil && len(given) == 1 && (charset == "" || strings.EqualFold(charset, "utf-8")) &&
		(mt == "application/json" || strings.HasPrefix(mt, "application/") && strings.HasSuffix(mt, "+json") && !strings.HasSuffix(mt, "patch+json"))
	if !ok {
		return errs.New(errs.Unsupported, "request.unsupported_media_type", "send the body as application/json in UTF-8")
	}
	h["Content-Type"] = []string{"application/json"} // one spelling for what comes after
	return nil
}
