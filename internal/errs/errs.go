// Package errs defines the one error type that crosses package borders.
//
// A rule that refuses a command returns an *Error: its Kind says what sort of
// refusal it is, its Code is the stable name that clients may switch on, and its
// Message is a sentence that says what was wrong and what to do. Transports turn
// kinds into their own status codes; this package knows no HTTP, no JSON-RPC and
// no SQL.
package errs

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is the sort of a refusal.
type Kind uint8

// The kinds. The zero value is Internal, so that an error somebody forgot to
// classify is reported as our fault and never as the caller's.
const (
	Internal        Kind = iota
	Malformed            // the request cannot be read at all
	Invalid              // the request reads well, but fields of it break a rule
	Unauthenticated      // no credentials, or bad ones
	Forbidden            // known caller, missing right
	NotFound             // no such thing, or none that this caller may know of
	Conflict             // the current state does not allow it
	Stale                // the caller decided on an older version
	TooLarge             // over a size limit
	Unsupported          // a media type that is not understood
	RateLimited          // too many requests
	Unavailable          // try again later
)

var kindNames = [...]string{
	"internal", "malformed", "invalid", "unauthenticated", "forbidden", "not found", "conflict",
	"stale", "too large", "unsupported", "rate limited", "unavailable",
}

// String names the kind for logs.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", k)
}

// Place says which part of a request a Field lies in.
type Place string

// The parts of a request.
const (
	Body   Place = "body"
	Query  Place = "query"
	Path   Place = "path"
	Header Place = "header"
)

// Field names one part of the request that broke a rule.
type Field struct {
	In      Place
	Name    string // a JSON pointer such as "/title" in the body, else the parameter's name
	Message string
}

// Error is a refusal with everything a transport needs to explain it.
type Error struct {
	Kind       Kind
	Code       string // stable, dotted, e.g. "proposal.transition_not_allowed"
	Message    string // one sentence for the caller
	Fields     []Field
	Allowed    []string      // what would be accepted instead, if it can be listed
	Scope      string        // the missing scope, for Forbidden
	RetryAfter time.Duration // for RateLimited and Unavailable
	cause      error
}

// New makes an Error; the message is formatted as by fmt.Sprintf.
func New(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an Error around a cause that is logged but never shown to a caller.
func Wrap(cause error, kind Kind, code, format string, args ...any) *Error {
	e := New(kind, code, format, args...)
	e.cause = cause
	return e
}

// InvalidFields makes the error for fields that broke a rule.
func InvalidFields(fields ...Field) *Error {
	msgs := make([]string, len(fields))
	for i, f := range fields {
		msgs[i] = strings.TrimPrefix(f.Name, "/") + " " + f.Message
	}
	return &Error{Kind: Invalid, Code: "request.invalid", Message: strings.Join(msgs, "; "), Fields: fields}
}

// ErrNotFound is the one answer for an unknown id and for an org that the caller
// is not in. It carries no detail on purpose: both cases must look the same.
var ErrNotFound = New(NotFound, "resource.not_found", "there is no such resource, or it is not visible with these credentials")

// Error includes the cause, for logs; transports show Message only.
func (e *Error) Error() string {
	if e.cause != nil {
		return e.Message + ": " + e.cause.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// As finds the Error in err's chain. An error without one becomes Internal.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Wrap(err, Internal, "internal", "something went wrong on our side; quote the request id when you report it")
}

// KindOf returns the kind of err; an unclassified error is Internal.
func KindOf(err error) Kind { return As(err).Kind }
