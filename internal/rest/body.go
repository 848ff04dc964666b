package rest

import (
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
)

// payload is a request body: what could be read of it, and what could not. huma
// takes one error from a decoder and drops its details, so the decoder keeps
// them here until the domain has said what it finds wrong with the rest.
type payload[T any] struct {
	value  T
	broken []errs.Field
	err    error
}

// Schema documents the body as what is in it.
func (payload[T]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

func (p *payload[T]) decode(data []byte) { p.broken, p.err = httpx.Decode(data, &p.value) }

// flawed reports whether something could not be read.
func (p *payload[T]) flawed() bool { return p.err != nil || len(p.broken) > 0 }

// check joins what could not be read with the rules that the domain found
// broken, each field once.
func (p *payload[T]) check(domain error, more ...errs.Field) error {
	if p.err != nil {
		return p.err
	}
	fields := append(p.broken, more...)
	if slices.ContainsFunc(fields, func(f errs.Field) bool { return len(f.Path) == 0 }) {
		domain = nil // there is no object whose fields could be looked at
	}
	if domain != nil {
		e := errs.As(domain)
		if len(e.Fields) == 0 {
			return domain
		}
		for _, f := range e.Fields {
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

// failed reports whether the member was there but could not be read.
func (p *payload[T]) failed(name string) bool {
	return slices.ContainsFunc(p.broken, func(f errs.Field) bool { return f.Path.Equal(errs.At(name)) })
}

// notEmpty refuses "" for an optional field: left out it means the default, but
// an empty value is a mistake.
func notEmpty(name string, v *string) []errs.Field {
	if v != nil && *v == "" {
		return []errs.Field{{Path: errs.At(name), Message: "must not be empty; leave it out for the default"}}
	}
	return nil
}

// jsonFormat is the only format of the API, read by the one strict decoder.
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
