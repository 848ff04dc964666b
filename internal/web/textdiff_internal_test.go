package web

import (
	"strings"
	"testing"
)

// show formats a difference as [-removed-]{+added+}.
func show(parts []diffPart) string {
	var b strings.Builder
	for _, p := range parts {
		switch p.Kind {
		case diffRemoved:
			b.WriteString("[-" + p.Text + "-]")
		case diffAdded:
			b.WriteString("{+" + p.Text + "+}")
		case diffGap:
			b.WriteString("…")
		case diffSame:
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{"", "", ""},
		{"", "a", "{+a+}"},
		{"a", "", "[-a-]"},
		{"same\n", "same\n", "same\n"},
		{"Retry it three times.", "Retry it five times.", "Retry it [-three-]{+five+} times."},
		{"a\nb\nc\n", "a\nc\n", "a\n[-b\n-]c\n"},
		{"a\nc", "a\nb\nc", "a\n{+b\n+}c"},
		{"one two\nthree", "one 2\nthree four", "one [-two-]{+2+}\nthree{+ four+}"},
		{"größer", "kleiner", "[-größer-]{+kleiner+}"},
	} {
		if got := show(diffText(c.from, c.to)); got != c.want {
			t.Errorf("from %q to %q: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

// For any texts, the parts reproduce both of them, in bounded time.
func TestADifferenceLosesNothing(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a b\n", 5_000)
	for _, c := range [][2]string{
		{long, strings.Repeat("b a\n", 5_000)},
		{long, ""},
		{strings.Repeat("x", 20_000), strings.Repeat("y ", 10_000)},
		{"a\u202eb\r\nc", "a\u202eb\nc"},
	} {
		var from, to string
		for _, p := range diffText(c[0], c[1]) {
			if p.Kind != diffAdded {
				from += p.Text
			}
			if p.Kind != diffRemoved {
				to += p.Text
			}
		}
		if from != c[0] || to != c[1] {
			t.Errorf("%.20q → %.20q lost something", c[0], c[1])
		}
	}
}

func TestShortDifferences(t *testing.T) {
	t.Parallel()
	same := strings.Repeat("s", 1000)
	got := show(shortenDiff([]diffPart{
		{diffSame, same},
		{diffRemoved, "x"},
		{diffSame, same},
		{diffAdded, "y"},
		{diffSame, same},
	}, 10_000))
	keep := strings.Repeat("s", diffContext)
	if want := "…" + keep + "[-x-]" + keep + "…" + keep + "{+y+}" + keep + "…"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := show(shortenDiff([]diffPart{{diffAdded, strings.Repeat("ä", 50)}}, 10)); got != "{+"+strings.Repeat("ä",
		10)+"+}…" {
		t.Errorf("got %v, want %v", got, "{+"+strings.Repeat("ä", 10)+"+}…")
	}
}

func TestFileNames(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"report.txt": "report.txt", "../../etc/passwd": "passwd", `C:\x\y.exe`: "y.exe", ".hidden": "hidden",
		"a\u202eb\r\n.html": "ab.html",
		`a"b<c>|d?.txt`:     "abcd.txt", "": "", "...": "", "日本.txt": "日本.txt",
	} {
		if got := fileName(from); got != want {
			t.Errorf("%q: %q, want %q", from, got, want)
		}
	}
}
