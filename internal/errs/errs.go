// Package errs defines the one error type that crosses package borders.
//
// A rule that refuses a command returns an *Error: its Kind says what sort of
// refusal it is, its Code is the stable name that clients may switch on, and its
// Message is a sentence that says what was wrong and what to do. Fields name what
// broke a rule by a Path, in the words of the rule's package. Transports turn kinds
// into their own status codes and paths into their own spelling; this package knows
// no HTTP, no JSON-RPC and no SQL.
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

// Field is a part of a command or a query that broke a rule.
type Field struct {
	Path    Path
	Message string // follows the name of the part: "must not be empty"
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
	listed     bool // Message is the list of Fields
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
	e := &Error{Kind: Invalid, Code: "request.invalid", Fields: fields, listed: true}
	e.Message = e.Explain(Path.String)
	return e
}

// Explain is the message as a transport words it, which spells the paths of fields itself.
func (e *Error) Explain(spell func(Path) string) string {
	if !e.listed {
		return e.Message
	}
	msgs := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		msgs[i] = spell(f.Path) + " " + f.Message
	}
	return strings.Join(msgs, "; ")
}

// Spelled is the error with the fields as a transport names them.
func (e *Error) Spelled(spell func(Field) Field) *Error {
	out := *e
	out.Fields = make([]Field, len(e.Fields))
	for i, f := range e.Fields {
		out.Fields[i] = spell(f)
	}
	out.Message = out.Explain(Path.String)
	return &out
}

// CodeExists is the code of a conflict with something that has the same id.
const CodeExists = "resource.exists"

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
