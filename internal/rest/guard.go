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
	"github.com/parley-dev/parley/internal/task"
)

// guard runs before an operation. It authorizes first, so that a caller without access learns
// nothing from validation errors. A malformed id is a 404, like an unknown one. Then it checks
// the media type and the parameters.
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
		pass(ctx, r, &call{Access: access, request: r, response: w}, next)
	}
}

// pathID returns the id in the path. Members are identified by their ref.
func pathID(r *http.Request) string { return cmp.Or(r.PathValue("id"), r.PathValue("ref")) }

// refused writes a rejected administrative action to the audit log.
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
		a.router.Log().ErrorContext(r.Context(), "writing a refusal to the audit log failed",
			"error", err, "request_id", httpx.RequestID(r.Context()))
	}
}

// guardWorker is the guard of the worker operations. Their path has no org; the caller must be
// allowed to work for the agent.
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

// guardSender is the guard of operations on tasks that the caller sent. Their path has no org; the
// caller must be allowed to call the agent.
func (a *api) guardSender(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	to, err := a.tasks.Reach(r.Context(), httpx.CallerOf(r.Context()), r.PathValue("agent"))
	if err == nil && !task.ValidID(r.PathValue("id")) {
		err = errs.ErrNotFound
	}
	if err == nil {
		err = checkRequest(ctx.Operation(), r)
	}
	if err != nil {
		httpx.WriteError(w, r, err)
		return
	}
	pass(ctx, r, &call{to: to, request: r}, next)
}

// guardSelf is the guard of operations about the caller. Any credential passes; operations that
// change keys authorize further.
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
	// Other responses than streams are always JSON, so there is nothing to negotiate.
	c.accept = r.Header["Accept"]
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

// checkMediaType accepts application/json, application/*+json, and a missing media type. It
// rejects patch formats: a change is an object with the fields to change, null differs from null
// in a merge patch, and a list of operations is not supported.
func checkMediaType(h http.Header) error {
	given := h["Content-Type"]
	if len(given) == 0 {
		return nil
	}
	mt, params, err := mime.ParseMediaType(given[0])
	charset := params["charset"]
	isJSON := mt == "application/json" ||
		strings.HasPrefix(mt, "application/") && strings.HasSuffix(mt, "+json") && !strings.HasSuffix(mt, "patch+json")
	ok := err == nil && len(given) == 1 && (charset == "" || strings.EqualFold(charset, "utf-8")) && isJSON
	if !ok {
		return errs.New(errs.Unsupported, "request.unsupported_media_type", "send the body as application/json in UTF-8")
	}
	h["Content-Type"] = []string{"application/json"} // normalized for the handlers
	return nil
}
