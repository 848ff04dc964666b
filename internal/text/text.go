// Package text checks text that people write: titles, descriptions, comments, names.
//
// A Rule has a maximum length and a Form; Check returns what is wrong with a text, as a predicate
// that follows the name of the field: "must be one line". Form.Allows lets a schema state the same
// rule. Escape shows text from elsewhere with all its characters visible. ValidPort and Origin are for
// URLs that users enter. The package imports the standard library only and knows neither fields nor
// errors.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Form is a kind of text.
type Form uint8

// The forms. All of them are valid UTF-8.
const (
	// Prose may have several lines and tabs, but no other control characters.
	Prose Form = iota
	// Line is shown as one line, such as a title. It needs a visible character and may not contain
	// characters that change the direction of text. Tabs and joiners are allowed; emoji and some
	// scripts need joiners.
	Line
	// Name identifies a person or a thing to people. It may not contain characters that make it
	// look like another name or look empty.
	Name
	// Plain has no control characters at all. It is for text that programs choose and people see,
	// such as the name of an occurrence.
	Plain
	// Search is text to look for. It is never shown, so it may have any character but NUL,
	// which not every engine can take.
	Search
)

// Allows reports whether text of the form may contain r.
func (f Form) Allows(r rune) bool {
	switch f {
	case Line:
		return (!Control(r) || r == '\t') && !breaksLine(r) && !turns(r)
	case Name:
		return !deceptive(r)
	case Plain:
		return !Control(r)
	case Search:
		return r != 0
	default:
		return !Control(r) || r == '\n' || r == '\r' || r == '\t'
	}
}

// Rule is the form and the size that a text must have.
type Rule struct {
	Form     Form
	Max      int  // characters; 0: no limit
	MaxBytes int  // 0: no limit
	Required bool // not blank; implied for Line and Name
}

// Check returns what is wrong with s, or "" if nothing is.
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

// scanned is the result of one pass over a text.
type scanned struct {
	length int  // in characters
	bad    rune // the first one that the form does not allow, or -1
	odd    bool // contains U+FFFD, or bytes that are not UTF-8
	blank  bool // contains only white space
}

func scan(s string, f Form) scanned {
	out := scanned{bad: -1, blank: true}
	for _, c := range s { // one pass: every submission is checked here
		out.length++
		if c >= ' ' && c < 0x7f { // the common case; every form allows these
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
		return fmt.Sprintf("cannot contain the character %U, which is invisible or changes how others are shown",
			found.bad)
	case found.blank:
		return "must not be blank"
	case !strings.ContainsFunc(s, visible):
		return unseen
	}
	return ""
}

const unseen = "must have a visible character"

// Storable reports whether every store engine can keep s: valid UTF-8 without NUL. It is the only
// check for text that is not shown, such as a filter.
func Storable(s string) bool { return strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) }

// Unstorable is the message for a text that is not Storable.
const Unstorable = "must be valid UTF-8 without NUL"

// Blank reports whether s has nothing but white space.
func Blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsSpace(r) }) < 0
}
