package rest

import (
	"errors"
	"net/http"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/idempotency"
)

// worded says in the words of HTTP what a service refused: what a service calls a field is a
// parameter of the query, if the request has no body; a version is an ETag, and the key of a
// command a header.
func worded(method string, err error) error {
	if method == http.MethodGet {
		err = httpx.InQuery(err)
	}
	e := errs.As(err)
	switch {
	case errors.Is(err, idempotency.ErrReused):
		return says(e, "this Idempotency-Key was already used with a different request; use a new key for a new request")
	case errors.Is(err, idempotency.ErrSealed):
		return says(e, "this request was carried out before with another credential, and its secret is shown again to that credential only; "+
			"use it, or revoke what was made and send the request with a new Idempotency-Key")
	case e.Code == "request.stale" && e != errStale:
		return says(e, e.Message+" with its new ETag")
	}
	return err
}

// says is the error with another message.
func says(e *errs.Error, message string) error {
	out := *e
	out.Message = message
	return &out
}
