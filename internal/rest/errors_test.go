package rest

import (
	"context"
	"errors"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
)

func TestWhatHumaFindsWrongBecomesAProblemOfOurs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status  int
		msg     string
		details []error
		want    int
		code    string
		at      []string
	}{
		{400, "request body is required", nil, 400, "request.malformed", nil},
		{413, "too large", nil, 413, "request.too_large", nil},
		{415, "unknown content type", nil, 415, "request.unsupported_media_type", nil},
		{408, "request body read timeout", nil, 408, "request.timeout", nil},
		{500, "cannot read request body", []error{errors.New("unexpected EOF")}, 400, "request.malformed", nil},
		{422, "validation failed", nil, 422, "request.invalid", nil},
		{422, "validation failed", []error{
			&huma.ErrorDetail{Location: "body", Message: "m"},
			&huma.ErrorDetail{Location: "body.items[3].na/me", Message: "m"},
			&huma.ErrorDetail{Location: "query.limit", Message: "m"},
			&huma.ErrorDetail{Location: "header.If-Match", Message: "m"},
		}, 422, "request.invalid", []string{"", "/items/3/na~1me", "query:limit", "header:If-Match"}},
		{422, "validation failed", []error{errs.ErrNotFound}, 404, "resource.not_found", nil},
		{500, "unexpected error occurred", []error{errors.New("secret")}, 500, "internal", nil},
	} {
		p := fromHuma(context.Background(), 1000, c.status, c.msg, c.details)
		if p.Status != c.want || p.Code != c.code {
			t.Errorf("%d %q: got %d %s, want %d %s", c.status, c.msg, p.Status, p.Code, c.want, c.code)
		}
		if got := at(*p); len(got)+len(c.at) > 0 && !cmp.Equal(got, c.at) {
			t.Errorf("%d %q: %q, want %q", c.status, c.msg, got, c.at)
		}
	}
}
