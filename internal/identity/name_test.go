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
