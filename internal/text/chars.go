package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Control reports whether a character is a control character: of ASCII, DEL included, or
// one of U+0080 to U+009F. Terminals act on both: U+009B begins a command as ESC [ does.
func Control(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f }

// breaksLine reports the separators of lines that are no control characters.
func breaksLine(r rune) bool { return r == 0x2028 || r == 0x2029 }

// turns reports the embeddings, overrides and isolates, which change the direction in which
// what follows is shown. The marks U+200E and U+200F do so for themselves only.
func turns(r rune) bool { return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 }

// deceptive reports whether a character can make a name look like another one, or like
// none: control characters, those that change the direction of text, those without a
// width, and blanks that are no white space. Joiners are among them, although some
// scripts and emoji use them: a name can do without.
func deceptive(r rune) bool {
	switch r {
	case utf8.RuneError,
		0x034F,                         // combining grapheme joiner
		0x115F, 0x1160, 0x3164, 0xFFA0, // Hangul fillers
		0x17B4, 0x17B5, // Khmer vowels that are not shown
		0x1D159, // a note without a head
		0x2800:  // empty Braille pattern
		return true
	}
	if r&0xFFFE == 0xFFFE || r >= 0xFDD0 && r <= 0xFDEF { // no characters, and never will be
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp)
}

// visible reports whether a character shows something by itself. Marks are drawn on the
// character before them, and variation selectors, which are marks, not at all.
func visible(r rune) bool {
	return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && !deceptive(r)
}

// CleanName takes the characters that no Name may have out of a name that others chose and
// that cannot be refused any more. It is empty if nothing that can be seen is left.
func CleanName(name string) string {
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if deceptive(r) {
			return -1
		}
		return r
	}, name))
	if !strings.ContainsFunc(name, visible) {
		return ""
	}
	return name
}
