package httpx

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/errs"
)

// Place is the part of a request that contains a field.
type Place string

// The parts of a request.
const (
	Body   Place = "body"
	Query  Place = "query"
	Path   Place = "path"
	Header Place = "header"
)

// ProblemField locates one part of the request: Pointer is set for the body, Parameter otherwise.
type ProblemField struct {
	Pointer   *string `json:"pointer,omitzero" nullable:"false" doc:"JSON pointer into the body; empty: the body itself." example:"/title"`
	Parameter string  `json:"parameter,omitzero" doc:"The name of a query, path or header parameter." example:"limit"`
	In        Place   `json:"in" enum:"body,query,path,header" doc:"The part of the request." example:"query"`
	Detail    string  `json:"detail" doc:"The rule that was broken." example:"must be an integer between 1 and 100"`
}

// Pointer returns the path as a JSON pointer into a body with the same names.
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

// inBody names a part of the body in a sentence: skills[0].id.
func inBody(p errs.Path) string {
	if len(p) == 0 {
		return "the body"
	}
	return p.String()
}

// Part is a part of a request that broke a rule, with the name that it has in the request.
type Part struct {
	In      Place
	Name    string // a JSON pointer for the body, else the name of the parameter
	Message string
	Whole   bool // as in errs.Field
}

// partsError is an error about parts of a request. Its errs.Error has no fields.
type partsError struct {
	cause *errs.Error
	parts []Part
}

// Error implements error.
func (e *partsError) Error() string { return e.cause.Error() }

// Unwrap lets errs.As find the Error.
func (e *partsError) Unwrap() error { return e.cause }

// InvalidParts makes the error for parts of a request that broke a rule. Unlike the fields of an
// errs.Error, which are parts of the body, these can be anywhere.
func InvalidParts(parts ...Part) error {
	msgs := make([]string, len(parts))
	for i, p := range parts {
		name := p.Name
		if p.In == Body {
			name = inBody(errs.PathOf(jsontext.Pointer(p.Name).Tokens()))
		}
		msgs[i] = errs.Field{Message: p.Message, Whole: p.Whole}.In(name)
	}
	return &partsError{errs.New(errs.Invalid, "request.invalid", "%s", strings.Join(msgs, "; ")), parts}
}

// InQuery marks the fields of an error as query parameters.
func InQuery(err error) error {
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Invalid || len(e.Fields) == 0 {
		return err
	}
	parts := make([]Part, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = Part{In: Query, Name: f.Path.String(), Message: f.Message, Whole: f.Whole}
	}
	return InvalidParts(parts...)
}

// problemFields returns the parts of the request that an error is about.
func problemFields(err error, e *errs.Error) (out []ProblemField) {
	var own *partsError
	if errors.As(err, &own) {
		for _, p := range own.parts {
			out = append(out, p.field())
		}
		return out
	}
	for _, f := range e.Fields {
		out = append(out, Part{In: Body, Name: Pointer(f.Path), Message: f.Message}.field())
	}
	return out
}

func (p Part) field() ProblemField {
	if p.In == Body {
		return ProblemField{Pointer: &p.Name, In: Body, Detail: p.Message}
	}
	return ProblemField{Parameter: p.Name, In: p.In, Detail: p.Message}
}
