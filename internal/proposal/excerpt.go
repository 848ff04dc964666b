package proposal

import (
	"strings"
	"unicode/utf8"
)

const (
	// MaxExcerpt limits the characters of an excerpt, without its ellipsis.
	MaxExcerpt = 240
	// ExcerptSource is how many characters of a problem are read for an excerpt.
	ExcerptSource = 4 * MaxExcerpt
)

// ExcerptOf returns the beginning of a text on one line, with each run of white space replaced by
// one space. It ends at a word boundary if that is near.
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
	// Drop a divided word, unless it is half of the excerpt.
	if space := strings.LastIndexByte(line[:cut], ' '); line[cut] != ' ' && space > cut/2 {
		cut = space
	}
	return strings.TrimRight(line[:cut], " ") + "…"
}
