package a2a

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/wire"
)

// maxValueDepth leaves room for the JSON around a value.
const maxValueDepth = wire.MaxDepth - 8

var notJSON = "must be a JSON value without NaN and infinities, nested at most " +
	strconv.Itoa(maxValueDepth) + " levels deep"

// appendValue appends a value as JSON. The members of objects are sorted, so that equal messages
// have equal text. ok is false for a value that JSON cannot represent.
func appendValue(b []byte, v *structpb.Value, depth int) (_ []byte, ok bool) {
	if depth > maxValueDepth {
		return b, false
	}
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return wire.AppendString(b, k.StringValue), true
	case *structpb.Value_BoolValue:
		return strconv.AppendBool(b, k.BoolValue), true
	case *structpb.Value_NumberValue:
		return appendNumber(b, k.NumberValue)
	case *structpb.Value_StructValue:
		return appendObject(b, k.StructValue, depth)
	case *structpb.Value_ListValue:
		b = append(b, '[')
		for i, e := range k.ListValue.GetValues() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, ok = appendValue(b, e, depth+1); !ok {
				return b, false
			}
		}
		return append(b, ']'), true
	}
	return append(b, "null"...), true
}

func appendObject(b []byte, s *structpb.Struct, depth int) (_ []byte, ok bool) {
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(s.GetFields())) {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, name)
		b = append(b, ':')
		if b, ok = appendValue(b, s.GetFields()[name], depth+1); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}

func appendNumber(b []byte, f float64) ([]byte, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return b, false
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, f, format, -1, 64), true
}

// objectFromProto converts metadata to JSON.
func objectFromProto(s *structpb.Struct) ([]byte, []errs.Field) {
	if s == nil {
		return nil, nil
	}
	text, ok := appendObject(nil, s, 0)
	if !ok {
		return nil, append(noFields, mistake(notJSON, "metadata"))
	}
	return text, nil
}

// protoObject converts metadata from JSON.
func protoObject(text json.RawMessage) *structpb.Struct {
	if len(text) == 0 {
		return nil
	}
	return protoValue(text).GetStructValue()
}

// protoValue converts stored JSON. A number that is too large for a double becomes a string.
func protoValue(text json.RawMessage) *structpb.Value {
	return readValue(jsontext.NewDecoder(bytes.NewReader(text),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)))
}

func readValue(d *jsontext.Decoder) *structpb.Value {
	token, err := d.ReadToken()
	if err != nil { // stored JSON was checked
		return structpb.NewNullValue()
	}
	switch token.Kind() {
	case 't', 'f':
		return structpb.NewBoolValue(token.Bool())
	case '"':
		return structpb.NewStringValue(validText(token.String()))
	case '0':
		text := token.String()
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return structpb.NewStringValue(text)
		}
		return structpb.NewNumberValue(f)
	case '[':
		list := &structpb.ListValue{}
		for more(d, ']') {
			list.Values = append(list.Values, readValue(d))
		}
		_, _ = d.ReadToken()
		return structpb.NewListValue(list)
	case '{':
		fields := map[string]*structpb.Value{}
		for more(d, '}') {
			name, err := d.ReadToken()
			if err != nil {
				break
			}
			key := validText(name.String())
			fields[key] = readValue(d)
		}
		_, _ = d.ReadToken()
		return structpb.NewStructValue(&structpb.Struct{Fields: fields})
	}
	return structpb.NewNullValue()
}

// more reports whether another element precedes the end.
func more(d *jsontext.Decoder, end jsontext.Kind) bool {
	k := d.PeekKind()
	return k != end && k != 0
}

// validText returns valid UTF-8, which protobuf requires.
func validText(s string) string { return strings.ToValidUTF8(s, "�") }
