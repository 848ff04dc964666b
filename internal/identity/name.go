package identity

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/parley-dev/parley/internal/errs"
)

// MaxName bounds the name of an org, a member, a key or a client, in characters.
const MaxName = 200

// NameProblem says what is wrong with a name that people see; empty: nothing. The
// words follow the name of the field.
func NameProblem(name string) string {
	if n := utf8.RuneCountInString(name); n == 0 || n > MaxName {
		return fmt.Sprintf("must have 1 to %d characters", MaxName)
	}
	for _, r := range name {
		if Deceptive(r) {
			return fmt.Sprintf("cannot contain the character %U, which is invisible or changes how others are shown", r)
		}
	}
	if strings.TrimSpace(name) == "" {
		return "must not be blank"
	}
	return ""
}

// Deceptive reports whether a character can make a name look like another one, or like
// none: control characters, those that change the direction of text, those without a
// width, and blanks that are no white space. Joiners are among them, although some
// scripts and emoji use them: a name can do without.
func Deceptive(r rune) bool {
	switch r {
	case utf8.RuneError,
		0x034F,                         // combining grapheme joiner
		0x115F, 0x1160, 0x3164, 0xFFA0, // Hangul fillers
		0x17B4, 0x17B5, // Khmer vowels that are not shown
		0x2800: // empty Braille pattern
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp)
}

// LineProblem says what is wrong with a text that is shown as one line, such as a title;
// empty: nothing. It allows more than NameProblem does: a title needs no protection from
// looking like another one, and may hold joiners, which emoji and some scripts need.
func LineProblem(s string) string {
	seen := false
	for _, r := range s {
		switch {
		case r == '\t':
		case unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp):
			return fmt.Sprintf("must be one line, without the character %U", r)
		case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			return fmt.Sprintf("must not contain the character %U, which changes the direction of the text", r)
		}
		seen = seen || visible(r)
	}
	if !seen {
		return "must have a character that can be seen"
	}
	return ""
}

// visible reports whether a character shows something by itself. Marks are drawn on the
// character before them, and variation selectors, which are marks, not at all.
func visible(r rune) bool {
	return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && !Deceptive(r)
}

// PlainName takes deceptive characters out of a name that others chose and that
// cannot be refused any more.
func PlainName(name string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if Deceptive(r) {
			return -1
		}
		return r
	}, name))
}

func nameFields(pointer, name string) []errs.Field {
	if msg := NameProblem(name); msg != "" {
		return []errs.Field{body(pointer, msg)}
	}
	return nil
}

func checkName(name string) error { return invalid(nameFields("/name", name)) }
