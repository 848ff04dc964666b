package rest

import (
	"net/http"
	"testing"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/idempotency"
)

func TestRefusalsAreWordedForHTTP(t *testing.T) {
	t.Parallel()
	field := errs.InvalidFields(errs.Field{Path: errs.At("items", 0), Message: "is bad"})
	for name, c := range map[string]struct {
		method         string
		err            error
		detail, member string
	}{
		"a version": {
			http.MethodPatch, errs.New(errs.Stale, "request.stale", "it changed; repeat the request"),
			"it changed; repeat the request with its new ETag", "",
		},
		"a tag": {http.MethodPatch, errStale, errStale.Message, ""},
		"a key": {
			http.MethodPost, idempotency.ErrReused,
			"this Idempotency-Key was already used with a different request; use a new key for a new request", "",
		},
		"a duration": {
			http.MethodPost, errs.InvalidFields(errs.Field{Path: errs.At("lease"), Message: "is bad"}),
			"lease_seconds is bad", "/lease_seconds",
		},
		"a field that is not known": {
			http.MethodPost, errs.InvalidFields(errs.Field{Path: errs.At("wait"), Message: httpx.UnknownField}),
			"wait is not a known field", "/wait",
		},
		"a body": {http.MethodPost, field, "items[0] is bad", "/items/0"},
		"a root": {
			http.MethodPost, errs.InvalidFields(errs.Field{Message: "must be an object"}),
			"the body must be an object", "",
		},
		"a parameter": {
			http.MethodGet, errs.InvalidFields(errs.Field{Path: errs.At("limit"), Message: "is bad"}),
			"limit is bad", "limit",
		},
	} {
		p := httpx.NewProblem(t.Context(), worded(c.method, c.err))
		member := ""
		for _, f := range p.Errors {
			if member = f.Parameter; f.Pointer != nil {
				member = *f.Pointer
			}
		}
		if p.Detail != c.detail || member != c.member || p.Code != errs.As(c.err).Code {
			t.Errorf("%s: %s %q %q, want %q %q", name, p.Code, p.Detail, member, c.detail, c.member)
		}
	}
}
