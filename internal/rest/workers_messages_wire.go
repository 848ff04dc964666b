package rest

import (
	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/task"
)

// Messages, parts and artifacts are written and read by package wire; here are
// the types under which operations carry them, and their documentation.
type (
	message         jsontext.Value
	nullableMessage jsontext.Value
	messageList     jsontext.Value
	artifactList    jsontext.Value
	reportMessage   jsontext.Value
	reportArtifacts jsontext.Value
	anything        jsontext.Value // a JSON object, or null
)

// MarshalJSON writes what package wire made.
func (m message) MarshalJSON() ([]byte, error)         { return m, nil }
func (m nullableMessage) MarshalJSON() ([]byte, error) { return m, nil }
func (m messageList) MarshalJSON() ([]byte, error)     { return m, nil }
func (m artifactList) MarshalJSON() ([]byte, error)    { return m, nil }

// UnmarshalJSON keeps the text for package wire.
func (m *reportMessage) UnmarshalJSON(b []byte) error {
	*m = append((*m)[:0], b...)
	return nil
}

// UnmarshalJSON keeps the text for package wire.
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
			"parts": reportParts(r), "role": {Type: huma.TypeString, Enum: []any{"agent"}, Description: "Who speaks: the agent."},
			"messageId": idOf("An id of the worker's choice."), "metadata": anyObject("Anything, kept as it came."),
			"extensions": idsOf("The extensions that it uses."), "referenceTaskIds": idsOf("Tasks that it refers to."),
		})
	})
}

func (reportArtifacts) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: component(r, "WorkerArtifact", func(r huma.Registry) *huma.Schema {
		s := closed([]string{"parts"}, map[string]*huma.Schema{
			"artifact_id": idOf("An id of the worker's choice; needed to append to the artifact later."),
			"type":        described("The sort of the artifact; that of its first part unless given."),
			"name":        idOf("Its name."), "description": described("What it is."), "parts": reportParts(r),
			"metadata":   anyObject("Anything, kept as it came."),
			"extensions": idsOf("The extensions that it uses."),
			"append":     {Type: huma.TypeBoolean, Description: "Add the parts to the artifact with the same id."},
			"last_chunk": {Type: huma.TypeBoolean, Description: "Nothing will be added to it any more. Unless given, true in a report that ends the task."},
		})
		extend(s, "if", &huma.Schema{Required: []string{"append"}, Properties: map[string]*huma.Schema{"append": {Enum: []any{true}}}})
		extend(s, "then", &huma.Schema{
			Required: []string{"artifact_id"}, Properties: map[string]*huma.Schema{"artifact_id": stringSchema(length(1, task.MaxID))},
		})
		return s
	})}
}

// component adds a named schema to the document, once.
func component(r huma.Registry, name string, make func(huma.Registry) *huma.Schema) *huma.Schema {
	if r.Map()[name] == nil {
		r.Map()[name] = &huma.Schema{} // parts occur in both, so the place is taken first
		r.Map()[name] = make(r)
	}
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}

func messageSchema(r huma.Registry) *huma.Schema {
	return object([]string{"role", "parts"}, map[string]*huma.Schema{
		"role":      {Type: huma.TypeString, Enum: []any{"user", "agent"}, Description: "Who speaks: the sender of the task, or the agent."},
		"parts":     partsSchema(r),
		"messageId": described("An id that whoever sent it chose."), "metadata": anyObject("Anything, as it came."),
	})
}

func artifactSchema(r huma.Registry) *huma.Schema {
	return object([]string{"artifactId", "type", "parts"}, map[string]*huma.Schema{
		"artifactId": described("Its id inside the task."), "type": described("The sort of the artifact."),
		"name": described("Its name."), "description": described("What it is."), "parts": partsSchema(r),
		"index":    {Type: huma.TypeInteger, Description: "Its place among the artifacts of the task."},
		"metadata": anyObject("Anything, as it came."),
	})
}

func partsSchema(r huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: huma.TypeArray, Description: "What it consists of.",
		Items: component(r, "A2APart", func(huma.Registry) *huma.Schema {
			kinds := []any{"text", "data", "file"}
			return object(nil, map[string]*huma.Schema{
				"type": {Type: huma.TypeString, Enum: kinds, Description: "The sort of the part."},
				"kind": {Type: huma.TypeString, Enum: kinds, Description: "The same as type, by its newer name; either suffices."},
				"text": described("Of a text."), "data": {Description: "Of data: any JSON value."},
				"mediaType": described("The media type of the part, if its sender named one."),
				"file": explained(object(nil, map[string]*huma.Schema{
					"name": described("Its name."), "mimeType": described("Its media type."),
					"bytes": described("Its content in base64, or"), "uri": described("where it is."),
				}), "Of a file: bytes or a URI."),
				"metadata": anyObject("Anything, kept as it came."),
			})
		}),
	}
}

// reportParts are the parts of what a worker reports: one schema for each sort, because
// a request has exactly one content in a part.
func reportParts(r huma.Registry) *huma.Schema {
	parts := &huma.Schema{
		Type: huma.TypeArray, Description: "What it consists of.",
		Items: &huma.Schema{OneOf: []*huma.Schema{
			reportPart(r, "Text", "text", explained(stringSchema(matching(storable)), "The text.")),
			reportPart(r, "Data", "data", &huma.Schema{Description: "Any JSON value but null.", Not: &huma.Schema{Type: "null"}}),
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
			"type":     {Type: huma.TypeString, Enum: kind, Description: "The sort of the part; it may be left out."},
			"kind":     {Type: huma.TypeString, Enum: kind, Description: "The same as type, by its newer name."},
			"metadata": anyObject("Anything, kept as it came."),
		})
	})
}

func fileSchema(huma.Registry) *huma.Schema {
	s := closed(nil, map[string]*huma.Schema{
		"name": idOf("Its name."), "mimeType": idOf("Its media type."),
		"bytes": explained(stringSchema(matching(base64Pattern)), "Its content in base64; or else uri."),
		"uri":   explained(stringSchema(length(1, maxFileURI), matching(storable)), "Where it is; or else bytes."),
	})
	ifThen(s, []string{"bytes"}, noneOf("uri"), anyField("uri"))
	return s
}

// maxFileURI is what package task allows.
const maxFileURI = 4096

// idOf is an id that others choose.
func idOf(doc string) *huma.Schema {
	return explained(stringSchema(length(0, task.MaxID), matching(idText)), doc)
}

func idsOf(doc string) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeArray, Items: stringSchema(length(0, task.MaxID), matching(idText)), Description: doc}
	items(0, task.MaxIDs)(s)
	return s
}

// orNothing is the schema of what may also be null.
func orNothing(s *huma.Schema) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Ref: s.Ref}, {Type: "null"}}, Description: s.Description}
}

func object(required []string, properties map[string]*huma.Schema) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Required: required, Properties: properties}
}

// closed is the schema of an object in a request, which has no other members.
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
