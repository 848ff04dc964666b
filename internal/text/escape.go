package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Notation is how Escape writes a character that readers cannot see.
type Notation uint8

// The notations.
const (
	// InProse writes \u{202e}. The result is one line.
	InProse Notation = iota
	// InJSON writes \u202e, and a pair of surrogates for characters above U+FFFF, so that JSON keeps
	// its meaning. Line feeds, which are white space in JSON, stay.
	InJSON
)

// Escape writes out the characters that are invisible or change the direction of text, so that a
// reader sees what a text from elsewhere contains. Bytes that are not UTF-8 become U+FFFD. The result
// has at most limit characters, 0 means any number; it never ends within an escape. cut reports
// whether the rest was left out.
func Escape(s string, limit int, n Notation) (out string, cut bool) {
	var b strings.Builder
	length := 0
	for _, r := range s {
		piece := n.write(r)
		if length += utf8.RuneCountInString(piece); limit > 0 && length > limit {
			return b.String(), true
		}
		b.WriteString(piece)
	}
	return b.String(), false
}

func (n Notation) write(r rune) string {
	switch {
	case r >= ' ' && r < 0x7f, r == '\n' && n == InJSON, !hidden(r):
		return string(r)
	case n == InProse:
		return fmt.Sprintf(`\u{%x}`, r)
	case r > 0xFFFF:
		high, low := (r-0x10000)>>10+0xD800, (r-0x10000)&0x3FF+0xDC00
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	default:
		return fmt.Sprintf(`\u%04x`, r)
	}
}

// hidden reports whether readers may not notice r. In addition to what is deceptive in a name, these
// are variation selectors, which can carry data, and characters that no font has. Spaces that differ
// in width only are not hidden.
func hidden(r rune) bool {
	if unicode.Is(unicode.Zs, r) {
		return false
	}
	return deceptive(r) || unicode.Is(unicode.Variation_Selector, r) || !unicode.IsPrint(r)
}
