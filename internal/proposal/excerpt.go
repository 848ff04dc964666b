package proposal

import (
	"strings"
	"unicode/utf8"
)

const (
	// MaxExcerpt is how many characters of a problem an excerpt has, beside its ellipsis.
	MaxExcerpt = 240
	// ExcerptSource is how many characters of a problem an excerpt is made of.
	ExcerptSource = 4 * MaxExcerpt
)

// ExcerptOf is the beginning of a text on one line: runs of white space become one space. It
// ends between two words, if that does not cost much of it.
func ExcerptOf(text string) string {
	line := strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(line) <= MaxExcerpt {
		return line
	}
	cut := 0
	for range MaxExcerpt {
		_, n := utf8.DecodeRuneInString(line[cut:])
		cut += n
	}
	// A word that the cut divides is left out, unless it is half of the excerpt.
	if space := strings.LastIndexByte(line[:cut], ' '); line[cut] != ' ' && space > cut/2 {
		cut = space
	}
	return strings.TrimRight(line[:cut], " ") + "…"
}
