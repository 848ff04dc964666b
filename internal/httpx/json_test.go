package httpx

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/errs"
)

type note struct {
	Title string   `json:"title"`
	Count *int     `json:"count,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	Deep  any      `json:"deep,omitempty"`
	Text  *string  `json:"text,omitempty"`
	Skip  string   `json:"-"`
}

func nested(depth int) string {
	return `{"deep":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
}

func TestDecodeSaysWhereJSONIsBroken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, body, pointer, message string }{
		{"empty", "", "", "empty"},
		{"ends early", `{"title":"a`, "", "not valid JSON"},
		{"duplicate", `{"title":"a","title":"b"}`, "/title", "more than once"},
		{"duplicate deep inside", `{"deep":[{"x":1,"x":1}]}`, "/deep/0/x", "more than once"},
		{"trailing data", `{} x`, "", "more follows after byte 2"},
		{"two values", `{}{}`, "", "more follows after byte 2"},
		{"invalid UTF-8", "{\"title\":\"\xc3\x28\"}", "/title", "UTF-8"},
		{"33 levels", nested(33), "", "deeper than 32 levels at byte"},
		{"10000 levels", strings.Repeat("[", 10000), "", "deeper than 32 levels at byte 33"},
		{"single quotes", `{'title':'a'}`, "", "at byte 1"},
		{"a comment", `{"title":"a"/**/}`, "", "at byte"},
		{"NaN", `{"count":NaN}`, "/count", "at byte 9"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var v note
			_, err := Decode([]byte(c.body), &v)
			e := errs.As(err)
			if err == nil || e.Kind != errs.Malformed || e.Code != "request.malformed" ||
				!strings.Contains(e.Message, c.message) {
				t.Fatalf("err = %v, want request.malformed with %q", err, c.message)
			}
			if got := Pointer(e.Fields[0].Path); got != c.pointer && c.pointer != "" {
				t.Errorf("pointer = %q, want %q", got, c.pointer)
			}
		})
	}
}

func TestDecodeReadsWhatItCanAndNamesTheRest(t *testing.T) {
	t.Parallel()
	var v note
	got, err := Decode([]byte(`{"Title":"x","title":"ok","count":1.5,"tags":"a","deep":null,"Skip":"s","-":1}`), &v)
	if err != nil {
		t.Fatal(err)
	}
	want := []errs.Field{
		{Path: errs.At("Title"), Message: "is not a known field"},
		{Path: errs.At("count"), Message: "must be an integer"},
		{Path: errs.At("tags"), Message: "must be an array"},
		{Path: errs.At("deep"), Message: "must not be null; leave it out instead"},
		{Path: errs.At("Skip"), Message: "is not a known field"},
		{Path: errs.At("-"), Message: "is not a known field"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(note{Title: "ok"}, v); diff != "" {
		t.Error(diff)
	}
	if _, err := Decode([]byte(nested(32)), &v); err != nil {
		t.Errorf("32 levels: err = %v, want nil", err)
	}
}

// Strings take a shorter way through the decoder than other values, with the same result.
func TestDecodeReadsStrings(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`""`, `"plain"`, `"a\"b\\c\/d\b\f\n\r\t"`, `"\u00e9\u6f22\ud83d\ude00 é漢😀"`, `"\u0000\u2028\u007f"`, `"<b>&amp;"`,
	} {
		var want string
		if err := stdjson.Unmarshal([]byte(raw), &want); err != nil {
			t.Fatal(err)
		}
		var v note
		fields, err := Decode([]byte(`{"title":`+raw+`,"text":`+raw+`}`), &v)
		if err != nil || len(fields) > 0 || v.Title != want || v.Text == nil || *v.Text != want {
			t.Errorf("%s: got %q and %v, %v %v, want %q twice", raw, v.Title, v.Text, fields, err, want)
		}
	}
}

func TestDecodeListsABoundedNumberOfFields(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString(`{"` + strings.Repeat("é", 5000) + `":1`)
	for i := range 5000 {
		fmt.Fprintf(&b, `,"k%d":1`, i)
	}
	b.WriteString("}")
	var v note
	fields, err := Decode(b.Bytes(), &v)
	if err != nil || len(fields) != maxFields || len(fields[0].Path.String()) > 100 {
		t.Errorf("got %d fields, the first name of %d bytes, %v; want %d fields of at most 100 bytes",
			len(fields), len(fields[0].Path.String()), err, maxFields)
	}
}

// FuzzDecode checks that the decoder never panics, and that what it accepts has no duplicate names
// and at most MaxDepth levels, as the standard library's tokenizer sees it.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `[]`, `null`, `{"title":"a"}`, `{"title":"a","title":"b"}`, `{"a":{"b":1,"b":2}}`, nested(32), nested(33),
		`{"title":"\u0061","\u0074itle":1}`, "{\"title\":\"\xff\"}", `{"title":"\ud800"}`, `{"deep":[{"a":1},{"a":1}]}`, `{} {}`,
		`{"count":1e999}`, `{"count":-0}`, ` {"tags":["x",1]} `, "\ufeff{}", `{"a/b":1,"a~b":2,"":3}`,
		`"` + strings.Repeat("x", 1000) + `"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v note
		if _, err := Decode(data, &v); err != nil {
			if errs.KindOf(err) != errs.Malformed {
				t.Fatalf("%q: err = %v, want Malformed", data, err)
			}
			return
		}
		dec := stdjson.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		if depth := checkTokens(t, dec); depth > MaxDepth {
			t.Fatalf("%d levels were accepted: %q", depth, data)
		}
		if dec.More() {
			t.Fatalf("trailing data was accepted: %q", data)
		}
	})
}

// checkTokens reads one value and returns its depth.
func checkTokens(t *testing.T, dec *stdjson.Decoder) int {
	tok, err := dec.Token()
	if err != nil {
		t.Fatal(err)
	}
	deepest := 0
	switch tok {
	case stdjson.Delim('{'):
		names := map[string]bool{}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			if names[name.(string)] {
				t.Fatalf("the name %q was accepted twice", name)
			}
			names[name.(string)] = true
			deepest = max(deepest, checkTokens(t, dec))
		}
	case stdjson.Delim('['):
		for dec.More() {
			deepest = max(deepest, checkTokens(t, dec))
		}
	default:
		return 0
	}
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	return deepest + 1
}

// JSON Schema, and thus the API's contract, accepts 20.0 as an integer.
func TestAWholeNumberMayHaveAPoint(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"count":20.0}`: 20, `{"count":2e1}`: 20, `{"count":-0.0}`: 0, `{"count":7}`: 7,
	} {
		var v note
		fields, err := Decode([]byte(body), &v)
		if err != nil || len(fields) > 0 || v.Count == nil || *v.Count != want {
			t.Errorf("%s: got %+v, %v, %v, want %d", body, v, fields, err, want)
		}
	}
	for _, body := range []string{
		`{"count":20.5}`, `{"count":1e300}`, `{"count":9223372036854775808}`, `{"count":"20"}`,
	} {
		var v note
		if fields, _ := Decode([]byte(body), &v); len(fields) != 1 || v.Count != nil {
			t.Errorf("%s: got %v, %+v, want one invalid field", body, fields, v)
		}
	}
}

func TestWholeNumbersInsideAreRead(t *testing.T) {
	t.Parallel()
	var v struct {
		Items []struct {
			N int64 `json:"n"`
		} `json:"items"`
	}
	broken, err := Decode([]byte(`{"items":[{"n":310.0},{"n":2e1},{"n":7}]}`), &v)
	if err != nil || len(broken) != 0 || len(v.Items) != 3 ||
		v.Items[0].N != 310 || v.Items[1].N != 20 || v.Items[2].N != 7 {
		t.Errorf("got %+v, %v, %v, want 310, 20 and 7", v, broken, err)
	}
	for _, bad := range []string{`{"items":[{"n":1.5}]}`, `{"items":[{"n":"1"}]}`, `{"items":[{"n":1e30}]}`} {
		if broken, err := Decode([]byte(bad), &v); err != nil || len(broken) != 1 {
			t.Errorf("%s: got %v, %v, want one invalid field", bad, broken, err)
		}
	}
}
