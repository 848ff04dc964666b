package task

import "testing"

// Names that people see have no control characters. Ids refuse only those below U+0020, so that
// stored tasks are still found.
func TestNamesHaveNoControlCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text     string
		name, id bool // whether it is valid
	}{
		{"report.pdf", true, true},
		{"Bericht für März 🚀", true, true},
		{"a\tb", false, false},
		{"a\x7fb", false, true},
		{"a\u009b2Jb", false, true},
		{"a\x00b", false, false},
		{"a\xffb", false, false},
	} {
		file := Part{Kind: FilePart, Bytes: []byte("x"), Name: c.text}
		typed := Part{Kind: FilePart, Bytes: []byte("x"), MediaType: c.text}
		artifact := Artifact{Name: c.text, Parts: []Part{{Kind: TextPart, Text: "x"}}}
		for what, f := range map[string]int{
			"file": len(file.check()), "media type": len(typed.check()), "artifact": len(artifact.Check()),
		} {
			if got := f == 0; got != c.name {
				t.Errorf("%s %q: valid %v; want %v", what, c.text, got, c.name)
			}
		}
		if got := ValidID(c.text); got != c.id {
			t.Errorf("id %q: valid %v; want %v", c.text, got, c.id)
		}
	}
}
