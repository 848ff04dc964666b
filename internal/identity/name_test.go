package identity

import "testing"

func TestNamesThatDeceiveAreRefused(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]string{
		"right to left override": "Ada\u202Egnp.exe", "isolate": "Ada\u2066x", "right to left mark": "Ada\u200F",
		"zero width space": "Ad\u200Ba", "zero width joiner": "Ad\u200Da", "word joiner": "Ad\u2060a", "byte order mark": "\uFEFFAda",
		"soft hyphen": "Ad\u00ADa", "control": "Ada\x07", "C1 control": "Ada\u0085", "line separator": "Ada\u2028x", "tag": "Ada\U000E0041",
		"Hangul filler": "\u3164", "empty Braille": "\u2800", "replacement": "Ada\uFFFD", "blank": " \u00a0 ", "nothing": "",
	} {
		if NameProblem(bad) == "" {
			t.Errorf("%s: %+q is taken", name, bad)
		}
		if plain := PlainName(bad); plain != "" && NameProblem(plain) != "" {
			t.Errorf("%s: %+q is still bad", name, plain)
		}
	}
	for _, good := range []string{"Ada Lovelace", "Ada-Marie O'Neil", "Ωμέγα", "محمد", "דָּוִד", "山田太郎", "Nguyễn", "नमस्ते", "CRM 2 🚀"} {
		if msg := NameProblem(good); msg != "" {
			t.Errorf("%q %s", good, msg)
		}
	}
}

func TestTitlesAreOneVisibleLine(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]string{
		"line feed": "a\nb", "carriage return": "a\rb", "vertical tab": "a\vb", "next line": "a\u0085b", "line separator": "a\u2028b",
		"paragraph separator": "a\u2029", "override": "a\u202Eb", "embedding": "a\u202Ab", "isolate": "a\u2066b", "pop isolate": "a\u2069",
		"nothing": "", "blanks": " \u00a0\u3000\t", "zero width": "\u200b\u200d", "byte order mark": "\ufeff", "soft hyphens": "\u00ad\u00ad",
		"Hangul filler": "\u3164", "empty Braille": "\u2800", "variation selectors": "\ufe0f\ufe0f", "tags": "\U000E0041\U000E0042",
	} {
		if LineProblem(bad) == "" {
			t.Errorf("%s: %+q is taken", name, bad)
		}
	}
	for _, good := range []string{
		"Retry webhooks", "Tab\there", "👩\u200d💻 works", "❤\ufe0f", "می\u200cخواهم", "\u200fשלום", "नमस्ते", "…", "1", "山田",
	} {
		if msg := LineProblem(good); msg != "" {
			t.Errorf("%q %s", good, msg)
		}
	}
}
