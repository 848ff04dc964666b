package httpx

import (
	"errors"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
)

// Place says which part of a request a field lies in.
type Place string

// The parts of a request.
const (
	Body   Place = "body"
	Query  Place = "query"
	Path   Place = "path"
	Header Place = "header"
)

// ProblemField names one part of the request: Pointer is set in the body,
// Parameter anywhere else.
type ProblemField struct {
	Pointer   *string `json:"pointer,omitzero" nullable:"false" doc:"A JSON pointer into the body; empty: the body itself." example:"/title"`
	Parameter string  `json:"parameter,omitzero" doc:"The name of a query, path or header parameter." example:"limit"`
	In        Place   `json:"in" enum:"body,query,path,header" doc:"The part of the request." example:"query"`
	Detail    string  `json:"detail" doc:"The rule that was broken." example:"must be an integer between 1 and 100"`
}

// Pointer is the path as a JSON pointer into a body with the same names.
func Pointer(p errs.Path) string {
	var b strings.Builder
	for _, step := range p {
		b.WriteByte('/')
		switch step := step.(type) {
		case int:
			b.WriteString(strconv.Itoa(step))
		case string:
			b.WriteString(pointerEscapes.Replace(step))
		}
	}
	return b.String()
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// inBody names a part of the body in a sentence: its pointer without the first slash.
func inBody(p errs.Path) string { return strings.TrimPrefix(Pointer(p), "/") }

// Part is a part of a request that broke a rule, named as the request names it.
type Part struct {
	In      Place
	Name    string // a JSON pointer in the body, else the name of the parameter
	Message string
}

// partsError is an error about parts of a request. The Error in it has no fields.
type partsError struct {
	cause *errs.Error
	parts []Part
}

// Error implements error.
func (e *partsError) Error() string { return e.cause.Error() }

// Unwrap lets errs.As find the Error.
func (e *partsError) Unwrap() error { return e.cause }

// InvalidParts makes the error for parts of a request that broke a rule. Fields of an
// errs.Error are parts of the body.
func InvalidParts(parts ...Part) error {
	msgs := make([]string, len(parts))
	for i, p := range parts {
		msgs[i] = strings.TrimPrefix(p.Name, "/") + " " + p.Message
	}
	return &partsError{errs.New(errs.Invalid, "request.invalid", "%s", strings.Join(msgs, "; ")), parts}
}

// InQuery says that the fields of an error are parameters of the query.
func InQuery(err error) error {
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Invalid || len(e.Fields) == 0 {
		return err
	}
	parts := make([]Part, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = Part{In: Query, Name: f.Path.String(), Message: f.Message}
	}
	return InvalidParts(parts...)
}

// problemFields are the parts of the request that an error is about.
func problemFields(err error, e *errs.Error) (out []ProblemField) {
	var own *partsError
	if errors.As(err, &own) {
		for _, p := range own.parts {
			out = append(out, p.field())
		}
		return out
	}
	for _, f := range e.Fields {
		out = append(out, Part{Body, Pointer(f.Path), f.Message}.field())
	}
	return out
}

func (p Part) field() ProblemField {
	if p.In == Body {
		return ProblemField{Pointer: &p.Name, In: Body, Detail: p.Message}
	}
	return ProblemField{Parameter: p.Name, In: p.In, Detail: p.Message}
}
