// Package errs defines the error type that crosses package borders.
//
// A rule that refuses a command returns an *Error. Its Kind classifies the refusal, its Code is a
// stable name that clients may switch on, and its Message is a sentence that says what was wrong
// and what to do. Fields locate the parts that broke a rule by a Path, in the terms of the rule's
// package. Transports map kinds to status codes and paths to their own spelling; this package knows
// no HTTP, no JSON-RPC and no SQL.
package errs

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind classifies a refusal.
type Kind uint8

// The kinds. The zero value is Internal, so that an unclassified error is reported as the server's
// fault and never as the caller's.
const (
	Internal        Kind = iota
	Malformed            // the request cannot be parsed
	Invalid              // the request was parsed, but fields break a rule
	Unauthenticated      // missing or bad credentials
	Forbidden            // known caller, missing permission
	NotFound             // the thing does not exist, or the caller may not know of it
	Conflict             // the current state does not allow it
	Stale                // the caller decided on an older version (If-Match)
	TooLarge             // over a size limit
	Unsupported          // the media type is not supported
	RateLimited          // too many requests
	Unavailable          // try again later
)

var kindNames = [...]string{
	"internal", "malformed", "invalid", "unauthenticated", "forbidden", "not found", "conflict",
	"stale", "too large", "unsupported", "rate limited", "unavailable",
}

// String returns the name of the kind, for logs.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", k)
}

// Field is a part of a command or query that broke a rule.
type Field struct {
	Path    Path
	Message string // a predicate: "must not be empty"

	// Whole marks a Message that is a sentence by itself, such as an error about the value. A
	// colon separates it from the path.
	Whole bool
}

// In returns the message about a part with the name.
func (f Field) In(name string) string {
	switch {
	case name == "":
		return f.Message
	case f.Whole:
		return name + ": " + f.Message
	}
	return name + " " + f.Message
}

// Refused returns the field at the path, with the message of the error about its value.
func Refused(path Path, err error) Field {
	return Field{Path: path, Message: As(err).Message, Whole: true}
}

// NewField returns the problem of a named part.
func NewField(name, message string) Field { return Field{Path: At(name), Message: message} }

// Error is a refusal with everything a transport needs to explain it.
type Error struct {
	Kind       Kind
	Code       string // stable, dotted, e.g. "proposal.transition_not_allowed"
	Message    string // one sentence for the caller
	Fields     []Field
	Allowed    []string      // the values that would be accepted, if they can be listed
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

// InvalidFields makes the error for fields that broke a rule. Its message lists them.
func InvalidFields(fields ...Field) *Error {
	e := &Error{Kind: Invalid, Code: "request.invalid", Fields: fields, listed: true}
	e.Message = e.Explain(Path.String)
	return e
}

// Explain returns the message with the paths of fields as a transport spells them.
func (e *Error) Explain(spell func(Path) string) string {
	if !e.listed {
		return e.Message
	}
	msgs := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		msgs[i] = f.In(spell(f.Path))
	}
	return strings.Join(msgs, "; ")
}

// Spelled returns a copy of the error with the fields as a transport names them.
func (e *Error) Spelled(spell func(Field) Field) *Error {
	out := *e
	out.Fields = make([]Field, len(e.Fields))
	for i, f := range e.Fields {
		out.Fields[i] = spell(f)
	}
	out.Message = out.Explain(Path.String)
	return &out
}

// CodeExists is the code of a conflict with a resource that has the same id.
const CodeExists = "resource.exists"

// ErrNotFound is returned for an unknown id and for an org that the caller is not in.
// It carries no detail on purpose: both cases must look the same.
var ErrNotFound = New(NotFound, "resource.not_found",
	"there is no such resource, or it is not visible with these credentials")

// Error includes the cause, for logs. Transports show Message only.
func (e *Error) Error() string {
	if e.cause != nil {
		return e.Message + ": " + e.cause.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// As returns the first *Error in err's chain. An error without one becomes Internal.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Wrap(err, Internal, "internal",
		"something went wrong on our side; quote the request id when you report it")
}

// KindOf returns the kind of err; an unclassified error is Internal.
func KindOf(err error) Kind { return As(err).Kind }
