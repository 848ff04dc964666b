package text

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestARuleSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	const required = "is required and must not be blank"
	for _, c := range []struct {
		what string
		rule Rule
		text string
		want string
	}{
		{"prose", Rule{Max: 10}, "a\r\n\tb", ""},
		{"empty prose", Rule{Max: 10}, "", ""},
		{"blank prose", Rule{Max: 10}, " \n", ""},
		{"required prose", Rule{Required: true}, " \n\u3000", required},
		{"bytes that are not UTF-8", Rule{}, "a\xff\x07", "must be valid UTF-8"},
		{"a replacement character", Rule{}, "a\uFFFD", ""},
		{"a control before a replacement character", Rule{}, "\x07\uFFFD", "must not contain the control character U+0007"},
		{"characters, not bytes", Rule{Max: 3}, "äöü", ""},
		{"too long", Rule{Max: 3}, "äöüß", "must have at most 3 characters; it has 4"},
		{"too many bytes", Rule{MaxBytes: 7}, "äöüß", "must have at most 7 bytes; it has 8"},
		{"length before characters", Rule{Max: 1}, "\x07\x07", "must have at most 1 characters; it has 2"},
		{"a control of ASCII", Rule{}, "a\x1b[2J", "must not contain the control character U+001B"},
		{"DEL", Rule{}, "a\x7f", "must not contain the control character U+007F"},
		{"a control above ASCII", Rule{}, "a\u009b2J", "must not contain the control character U+009B"},
		{"an override in prose", Rule{}, "a\u202eb", ""},

		{"a line", Rule{Form: Line, Max: 20}, "Retry webhooks", ""},
		{"an empty line", Rule{Form: Line}, "", required},
		{"a blank line", Rule{Form: Line}, " \u00a0\u3000\t", required},
		{"two lines", Rule{Form: Line}, "a\nb", "must be one line, without the character U+000A"},
		{"a separator", Rule{Form: Line}, "a\u2028b", "must be one line, without the character U+2028"},
		{"a control in a line", Rule{Form: Line}, "a\u0085b", "must not contain the control character U+0085"},
		{
			"an override",
			Rule{Form: Line},
			"a\u202eb",
			"must not contain the character U+202E, which changes the direction of the text",
		},
		{"nothing to see", Rule{Form: Line}, "\u200b\u200d", unseen},

		{"no name", Rule{Form: Name, Max: 5}, "", "must have 1 to 5 characters"},
		{"a long name", Rule{Form: Name, Max: 5}, "abcdef", "must have 1 to 5 characters"},
		{"a blank name", Rule{Form: Name, Max: 5}, "\u00a0 ", "must not be blank"},
		{"a mark alone", Rule{Form: Name, Max: 5}, "\u0301", unseen},
		{
			"a hidden character",
			Rule{Form: Name, Max: 5},
			"a\u200bb",
			"cannot contain the character U+200B, which is invisible or changes how others are shown",
		},

		{"plain", Rule{Form: Plain, Max: 9}, "job 7/ä\u2028", ""},
		{"nothing plain", Rule{Form: Plain}, "", ""},
		{"a search", Rule{Form: Search, Max: 5}, "a\x07\u009b\n", ""},
		{"a search for NUL", Rule{Form: Search}, "a\x00", "must not contain the control character U+0000"},
		{"a search that is not UTF-8", Rule{Form: Search}, "a\xff", "must be valid UTF-8"},
		{"a long search", Rule{Form: Search, Max: 5}, "abcdef", "must have at most 5 characters; it has 6"},
		{"a tab in plain text", Rule{Form: Plain}, "a\tb", "must not contain the control character U+0009"},
	} {
		if got := c.rule.Check(c.text); got != c.want {
			t.Errorf("%s %+q: got %q, want %q", c.what, c.text, got, c.want)
		}
	}
}

func TestNamesThatDeceiveAreRefused(t *testing.T) {
	t.Parallel()
	rule := Rule{Form: Name, Max: 200}
	for name, bad := range map[string]string{
		"right to left override": "Ada\u202Egnp.exe", "isolate": "Ada\u2066x", "right to left mark": "Ada\u200F",
		"zero width space": "Ad\u200Ba", "zero width joiner": "Ad\u200Da", "word joiner": "Ad\u2060a",
		"byte order mark": "\uFEFFAda", "soft hyphen": "Ad\u00ADa", "control": "Ada\x07",
		"C1 control": "Ada\u0085", "line separator": "Ada\u2028x", "tag": "Ada\U000E0041",
		"Hangul filler": "\u3164", "empty Braille": "\u2800", "replacement": "Ada\uFFFD",
		"blank": " \u00a0 ", "nothing": "", "variation selector alone": "\uFE0F", "mark alone": "\u0301",
		"noncharacter": "Ada\uFFFE", "headless note": "\U0001D159",
	} {
		if rule.Check(bad) == "" {
			t.Errorf("%s: %+q is accepted, want an error", name, bad)
		}
		if clean := CleanName(bad); clean != "" && rule.Check(clean) != "" {
			t.Errorf("%s: CleanName returned %+q, which is still invalid", name, clean)
		}
	}
	for _, good := range []string{
		"Ada Lovelace", "Ada-Marie O'Neil", "Ωμέγα", "محمد", "דָּוִד", "山田太郎", "Nguyễn", "नमस्ते", "CRM 2 🚀",
	} {
		if msg := rule.Check(good); msg != "" {
			t.Errorf("%q: got %q, want it accepted", good, msg)
		}
	}
}

func TestTitlesAreOneVisibleLine(t *testing.T) {
	t.Parallel()
	rule := Rule{Form: Line, Max: 200}
	for name, bad := range map[string]string{
		"line feed": "a\nb", "carriage return": "a\rb", "vertical tab": "a\vb", "next line": "a\u0085b",
		"line separator": "a\u2028b", "paragraph separator": "a\u2029", "override": "a\u202Eb",
		"embedding": "a\u202Ab", "isolate": "a\u2066b", "pop isolate": "a\u2069", "nothing": "",
		"blanks": " \u00a0\u3000\t", "zero width": "\u200b\u200d", "byte order mark": "\ufeff",
		"soft hyphens": "\u00ad\u00ad", "Hangul filler": "\u3164", "empty Braille": "\u2800",
		"variation selectors": "\ufe0f\ufe0f", "tags": "\U000E0041\U000E0042",
	} {
		if rule.Check(bad) == "" {
			t.Errorf("%s: %+q is accepted, want an error", name, bad)
		}
	}
	for _, good := range []string{
		"Retry webhooks", "Tab\there", "👩\u200d💻 works", "❤\ufe0f", "می\u200cخواهم", "\u200fשלום", "नमस्ते", "…", "1", "山田",
	} {
		if msg := rule.Check(good); msg != "" {
			t.Errorf("%q: got %q, want it accepted", good, msg)
		}
	}
}

// FuzzCheck checks that an accepted text has every property that its rule promises.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{
		"", "a", " ", "a\nb", "\u009b", "a\u202eb", "\xff", "\uFFFD\x07", "\u0301", "ab\u2028", strings.Repeat("ä", 20),
	} {
		for form := range uint8(5) {
			f.Add(s, form, uint8(8), form%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, s string, form, limit uint8, required bool) {
		r := Rule{Form: Form(form % 5), Max: int(limit), Required: required}
		if problem := r.Check(s); problem != "" {
			if !utf8.ValidString(problem) || strings.ContainsFunc(problem, unicode.IsControl) {
				t.Errorf("the problem %q repeats the text", problem)
			}
			return
		}
		mustSee := r.Form == Line || r.Form == Name
		switch {
		case !utf8.ValidString(s):
			t.Errorf("%q is not UTF-8, want it refused", s)
		case r.Max > 0 && utf8.RuneCountInString(s) > r.Max:
			t.Errorf("%q has more than %d characters, want it refused", s, r.Max)
		case (required || mustSee) && strings.TrimSpace(s) == "":
			t.Errorf("%q is blank, want it refused", s)
		case mustSee && !strings.ContainsFunc(s, unicode.IsGraphic):
			t.Errorf("%q has no visible character", s)
		}
		for _, c := range s {
			if !r.Form.Allows(c) {
				t.Errorf("%q has %U, which form %d does not allow; want it refused", s, c, r.Form)
			}
			if unicode.IsControl(c) && r.Form != Search && (r.Form == Plain || !strings.ContainsRune("\n\r\t", c)) {
				t.Errorf("%q has the control character %U", s, c)
			}
		}
	})
}

func TestStorable(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"": true, "a\x07\u009b": true, "a\x00": false, "\xff": false} {
		if got := Storable(s); got != want {
			t.Errorf("Storable(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, text, want string }{
		{"nothing", "", ""},
		{"as long as allowed", "äöüß", "äöüß"},
		{"longer", "äöüßx", "äöüß…"},
		{"control characters", "a\n\x1b\u009b", "a   "},
		{"bytes that are not UTF-8", "a\xff\xfeb", "a\uFFFDb"},
		{"a run of bad bytes counts once", "\xff\xff\xffabc", "\uFFFDabc"},
		{"replacement characters of the text", "a\uFFFD\uFFFD\xff", "a\uFFFD\uFFFD\uFFFD"},
	} {
		if got := Clean(c.text, 4); got != c.want {
			t.Errorf("%s: Clean(%q, 4) = %q, want %q", c.what, c.text, got, c.want)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	s := strings.Repeat("A delivery that fails once is lost. ", 100)
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		if (Rule{Max: 20_000, Required: true}).Check(s) != "" {
			b.Fatal("the text is refused, want it accepted")
		}
	}
}
