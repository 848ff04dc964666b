// Package text checks text that people write: titles, descriptions, comments, names.
//
// A Rule says how long a text may be and which form it has; Check says in words what is
// wrong with one. The words follow the name of the field: "must be one line". A form also
// tells which characters it allows, so that a schema can say the same. The package is
// pure: it imports the standard library only and knows neither fields nor errors.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Form is what kind of text is wanted.
type Form uint8

// The forms. All of them are valid UTF-8.
const (
	// Prose may have several lines and tabs, but no other control characters.
	Prose Form = iota
	// Line is shown as one line, such as a title. It has a character that can be seen, and
	// none that changes the direction of text. Joiners, which emoji and some scripts need,
	// are allowed, and so are tabs.
	Line
	// Name tells people who or what something is. It has no character that could make it
	// look like another name, or like none.
	Name
	// Plain has no control characters at all. It is for what programs choose and people
	// see, such as the name of an occurrence.
	Plain
)

// Allows reports whether a text of the form may have the character.
func (f Form) Allows(r rune) bool {
	switch f {
	case Line:
		return (!Control(r) || r == '\t') && !breaksLine(r) && !turns(r)
	case Name:
		return !deceptive(r)
	case Plain:
		return !Control(r)
	default:
		return !Control(r) || r == '\n' || r == '\r' || r == '\t'
	}
}

// Rule says what a text must be.
type Rule struct {
	Form     Form
	Max      int  // characters; 0: any number
	MaxBytes int  // 0: any number
	Required bool // not blank. A Line or a Name always is.
}

// Check says what is wrong with a text; empty: nothing.
func (r Rule) Check(s string) (problem string) {
	found := scan(s, r.Form)
	if r.Form == Name {
		return r.checkName(s, found)
	}
	switch {
	case found.odd && !utf8.ValidString(s):
		return "must be valid UTF-8"
	case r.MaxBytes > 0 && len(s) > r.MaxBytes:
		return fmt.Sprintf("must have at most %d bytes; it has %d", r.MaxBytes, len(s))
	case r.Max > 0 && found.length > r.Max:
		return fmt.Sprintf("must have at most %d characters; it has %d", r.Max, found.length)
	case found.blank && (r.Required || r.Form == Line):
		return "is required and must not be blank"
	case found.bad >= 0:
		return badProblem(found.bad)
	case r.Form == Line && !strings.ContainsFunc(s, visible):
		return unseen
	}
	return ""
}

// scanned is what one reading of a text finds.
type scanned struct {
	length int  // in characters
	bad    rune // the first one that the form does not allow; -1: none
	odd    bool // it has U+FFFD, or bytes that are not UTF-8
	blank  bool // it has nothing but white space
}

func scan(s string, f Form) scanned {
	out := scanned{bad: -1, blank: true}
	for _, c := range s { // once: every submission passes here
		out.length++
		if c >= ' ' && c < 0x7f { // nearly all; every form allows them
			out.blank = out.blank && c == ' '
			continue
		}
		out.odd = out.odd || c == utf8.RuneError
		out.blank = out.blank && unicode.IsSpace(c)
		if out.bad < 0 && !f.Allows(c) {
			out.bad = c
		}
	}
	return out
}

func badProblem(c rune) string {
	switch {
	case turns(c):
		return fmt.Sprintf("must not contain the character %U, which changes the direction of the text", c)
	case breaksLine(c), c == '\n', c == '\r':
		return fmt.Sprintf("must be one line, without the character %U", c)
	}
	return fmt.Sprintf("must not contain the control character %U", c)
}

func (r Rule) checkName(s string, found scanned) string {
	switch {
	case found.length == 0 || r.Max > 0 && found.length > r.Max:
		return fmt.Sprintf("must have 1 to %d characters", r.Max)
	case found.bad >= 0:
		return fmt.Sprintf("cannot contain the character %U, which is invisible or changes how others are shown", found.bad)
	case found.blank:
		return "must not be blank"
	case !strings.ContainsFunc(s, visible):
		return unseen
	}
	return ""
}

const unseen = "must have a character that can be seen"

// Storable reports whether every engine can keep a text: it is valid UTF-8 without NUL.
// That is all that is asked of what nobody shows, such as a filter.
func Storable(s string) bool { return strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) }

// Unstorable says what is wrong with a text that is not Storable.
const Unstorable = "must be valid UTF-8 without NUL"

// Blank reports whether a text has nothing but white space.
func Blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsSpace(r) }) < 0
}
