package httpx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/errs"
)

// Limits of a JSON body.
const (
	MaxBody   = 256 << 10 // bytes
	MaxDepth  = 32        // objects and arrays inside each other
	maxFields = 32        // invalid fields that one response lists; a body could have thousands
)

// Appender is a value that encodes itself without reflection.
type Appender interface{ AppendJSON(b []byte) []byte }

// WriteJSON writes v. Text that is not UTF-8 can only come from a request that is being refused; it
// is written with replacement characters.
func WriteJSON(w io.Writer, v any) error {
	if a, ok := v.(Appender); ok {
		return Encode(a, func(b []byte) error {
			_, err := w.Write(b)
			return err
		})
	}
	return json.MarshalWrite(w, v, jsontext.AllowInvalidUTF8(true))
}

// Encode encodes v for send, which must not keep the bytes: others reuse their memory.
func Encode(v Appender, send func(b []byte) error) error {
	buf, _ := encodings.Get().(*[]byte)
	*buf = v.AppendJSON((*buf)[:0])
	err := send(*buf)
	if cap(*buf) <= maxKeptEncoding {
		encodings.Put(buf)
	}
	return err
}

// maxKeptEncoding is the size of a buffer from which it is not reused.
const maxKeptEncoding = 256 << 10

var encodings = sync.Pool{New: func() any { return new([]byte) }}

// CheckJSON accepts exactly one JSON value in UTF-8, without duplicate names and without nesting
// deeper than MaxDepth. The error contains the position.
func CheckJSON(data []byte) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	for first := true; ; first = false {
		_, err := dec.ReadToken()
		switch {
		case err == io.EOF && first:
			return malformed("", "the body is empty; send a JSON object")
		case err != nil:
			return syntaxError(err)
		case dec.StackDepth() > MaxDepth:
			return malformed("", fmt.Sprintf("the body is nested deeper than %d levels at byte %d",
				MaxDepth, dec.InputOffset()))
		case dec.StackDepth() > 0:
			continue
		}
		end := dec.InputOffset()
		if _, err := dec.ReadToken(); err != io.EOF {
			return malformed("", fmt.Sprintf("the body must be one JSON value, but more follows after byte %d", end))
		}
		return nil
	}
}

func syntaxError(err error) error {
	var syn *jsontext.SyntacticError
	if !errors.As(err, &syn) {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return malformed("", "the body is not valid JSON: it ends too early")
		}
		return malformed("", "the body is not valid JSON")
	}
	if errors.Is(syn.Err, jsontext.ErrDuplicateName) {
		at := errs.PathOf(clip(syn.JSONPointer).Tokens())
		return malformed(syn.JSONPointer, fmt.Sprintf(
			"the member %s occurs more than once, the second time at byte %d", at, syn.ByteOffset))
	}
	return malformed(syn.JSONPointer, fmt.Sprintf("the body is not valid JSON at byte %d: %v", syn.ByteOffset, syn.Err))
}

func malformed(at jsontext.Pointer, msg string) error {
	e := errs.New(errs.Malformed, "request.malformed", "%s", msg)
	e.Fields = []errs.Field{{Path: errs.PathOf(clip(at).Tokens()), Message: msg}}
	return e
}

// Decode reads an object into the struct that v points to. Names match exactly. The error is about
// the syntax of JSON; the fields are members that are unknown, null or of the wrong type, each with
// its path. All other members are read, so that a caller can report every broken rule at once.
func Decode(data []byte, v any) ([]errs.Field, error) {
	if err := CheckJSON(data); err != nil {
		return nil, err
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	if dec.PeekKind() != '{' {
		return []errs.Field{{Message: "must be a JSON object"}}, nil
	}
	_, _ = dec.ReadToken() // the syntax was checked above: reads cannot fail from here on
	target := reflect.ValueOf(v).Elem()
	members := membersOf(target.Type())
	var fields []errs.Field
	for dec.PeekKind() != '}' && len(fields) < maxFields {
		name, _ := dec.ReadToken()
		member := name.String()
		value, _ := dec.ReadValue()
		if msg := readMember(target, members, member, value); msg != "" {
			fields = append(fields, errs.Field{Path: errs.At(clip(member)), Message: msg})
		} else if at := innerNull(target.Field(members[member]).Type(), value); at != "" {
			fields = append(fields, errs.Field{
				Path: errs.At(member).Then(errs.PathOf(clip(at).Tokens())...), Message: "must not be null",
			})
		}
	}
	return fields, nil
}

// UnknownField is the message of a field that a request does not have.
const UnknownField = "is not a known field"

func readMember(target reflect.Value, members map[string]int, name string, value jsontext.Value) string {
	i, ok := members[name]
	if !ok {
		return UnknownField
	}
	field := target.Field(i)
	if _, ok := field.Addr().Interface().(Nullable); value.Kind() == 'n' && !ok {
		return "must not be null; leave it out instead"
	}
	if value.Kind() == '"' && readText(field, value) {
		return ""
	}
	err := json.Unmarshal(value, field.Addr().Interface(), json.RejectUnknownMembers(true), wholeNumbers)
	if err != nil {
		field.SetZero()
		return "must be " + typeName(field.Type())
	}
	return ""
}

var stringType = reflect.TypeFor[string]()

// readText reads a string into a member of type string or *string, without the general decoder. It
// returns false for other members.
func readText(field reflect.Value, value jsontext.Value) bool {
	t := field.Type()
	if t != stringType && (t.Kind() != reflect.Pointer || t.Elem() != stringType) {
		return false
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return false
	}
	s := string(text)
	if t == stringType {
		field.SetString(s)
	} else {
		field.Set(reflect.ValueOf(&s))
	}
	return true
}

// wholeNumbers reads a number such as 20.0 or 2e1 into an integer, at any depth: JSON Schema
// accepts it as an integer, and some clients write all numbers with a decimal point.
var wholeNumbers = json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(readWhole[int]), json.UnmarshalFromFunc(readWhole[int64])))

func readWhole[T int | int64](dec *jsontext.Decoder, v *T) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported // let the decoder report the error
	}
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(string(value), 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return err
		}
		n = int64(f)
	}
	if *v = T(n); int64(*v) != n {
		return strconv.ErrRange
	}
	return nil
}

// innerNull returns the position of a null inside a list or an object, or "". The decoder would
// read it as a zero value. Types that decode themselves handle null.
func innerNull(t reflect.Type, value jsontext.Value) jsontext.Pointer {
	if k := value.Kind(); k != '[' && k != '{' {
		return ""
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	// Check the type first: the value of a report can have megabytes of text.
	if reflect.PointerTo(t).Implements(selfDecoding) || !bytes.Contains(value, []byte("null")) {
		return ""
	}
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return ""
		}
		if token.Kind() == 'n' {
			return dec.StackPointer()
		}
	}
}

var selfDecoding = reflect.TypeFor[interface{ UnmarshalJSON([]byte) error }]()

// Nullable is implemented by the few members that accept null.
type Nullable interface{ AcceptsNull() (typeName string) }

func typeName(t reflect.Type) string {
	if n, ok := reflect.New(t).Interface().(Nullable); ok {
		return n.AcceptsNull()
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "an integer"
	}
}

var memberCache sync.Map // reflect.Type → map[string]int

func membersOf(t reflect.Type) map[string]int {
	if m, ok := memberCache.Load(t); ok {
		return m.(map[string]int)
	}
	m := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			m[name] = i
		}
	}
	memberCache.Store(t, m)
	return m
}

// clip shortens names that the caller chose, to keep responses short.
func clip[S ~string](s S) S {
	const limit = 80
	if len(s) <= limit {
		return s
	}
	n := limit
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
