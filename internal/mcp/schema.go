package mcp

import (
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schemas come from the types; lists and limits come from the domain, so that each rule is written
// once. The helpers below add them.

func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("mcp: %v", err)) // a programming error, found at the start
	}
	return s
}

// inputSchema allows no other properties and no null: a missing value is left out.
func inputSchema[T any](limits func(*jsonschema.Schema)) *jsonschema.Schema {
	s := schemaOf[T]()
	visit(s, func(s *jsonschema.Schema) {
		s.Types = slices.DeleteFunc(s.Types, func(t string) bool { return t == "null" })
		if len(s.Types) == 1 {
			s.Type, s.Types = s.Types[0], nil
		}
	})
	if limits != nil {
		limits(s)
	}
	return s
}

// outputSchema allows other properties: clients must not break when a later version adds a field.
func outputSchema[T any]() *jsonschema.Schema {
	s := schemaOf[T]()
	visit(s, func(s *jsonschema.Schema) { s.AdditionalProperties = nil })
	return s
}

func visit(s *jsonschema.Schema, edit func(*jsonschema.Schema)) {
	edit(s)
	if s.Items != nil {
		visit(s.Items, edit)
	}
	for _, p := range s.Properties {
		visit(p, edit)
	}
}

func length(s *jsonschema.Schema, name string, low, high int) {
	p := s.Properties[name]
	if low > 0 {
		p.MinLength = &low
	}
	p.MaxLength = &high
}

func oneOf[S ~string](s *jsonschema.Schema, name string, known []S, more ...S) {
	for _, k := range append(slices.Clone(known), more...) {
		s.Properties[name].Enum = append(s.Properties[name].Enum, string(k))
	}
}

func between(s *jsonschema.Schema, name string, low, high int) {
	p := s.Properties[name]
	l, h := float64(low), float64(high)
	p.Minimum, p.Maximum = &l, &h
}

func byDefault(s *jsonschema.Schema, name, json string) {
	s.Properties[name].Default = []byte(json)
}
