package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/task"
)

func read(text string) (m task.Message, ok bool) {
	return m, len(Read([]byte(text), false, func(r *Reader) { r.Message(&m, nil) })) == 0
}

func TestTooDeep(t *testing.T) {
	t.Parallel()
	nest := func(n int) string { return strings.Repeat(`[{"a":`, n) + "1" + strings.Repeat("}]", n) }
	for text, want := range map[string]bool{
		nest(MaxDepth / 2):                      false,
		nest(MaxDepth/2 + 1):                    true,
		`"` + strings.Repeat("[", 1000) + `"`:   false,
		`"\"` + strings.Repeat("[", 1000) + `"`: false,
		`"\\"` + strings.Repeat("[", 1000):      true,
		strings.Repeat("[],", 1000):             false,
		`{"x` + strings.Repeat("{", 1000):       false,
	} {
		if got := TooDeep([]byte(text)); got != want {
			t.Errorf("%.40s: got %v, want %v", text, got, want)
		}
	}
}

// A name may be escaped, also one that determines the kind of a part.
func TestEscapedNamesAreNames(t *testing.T) {
	t.Parallel()
	m, ok := read(`{"p\u0061rts":[{"\u0074ype":"te\u0078t","t\u0065xt":"\u00e9\n"}]}`)
	if !ok || m.Parts[0].Kind != task.TextPart || m.Parts[0].Text != "é\n" {
		t.Errorf("got %+v, want a text part", m)
	}
}

// FuzzMessage checks that everything that can be read is written as JSON on one line, and read
// again as the same.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`{"role":"user","parts":[{"type":"text","text":"x"}],"messageId":"m","metadata":{"a": [ 1 ]}}`,
		`{"parts":[{"data":{"a":1}},{"file":{"bytes":"aGk","name":"n","mime_type":"a/b"}},{"url":"u","filename":"f"}]}`,
		`{"parts":[{"text":"\u2028\u0000<&>","metadata":{}},null,{}],"role":"ROLE_AGENT"}`,
		`[]`, `{"parts":{}}`, "{\"parts\":[{\"data\":\"\n\"}]}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return // readers get valid JSON
		}
		m, ok := read(text)
		if !ok || len(m.Check()) > 0 {
			return
		}
		out := string(AppendMessage(nil, &m))
		if !json.Valid([]byte(out)) || strings.ContainsAny(out, "\n\r") {
			t.Fatalf("got %s, want JSON on one line", out)
		}
		again, ok := read(out)
		if diff := cmp.Diff(m, again); !ok || diff != "" {
			t.Fatalf("%s: read back (-want +got):\n%s", out, diff)
		}
	})
}

func TestLongNumbersAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"[" + strings.Repeat("1", maxNumber) + "]":                          true,
		`{"a":"` + strings.Repeat("1", 2*maxNumber) + `"}`:                  true,
		"[" + strings.Repeat("1,", maxNumber) + "1]":                        true,
		"[" + strings.Repeat("1", maxNumber+1) + "]":                        false,
		`{"a":"\\\"","b":` + "-0." + strings.Repeat("1", maxNumber-2) + "}": false,
	} {
		fields := Read([]byte(text), true, func(r *Reader) { r.Raw() })
		if (len(fields) == 0) != want {
			t.Errorf("%.40s… of %d bytes: mistakes %v", text, len(text), fields)
		}
	}
}
