package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Control reports whether r is a control character: ASCII including DEL, or U+0080 to U+009F.
// Terminals act on both ranges: U+009B begins a command as ESC [ does.
func Control(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f }

// breaksLine reports whether r separates lines without being a control character.
func breaksLine(r rune) bool { return r == 0x2028 || r == 0x2029 }

// turns reports whether r is an embedding, override or isolate, which change the direction in which
// the following text is shown. The marks U+200E and U+200F affect only themselves and are not
// included.
func turns(r rune) bool { return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 }

// deceptive reports whether r can make a name look like another name or look empty: control
// characters, characters that change the direction of text, characters without width, and blanks
// that are not white space. Joiners are included although some scripts and emoji use them; a name
// can do without.
func deceptive(r rune) bool {
	switch r {
	case utf8.RuneError,
		0x034F,                         // combining grapheme joiner
		0x115F, 0x1160, 0x3164, 0xFFA0, // Hangul fillers
		0x17B4, 0x17B5, // invisible Khmer vowels
		0x1D159, // musical note without a head
		0x2800:  // empty Braille pattern
		return true
	}
	if r&0xFFFE == 0xFFFE || r >= 0xFDD0 && r <= 0xFDEF { // noncharacters
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp)
}

// visible reports whether r shows something by itself. Marks are drawn on the character before
// them; variation selectors, which are marks, are not drawn.
func visible(r rune) bool {
	return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && !deceptive(r)
}

// CleanName removes the characters that a Name may not contain, for names that come from elsewhere
// and cannot be rejected any more. It returns "" if nothing visible is left.
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

// Clean makes text that cannot be refused fit for a log: control characters become spaces,
// invalid UTF-8 becomes U+FFFD, and text longer than limit characters is cut and ends in "…".
func Clean(s string, limit int) string {
	var out strings.Builder
	broken := false
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		invalid := r == utf8.RuneError && size == 1
		if invalid && broken { // several bytes together become one character
			continue
		}
		broken = invalid
		if limit--; limit < 0 {
			out.WriteString("…")
			break
		}
		if Control(r) {
			r = ' '
		}
		out.WriteRune(r)
	}
	return out.String()
}
