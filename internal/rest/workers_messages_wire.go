package rest

import (
	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/task"
)

// Package wire encodes and decodes messages, parts and artifacts. These are the types under which
// operations carry them, and their schemas.
type (
	message         jsontext.Value
	nullableMessage jsontext.Value
	messageList     jsontext.Value
	artifactList    jsontext.Value
	reportMessage   jsontext.Value
	reportArtifacts jsontext.Value
	anything        jsontext.Value // a JSON object, or null
)

// MarshalJSON returns the encoding of package wire.
func (m message) MarshalJSON() ([]byte, error)         { return m, nil }
func (m nullableMessage) MarshalJSON() ([]byte, error) { return m, nil }
func (m messageList) MarshalJSON() ([]byte, error)     { return m, nil }
func (m artifactList) MarshalJSON() ([]byte, error)    { return m, nil }

// UnmarshalJSON keeps the raw JSON for package wire.
func (m *reportMessage) UnmarshalJSON(b []byte) error {
	*m = append((*m)[:0], b...)
	return nil
}

// UnmarshalJSON keeps the raw JSON for package wire.
func (m *reportArtifacts) UnmarshalJSON(b []byte) error {
	*m = append((*m)[:0], b...)
	return nil
}

func (message) Schema(r huma.Registry) *huma.Schema { return component(r, "A2AMessage", messageSchema) }

func (anything) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeObject, AdditionalProperties: true}, {Type: "null"}}}
}

func (nullableMessage) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{component(r, "A2AMessage", messageSchema), {Type: "null"}}}
}

func (messageList) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: component(r, "A2AMessage", messageSchema)}
}

func (artifactList) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: component(r, "A2AArtifact", artifactSchema)}
}

func (reportMessage) Schema(r huma.Registry) *huma.Schema {
	return component(r, "WorkerMessage", func(r huma.Registry) *huma.Schema {
		return closed([]string{"parts"}, map[string]*huma.Schema{
			"parts": reportParts(r), "role": {Type: huma.TypeString, Enum: []any{"agent"}, Description: "Role: always agent."},
			"messageId": idOf("An id that the worker chooses."), "metadata": anyObject("Arbitrary metadata."),
			"extensions": idsOf("Extensions in use."), "referenceTaskIds": idsOf("Referenced tasks."),
		})
	})
}

func (reportArtifacts) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: component(r, "WorkerArtifact", func(r huma.Registry) *huma.Schema {
		s := closed([]string{"parts"}, map[string]*huma.Schema{
			"artifact_id": idOf("An id that the worker chooses; required to append to the artifact later."),
			"type":        described("Type of the artifact; default: that of its first part."),
			"name":        nameOf("Name."), "description": described("Description."), "parts": reportParts(r),
			"metadata":   anyObject("Arbitrary metadata."),
			"extensions": idsOf("Extensions in use."),
			"append":     {Type: huma.TypeBoolean, Description: "Append the parts to the artifact with the same id."},
			"last_chunk": {
				Type: huma.TypeBoolean, Description: "The artifact is complete. Default: true in a report that ends the task.",
			},
		})
		appends := map[string]*huma.Schema{"append": {Enum: []any{true}}}
		withID := map[string]*huma.Schema{"artifact_id": stringSchema(length(1, task.MaxID))}
		extend(s, "if", &huma.Schema{Required: []string{"append"}, Properties: appends})
		extend(s, "then", &huma.Schema{Required: []string{"artifact_id"}, Properties: withID})
		return s
	})}
}

// component adds a named schema to the document, once.
func component(r huma.Registry, name string, make func(huma.Registry) *huma.Schema) *huma.Schema {
	if r.Map()[name] == nil {
		r.Map()[name] = &huma.Schema{} // placeholder, because schemas can refer to each other
		r.Map()[name] = make(r)
	}
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}

func messageSchema(r huma.Registry) *huma.Schema {
	return object([]string{"role", "parts"}, map[string]*huma.Schema{
		"role":      {Type: huma.TypeString, Enum: []any{"user", "agent"}, Description: "user: the sender of the task; or agent."},
		"parts":     partsSchema(r),
		"messageId": described("An id that the sender chose."), "metadata": anyObject("Arbitrary metadata."),
	})
}

func artifactSchema(r huma.Registry) *huma.Schema {
	return object([]string{"artifactId", "type", "parts"}, map[string]*huma.Schema{
		"artifactId": described("Unique within the task."), "type": described("Type of the artifact."),
		"name": described("Name."), "description": described("Description."), "parts": partsSchema(r),
		"index":    {Type: huma.TypeInteger, Description: "Position among the artifacts of the task."},
		"metadata": anyObject("Arbitrary metadata."),
	})
}

func partsSchema(r huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeArray, Description: "Content, in parts.",
		Items: component(r, "A2APart", func(huma.Registry) *huma.Schema {
			kinds := []any{"text", "data", "file"}
			return object(nil, map[string]*huma.Schema{
				"type": {Type: huma.TypeString, Enum: kinds, Description: "Type of the part."},
				"kind": {Type: huma.TypeString, Enum: kinds, Description: "Newer name of type; one of the two suffices."},
				"text": described("Content of a text part."), "data": {Description: "Content of a data part: any JSON value."},
				"mediaType": described("Media type, if the sender set it."),
				"file": explained(object(nil, map[string]*huma.Schema{
					"name": described("File name."), "mimeType": described("Media type."),
					"bytes": described("Content in base64; otherwise uri is set."), "uri": described("URI of the file."),
				}), "Content of a file part: bytes or a URI."),
				"metadata": anyObject("Arbitrary metadata."),
			})
		}),
	}
}

// reportParts returns the schema of the parts in a report: one schema per type, because a part of
// a request has exactly one content.
func reportParts(r huma.Registry) *huma.Schema {
	parts := &huma.Schema{
		Type: huma.TypeArray, Description: "Content, in parts.",
		Items: &huma.Schema{OneOf: []*huma.Schema{
			reportPart(r, "Text", "text", explained(stringSchema(matching(storable)), "The text.")),
			reportPart(r, "Data", "data",
				&huma.Schema{Description: "Any JSON value except null.", Not: &huma.Schema{Type: "null"}}),
			reportPart(r, "File", "file", explained(component(r, "WorkerFile", fileSchema), "The file: bytes or a URI.")),
		}},
	}
	items(1, task.MaxParts)(parts)
	return parts
}

func reportPart(r huma.Registry, name, sort string, content *huma.Schema) *huma.Schema {
	return component(r, "Worker"+name+"Part", func(huma.Registry) *huma.Schema {
		kind := []any{sort}
		return closed([]string{sort}, map[string]*huma.Schema{
			sort:       content,
			"type":     {Type: huma.TypeString, Enum: kind, Description: "Type of the part; optional."},
			"kind":     {Type: huma.TypeString, Enum: kind, Description: "Newer name of type."},
			"metadata": anyObject("Arbitrary metadata."),
		})
	})
}

func fileSchema(huma.Registry) *huma.Schema {
	s := closed(nil, map[string]*huma.Schema{
		"name": nameOf("File name."), "mimeType": nameOf("Media type."),
		"bytes": explained(stringSchema(matching(base64Pattern)), "Content in base64; either bytes or uri is required."),
		"uri":   explained(stringSchema(length(1, maxFileURI), matching(storable)), "URI of the file."),
	})
	ifThen(s, []string{"bytes"}, noneOf("uri"), anyField("uri"))
	return s
}

// maxFileURI is the limit of package task.
const maxFileURI = 4096

// idOf returns the schema of an id that a client chooses.
func idOf(doc string) *huma.Schema {
	return explained(stringSchema(length(0, task.MaxID), matching(idText)), doc)
}

// nameOf is a name that others choose and people see.
func nameOf(doc string) *huma.Schema {
	return explained(stringSchema(length(0, task.MaxName), matching(plainPattern())), doc)
}

func idsOf(doc string) *huma.Schema {
	s := &huma.Schema{
		Type: huma.TypeArray, Items: stringSchema(length(0, task.MaxID), matching(idText)), Description: doc,
	}
	items(0, task.MaxIDs)(s)
	return s
}

// orNothing returns the schema of a reference or null.
func orNothing(s *huma.Schema) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Ref: s.Ref}, {Type: "null"}}, Description: s.Description}
}

func object(required []string, properties map[string]*huma.Schema) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Required: required, Properties: properties}
}

// closed returns the schema of an object in a request, which rejects other members.
func closed(required []string, properties map[string]*huma.Schema) *huma.Schema {
	s := object(required, properties)
	s.AdditionalProperties = false
	return s
}

func described(doc string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: doc}
}

func explained(s *huma.Schema, doc string) *huma.Schema {
	s.Description = doc
	return s
}

func anyObject(doc string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Description: doc, AdditionalProperties: true}
}
