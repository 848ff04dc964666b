package rest

import (
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
)

// payload is a decoded request body with its decoding errors. huma accepts a single error from
// a decoder and drops its details, so they are kept here and later reported together with the
// rules of the domain that the body breaks.
type payload[T any] struct {
	value  T
	broken []errs.Field
	err    error
}

// Schema documents the body by the schema of T.
func (payload[T]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

func (p *payload[T]) decode(data []byte) { p.broken, p.err = httpx.Decode(data, &p.value) }

// flawed reports whether decoding failed for the body or for one of its fields.
func (p *payload[T]) flawed() bool { return p.err != nil || len(p.broken) > 0 }

// check merges the decoding errors with the errors of the domain. Each field is reported once.
func (p *payload[T]) check(domain error, more ...errs.Field) error {
	if p.err != nil {
		return p.err
	}
	fields := append(p.broken, more...)
	if slices.ContainsFunc(fields, func(f errs.Field) bool { return len(f.Path) == 0 }) {
		domain = nil // the body is not an object, so it has no fields to check
	}
	if domain != nil {
		e := errs.As(domain)
		if len(e.Fields) == 0 {
			return domain
		}
		for _, f := range e.Fields {
			f.Path = spell(f.Path)
			if !slices.ContainsFunc(fields, func(known errs.Field) bool { return known.Path.Equal(f.Path) }) {
				fields = append(fields, f)
			}
		}
	}
	if len(fields) > 0 {
		return errs.InvalidFields(fields...)
	}
	return nil
}

// failed reports whether the member was present but could not be decoded.
func (p *payload[T]) failed(name string) bool {
	return slices.ContainsFunc(p.broken, func(f errs.Field) bool { return f.Path.Equal(errs.At(name)) })
}

// notEmpty rejects "" for an optional field. Leaving the field out selects the default; an empty
// value is a mistake.
func notEmpty(name string, v *string) []errs.Field {
	if v != nil && *v == "" {
		return []errs.Field{{Path: errs.At(name), Message: "must not be empty; leave it out to use the default"}}
	}
	return nil
}

// jsonFormat is the only format of the API. Request bodies go through the strict decoder.
var jsonFormat = huma.Format{
	Marshal: httpx.WriteJSON,
	Unmarshal: func(data []byte, v any) error {
		if p, ok := v.(interface{ decode([]byte) }); ok {
			p.decode(data)
			return nil
		}
		return json.Unmarshal(data, v)
	},
}
