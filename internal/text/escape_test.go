package text

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEscapeWritesOutWhatReadersCannotSee(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, prose, json string }{
		"plain":               {"a b é 日本 👍 \\ \"", "a b é 日本 👍 \\ \"", "a b é 日本 👍 \\ \""},
		"wide spaces":         {"a\u00a0b\u3000c", "a\u00a0b\u3000c", "a\u00a0b\u3000c"},
		"lines":               {"a\r\n\tb", `a\u{d}\u{a}\u{9}b`, "a\\u000d\n\\u0009b"},
		"controls":            {"\x00\x1b[31m\x7f\u009b", `\u{0}\u{1b}[31m\u{7f}\u{9b}`, `\u0000\u001b[31m\u007f\u009b`},
		"bidi controls":       {"a\u202eb\u2066c\u200fd", `a\u{202e}b\u{2066}c\u{200f}d`, `a\u202eb\u2066c\u200fd`},
		"tag characters":      {"\U000e0001\U000e0041", `\u{e0001}\u{e0041}`, `\udb40\udc01\udb40\udc41`},
		"variation selectors": {"a\ufe00b\U000e0100", `a\u{fe00}b\u{e0100}`, `a\ufe00b\udb40\udd00`},
		"no width":            {"a\u200bb\u2060c\ufeff", `a\u{200b}b\u{2060}c\u{feff}`, `a\u200bb\u2060c\ufeff`},
		"fillers":             {"\u3164\u2800", `\u{3164}\u{2800}`, `\u3164\u2800`},
		"line separators":     {"\u2028\u2029", `\u{2028}\u{2029}`, `\u2028\u2029`},
		"unassigned":          {"\u2065\U000e0080", `\u{2065}\u{e0080}`, `\u2065\udb40\udc80`},
		"private use":         {"\ue000\U0010fffd", `\u{e000}\u{10fffd}`, `\ue000\udbff\udffd`},
		"not UTF-8":           {"a\xed\xa0\x80b", `a\u{fffd}\u{fffd}\u{fffd}b`, `a\ufffd\ufffd\ufffdb`},
	} {
		if got, cut := Escape(c.in, 0, InProse); got != c.prose || cut {
			t.Errorf("%s in prose: %s, %v, want %s", name, got, cut, c.prose)
		}
		if got, cut := Escape(c.in, 0, InJSON); got != c.json || cut {
			t.Errorf("%s in JSON: %s, %v, want %s", name, got, cut, c.json)
		}
	}
}

func TestEscapeKeepsTheMeaningOfJSON(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for r := ' '; r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) && r != '"' && r != '\\' {
			all.WriteRune(r)
		}
	}
	shown, _ := Escape(`"`+all.String()+`"`, 0, InJSON)
	var got string
	if err := json.Unmarshal([]byte(shown), &got); err != nil {
		t.Fatal(err)
	}
	if got != all.String() {
		t.Error("the escaped JSON has another meaning")
	}
}

func TestEscapeIsBoundedByWhatItWrites(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		limit int
		want  string
		cut   bool
	}{
		{"", 1, "", false},
		{"äöü", 3, "äöü", false},
		{"äöüß", 3, "äöü", true},
		{"a\u202e", 7, `a\u202e`, false},
		{"a\u202eb", 6, "a", true},
		{"\U000e0001", 12, `\udb40\udc01`, false},
		{"\U000e0001", 11, "", true},
		{strings.Repeat("\U000e0001", 1000), 25, `\udb40\udc01\udb40\udc01`, true},
	} {
		if got, cut := Escape(c.in, c.limit, InJSON); got != c.want || cut != c.cut {
			t.Errorf("Escape(%+q, %d) = %s, %v, want %s, %v", c.in, c.limit, got, cut, c.want, c.cut)
		}
	}
}
