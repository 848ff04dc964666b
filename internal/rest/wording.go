package rest

import (
	"errors"
	"net/http"
	"slices"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/idempotency"
)

// worded rephrases the error of a service in terms of HTTP: a field of a GET request is a query
// parameter, a version is an ETag, and the key of a command is the Idempotency-Key header.
func worded(method string, err error) error {
	err = inSeconds(err)
	if method == http.MethodGet {
		err = httpx.InQuery(err)
	}
	e := errs.As(err)
	switch {
	case errors.Is(err, idempotency.ErrReused):
		return says(e, "this Idempotency-Key was already used with a different request; use a new key for a new request")
	case errors.Is(err, idempotency.ErrSealed):
		return says(e, "this request was already carried out with another credential, and only that credential can see "+
			"its secret again; use that credential, or revoke what was created and retry with a new Idempotency-Key")
	case e.Code == "request.stale" && e != errStale:
		return says(e, e.Message+" with its new ETag")
	}
	return err
}

// durations has the names of durations, which are numbers of seconds here.
var durations = map[string]string{
	"lease": "lease_seconds", "wait": "wait_seconds", "extend": "extend_seconds",
	"overlap": "overlap_seconds", "expires_in": "expires_in_seconds",
}

// spell returns the path of a field with the name that it has in REST.
func spell(p errs.Path) errs.Path {
	if name, ok := durations[p.Head()]; ok && len(p) == 1 {
		return errs.At(name)
	}
	return p
}

// inSeconds spells the fields of an error.
func inSeconds(err error) error {
	var e *errs.Error
	if !errors.As(err, &e) || !slices.ContainsFunc(e.Fields, isDuration) {
		return err
	}
	return e.Spelled(func(f errs.Field) errs.Field {
		if isDuration(f) {
			f.Path = spell(f.Path)
		}
		return f
	})
}

// isDuration reports whether a field is a duration. A field that the request does not have keeps the name
// that the client gave it.
func isDuration(f errs.Field) bool {
	return f.Message != httpx.UnknownField && !spell(f.Path).Equal(f.Path)
}

// says returns a copy of the error with another message.
func says(e *errs.Error, message string) error {
	out := *e
	out.Message = message
	return &out
}
