package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// The views are the OpenAPI document in the form that the template of the page needs.
type (
	docView struct {
		Title, Version, Intro string
		Server                string // URL of this server, for examples
		Guides                string // URL of the guides
		Tags                  []tagView
		Schemas               []schemaView
	}
	tagView struct {
		Name, Description string
		Operations        []operationView
	}
	operationView struct {
		ID, Method, Path, Summary, Description string
		Parameters                             []fieldView
		Body                                   *schemaView
		Responses                              []responseView
		Curl                                   string
	}
	responseView struct {
		Code, Description, Schema string
		Good                      bool
		Headers                   []string
	}
	schemaView struct {
		Name   string
		Fields []fieldView
	}
	fieldView struct {
		Name, In, Type, Ref, Description string
		Required                         bool
		Rules                            []string
	}
)

// guides is where the documents of the project are published.
const guides = "https://github.com/parley-dev/parley/blob/main/docs"

func viewOf(doc *huma.OpenAPI, server string) docView {
	if server == "" {
		server = "$PARLEY_SERVER"
	}
	v := docView{
		Title: doc.Info.Title, Version: doc.Info.Version, Intro: doc.Info.Description, Server: server, Guides: guides,
	}
	schemas := doc.Components.Schemas.Map()
	for _, tag := range doc.Tags {
		t := tagView{Name: tag.Name, Description: tag.Description}
		for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
			item := doc.Paths[path]
			for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
				if op != nil && slices.Contains(op.Tags, tag.Name) {
					t.Operations = append(t.Operations, operationViewOf(doc, op, server))
				}
			}
		}
		v.Tags = append(v.Tags, t)
	}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		v.Schemas = append(v.Schemas, schemaView{Name: name, Fields: fieldsOf(schemas[name])})
	}
	return v
}

func operationViewOf(doc *huma.OpenAPI, op *huma.Operation, server string) operationView {
	schemas := doc.Components.Schemas.Map()
	v := operationView{
		ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, Description: op.Description,
	}
	for _, p := range op.Parameters {
		f := fieldViewOf(p.Name, p.Schema)
		f.In, f.Required, f.Description = p.In, p.Required, p.Description
		v.Parameters = append(v.Parameters, f)
	}
	var body *huma.Schema
	if op.RequestBody != nil {
		name := refName(op.RequestBody.Content["application/json"].Schema)
		body = schemas[name]
		v.Body = &schemaView{Name: name, Fields: fieldsOf(body)}
	}
	for _, code := range slices.Sorted(maps.Keys(op.Responses)) {
		res := resolveResponse(doc, op.Responses[code])
		r := responseView{
			Code: code, Description: res.Description, Good: code < "400", Headers: slices.Sorted(maps.Keys(res.Headers)),
		}
		for _, media := range res.Content {
			r.Schema = cmp.Or(r.Schema, refName(media.Schema))
		}
		v.Responses = append(v.Responses, r)
	}
	v.Curl = curl(op, body, server)
	return v
}

// fieldsOf lists the fields of a schema, required ones first.
func fieldsOf(s *huma.Schema) []fieldView {
	var out []fieldView
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		f := fieldViewOf(name, s.Properties[name])
		f.Required = slices.Contains(s.Required, name)
		out = append(out, f)
	}
	place := func(f fieldView) int {
		if i := slices.Index(s.Required, f.Name); i >= 0 {
			return i
		}
		return len(s.Required)
	}
	slices.SortStableFunc(out, func(a, b fieldView) int { return cmp.Compare(place(a), place(b)) })
	return out
}

func fieldViewOf(name string, s *huma.Schema) fieldView {
	f := fieldView{Name: name, Type: s.Type, Description: s.Description, Ref: refName(s)}
	if s.Type == huma.TypeArray {
		f.Type, f.Ref = "array of "+s.Items.Type, refName(s.Items)
		if f.Ref != "" {
			f.Type = "array of"
		}
	}
	if s.Nullable {
		f.Type += " or null"
	}
	if s.Format == "date-time" {
		f.Type = "time"
	}
	var values []string
	for _, e := range s.Enum {
		if e != nil {
			values = append(values, fmt.Sprint(e))
		}
	}
	if len(values) > 0 {
		f.Rules = append(f.Rules, strings.Join(values, ", "))
	}
	switch {
	case s.MaxLength != nil && s.MinLength != nil:
		f.Rules = append(f.Rules, fmt.Sprintf("%d to %d characters", *s.MinLength, *s.MaxLength))
	case s.MaxLength != nil:
		f.Rules = append(f.Rules, fmt.Sprintf("up to %d characters", *s.MaxLength))
	case s.Minimum != nil && s.Maximum != nil:
		f.Rules = append(f.Rules, fmt.Sprintf("%.0f to %.0f", *s.Minimum, *s.Maximum))
	case s.Minimum != nil:
		f.Rules = append(f.Rules, fmt.Sprintf("at least %.0f", *s.Minimum))
	}
	if s.Default != nil {
		f.Rules = append(f.Rules, fmt.Sprintf("default %v", s.Default))
	}
	return f
}

func refName(s *huma.Schema) string {
	if s == nil {
		return ""
	}
	return strings.TrimPrefix(s.Ref, "#/components/schemas/")
}

// curl returns a command that calls the operation with its examples.
func curl(op *huma.Operation, body *huma.Schema, server string) string {
	path := op.Path
	for _, p := range op.Parameters {
		if p.In == "path" && len(p.Schema.Examples) > 0 {
			path = strings.ReplaceAll(path, "{"+p.Name+"}", fmt.Sprint(p.Schema.Examples[0]))
		}
	}
	line := "curl"
	if op.Method != "GET" {
		line += " -X " + op.Method
	}
	line += ` "` + server + path + `"`
	if op.Security == nil || len(op.Security) > 1 {
		line += " \\\n  -H \"Authorization: Bearer $PARLEY_KEY\""
	}
	if body != nil {
		line += " \\\n  -H \"Content-Type: application/json\" \\\n  -d '" + example(body) + "'"
	}
	return line
}

// example returns a JSON object with the examples of the schema.
func example(s *huma.Schema) string {
	var b strings.Builder
	for _, f := range fieldsOf(s) {
		p := s.Properties[f.Name]
		if len(p.Examples) == 0 {
			continue
		}
		value, err := json.Marshal(p.Examples[0])
		if err != nil {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q: %s", f.Name, value)
	}
	return "{" + b.String() + "}"
}
