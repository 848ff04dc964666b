package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
)

// huma has one error constructor per process. It is replaced here and not in Mount, because
// Mount may run more than once, and concurrently.
func init() {
	huma.NewError = func(status int, msg string, details ...error) huma.StatusError {
		return fromHuma(context.Background(), httpx.MaxBody, status, msg, details)
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, msg string, details ...error) huma.StatusError {
		limit := int64(httpx.MaxBody)
		if op := ctx.Operation(); op != nil && op.MaxBodyBytes > 0 {
			limit = op.MaxBodyBytes - 1
		}
		return fromHuma(ctx.Context(), limit, status, msg, details)
	}
}

// fromHuma converts an error of huma into a Problem. The guard and the domain catch nearly
// everything earlier; the rest is mostly about reading the body.
func fromHuma(ctx context.Context, limit int64, status int, msg string, details []error) *httpx.Problem {
	parts := make([]httpx.Part, 0, len(details))
	for _, d := range details {
		var e *errs.Error
		if errors.As(d, &e) {
			return httpx.NewProblem(ctx, e)
		}
		var detail *huma.ErrorDetail
		if errors.As(d, &detail) {
			parts = append(parts, partOf(detail))
		}
	}
	switch {
	case status == http.StatusRequestEntityTooLarge:
		return httpx.NewProblem(ctx, errs.New(errs.TooLarge, "request.too_large",
			"the body is larger than the limit of %d bytes", limit))
	case status == http.StatusUnsupportedMediaType:
		return httpx.NewProblem(ctx, errs.New(errs.Unsupported, "request.unsupported_media_type",
			"send the body as application/json"))
	case status == http.StatusRequestTimeout:
		p := httpx.NewProblem(ctx, errs.New(errs.Malformed, "request.timeout", "the body did not arrive in time; try again"))
		p.Status, p.Title = status, http.StatusText(status)
		return p
	case msg == "cannot read request body":
		// The connection broke. huma would report an internal error.
		return httpx.NewProblem(ctx, errs.New(errs.Malformed, "request.malformed",
			"the body is incomplete: the connection closed before its end"))
	case len(parts) > 0 && status < http.StatusInternalServerError:
		return httpx.NewProblem(ctx, httpx.InvalidParts(parts...))
	case status == http.StatusBadRequest:
		return httpx.NewProblem(ctx, errs.New(errs.Malformed, "request.malformed", "%s; send a JSON object", msg))
	case status == http.StatusUnprocessableEntity:
		return httpx.NewProblem(ctx, errs.New(errs.Invalid, "request.invalid", "%s", msg))
	}
	return httpx.NewProblem(ctx, errors.Join(append([]error{errors.New(msg)}, details...)...))
}

// partOf parses a location of huma such as "body.items[3].name" or "query.limit".
func partOf(d *huma.ErrorDetail) httpx.Part {
	in, name, _ := strings.Cut(d.Location, ".")
	if in == string(httpx.Body) {
		isSeparator := func(r rune) bool { return strings.ContainsRune(".[]", r) }
		name = httpx.Pointer(errs.PathOf(strings.FieldsFuncSeq(name, isSeparator)))
	}
	return httpx.Part{In: httpx.Place(in), Name: name, Message: d.Message}
}
