// Package metadata reads and changes single members of the metadata of a task.
//
// Metadata is a JSON object that belongs to its sender. So all other members keep their order and
// their text. The package does not know what the members mean: packages chain and policy do.
package metadata

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/errs"
)

// prefix starts the names of the members that Parley gives a meaning to. Metadata without it is not
// parsed.
var prefix = []byte("parley.dev")

// Member returns a member of an object that Parley gives a meaning to, or nil if there is none. The
// object may be empty text.
func Member(object []byte, key string) (found jsontext.Value, err error) {
	if !bytes.Contains(object, prefix) {
		return nil, nil
	}
	err = Each(object, func(name string, value jsontext.Value) error {
		if name == key {
			found = value.Clone()
		}
		return nil
	})
	return found, err
}

// Each calls fn for each member of an object, which may be empty text. The value is valid until fn
// returns.
func Each(object []byte, fn func(name string, value jsontext.Value) error) error {
	if len(bytes.TrimSpace(object)) == 0 {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true))
	if start, err := dec.ReadToken(); err != nil || start.Kind() != '{' {
		return errs.InvalidFields(errs.NewField("metadata", "must be an object"))
	}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := fn(name, value); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// Writer writes a JSON object. The zero value is an empty object.
type Writer struct {
	text bytes.Buffer
	enc  *jsontext.Encoder // nil: nothing was added yet
	err  error
}

// Add adds a member.
func (w *Writer) Add(name string, value jsontext.Value) error {
	if w.enc == nil {
		w.enc = jsontext.NewEncoder(&w.text, jsontext.AllowDuplicateNames(true))
		w.err = w.enc.WriteToken(jsontext.BeginObject)
	}
	if w.err == nil {
		w.err = w.enc.WriteToken(jsontext.String(name))
	}
	if w.err == nil {
		w.err = w.enc.WriteValue(value)
	}
	return w.err
}

// Empty reports whether nothing was added.
func (w *Writer) Empty() bool { return w.enc == nil }

// End returns the object.
func (w *Writer) End() (jsontext.Value, error) {
	if w.Empty() {
		return jsontext.Value("{}"), nil
	}
	if w.err == nil {
		w.err = w.enc.WriteToken(jsontext.EndObject)
	}
	return bytes.TrimSuffix(w.text.Bytes(), []byte("\n")), w.err
}
