package wire

import (
	"bytes"
	"math"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/errs"
)

// MaxDepth bounds how deep objects and arrays may be nested: tasks are stored as JSON, which must
// be readable again.
const MaxDepth = 64

// TooDeep reports whether JSON is nested deeper than MaxDepth. The text need not be valid.
func TooDeep(text []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}

// maxFields bounds how many mistakes one response lists.
const maxFields = 32

// Reader reads one valid JSON value. It collects every mistake with its path instead of stopping at
// the first.
type Reader struct {
	Strict bool // unknown members and nulls are mistakes; otherwise they are ignored

	dec    *jsontext.Decoder
	src    bytes.Buffer
	fields []errs.Field
	name   []byte
}

var readers = sync.Pool{New: func() any { return &Reader{dec: new(jsontext.Decoder)} }}

// Read runs fn on a reader of text and returns the mistakes. Their paths have the names of the
// text, which must be valid JSON.
func Read(text []byte, strict bool, fn func(*Reader)) []errs.Field {
	r := readers.Get().(*Reader)
	r.src = *bytes.NewBuffer(text)
	// Names are unique: that was checked when the text was validated.
	r.dec.Reset(&r.src, jsontext.AllowDuplicateNames(true))
	r.Strict, r.fields = strict, nil
	fn(r)
	fields := r.fields
	r.src, r.fields = bytes.Buffer{}, nil
	readers.Put(r)
	return fields
}

// Fail adds a mistake in the value that was read last.
func (r *Reader) Fail(msg string) { r.failAt(msg) }

// failAt adds a mistake in a member of the object that was read last.
func (r *Reader) failAt(msg string, member ...any) {
	if len(r.fields) < maxFields {
		path := append(errs.PathOf(r.dec.StackPointer().Tokens()), member...)
		r.fields = append(r.fields, errs.Field{Path: path, Message: msg})
	}
}

// Add adds mistakes found elsewhere, unless there are any: rules are only checked on text that
// could be read.
func (r *Reader) Add(fields []errs.Field) {
	if len(r.fields) == 0 {
		r.fields = append(r.fields, fields...)
	}
}

// Failed reports whether there were mistakes.
func (r *Reader) Failed() bool { return len(r.fields) > 0 }

// Object reads an object. member is called for each value and must read it, or return false for an
// unknown name. Object reports whether there was an object.
func (r *Reader) Object(member func(name []byte) bool) bool { return r.object(member, nil) }

// object is Object; null, if not nil, is called with the names of members that are null.
func (r *Reader) object(member func(name []byte) bool, null func(name []byte)) bool {
	if r.dec.PeekKind() != '{' {
		r.wrong("must be an object")
		return false
	}
	_, _ = r.dec.ReadToken()
	for r.dec.PeekKind() == '"' {
		quoted, err := r.dec.ReadValue()
		if err != nil {
			return false
		}
		if !r.Strict && r.skipNull() {
			if null != nil {
				null(quoted)
			}
			continue
		}
		// The decoder's buffer is the text itself, which does not change.
		name := quoted[1 : len(quoted)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			r.name, _ = jsontext.AppendUnquote(r.name[:0], quoted)
			name = bytes.Clone(r.name)
		}
		if r.Strict && r.skipNull() {
			r.Fail("must not be null; leave it out instead")
			continue
		}
		if !member(name) {
			_ = r.dec.SkipValue()
			if r.Strict {
				r.Fail("is not a known field")
			}
		}
	}
	_, _ = r.dec.ReadToken()
	return true
}

func (r *Reader) skipNull() bool {
	if r.dec.PeekKind() != 'n' {
		return false
	}
	_ = r.dec.SkipValue()
	return true
}

// Array reads an array of at most limit elements. element must read one.
func (r *Reader) Array(limit int, element func(i int)) bool {
	if r.dec.PeekKind() != '[' {
		r.wrong("must be an array")
		return false
	}
	_, _ = r.dec.ReadToken()
	i := 0
	for ; r.dec.PeekKind() != ']'; i++ {
		if i < limit {
			element(i)
			continue
		}
		if r.dec.SkipValue() != nil {
			return false
		}
	}
	_, _ = r.dec.ReadToken()
	if i > limit {
		r.Fail("must have at most " + strconv.Itoa(limit) + " entries")
		return false
	}
	return true
}

// wrong skips a value of the wrong type.
func (r *Reader) wrong(msg string) {
	_ = r.dec.SkipValue()
	r.Fail(msg)
}

// String reads a string.
func (r *Reader) String(dst *string) bool {
	v, _ := r.dec.ReadValue()
	if v.Kind() != '"' {
		r.Fail("must be a string")
		return false
	}
	*dst = unquote(v)
	return true
}

func unquote(v jsontext.Value) string {
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	out, _ := jsontext.AppendUnquote(make([]byte, 0, len(v)), v)
	return string(out)
}

// Bool reads true or false.
func (r *Reader) Bool(dst *bool) {
	v, _ := r.dec.ReadValue()
	switch v.Kind() {
	case 't', 'f':
		*dst = v.Kind() == 't'
	default:
		r.Fail("must be true or false")
	}
}

// maxShownNumber is how many digits of a number an error repeats.
const maxShownNumber = 20

// Enum reads a name or, as ProtoJSON allows, its number in numbers. Unknown numbers are refused.
func (r *Reader) Enum(dst *string, numbers map[int32]string) bool {
	if r.Strict || r.dec.PeekKind() != '0' {
		return r.String(dst)
	}
	v, _ := r.dec.ReadValue()
	f, err := strconv.ParseFloat(string(v), 64)
	name, ok := numbers[int32(f)]
	if err != nil || !ok || float64(int32(f)) != f {
		shown := string(v[:min(len(v), maxShownNumber)])
		r.Fail("has the unknown enum number " + shown + "; use a name such as " + numbers[1])
		return false
	}
	*dst = name
	return true
}

// Int reads an integer from low to high.
func (r *Reader) Int(dst *int, low, high int) bool {
	v, _ := r.dec.ReadValue()
	text, number := string(v), v.Kind() == '0'
	if v.Kind() == '"' && !r.Strict { // ProtoJSON allows numbers in quotes
		text = unquote(v)
		number = jsontext.Value(text).Kind() == '0' && jsontext.Value(text).IsValid()
	}
	if number {
		// 1e2 and 3.0 are integers too; all integers here fit into a float.
		f, err := strconv.ParseFloat(text, 64)
		if err == nil && f == math.Trunc(f) && f >= float64(low) && f <= float64(high) {
			*dst = int(f)
			return true
		}
	}
	r.Fail("must be an integer from " + strconv.Itoa(low) + " to " + strconv.Itoa(high))
	return false
}

// Strings reads an array of strings.
func (r *Reader) Strings() []string {
	var out []string
	r.Array(maxStrings, func(int) {
		var s string
		if r.String(&s) {
			out = append(out, s)
		}
	})
	return out
}

// maxStrings bounds what Strings reads. The domain allows fewer.
const maxStrings = 1000

// maxNumber limits a number in a value that is passed on, in characters. Some readers, such as Python's
// json, refuse the whole text if an integer has more than 4,300 digits.
const maxNumber = 1000

// Raw reads any value and returns a copy of it without white space.
func (r *Reader) Raw() []byte {
	v, _ := r.dec.ReadValue()
	out := v.Clone()
	_ = out.Compact() // fails only on invalid JSON
	if hasLongNumber(out) {
		r.Fail("has a number of more than " + strconv.Itoa(maxNumber) + " characters; send it as a string")
	}
	return out
}

// hasLongNumber reports whether a number in JSON is too long.
func hasLongNumber(text []byte) bool {
	if len(text) <= maxNumber {
		return false
	}
	length, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted, length = !quoted, 0
		case quoted:
		case '0' <= c && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
			if length++; length > maxNumber {
				return true
			}
		default:
			length = 0
		}
	}
	return false
}

// RawObject is Raw for an object.
func (r *Reader) RawObject() []byte {
	if r.dec.PeekKind() != '{' {
		r.wrong("must be an object")
		return nil
	}
	return r.Raw()
}
