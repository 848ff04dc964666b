package proposal

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord bounds one indexed word, in bytes.
const maxWord = 64

// Words splits text into the distinct words by which it is found: runs of
// letters and digits in lower case, in order of first appearance. Both engines
// index and search what this returns, so they find the same.
func Words(texts ...string) []string {
	var out []string
	seen := map[string]struct{}{}
	for _, text := range texts {
		for _, w := range strings.FieldsFunc(text, notWord) {
			w = clipWord(strings.ToLower(w))
			if _, ok := seen[w]; !ok {
				seen[w] = struct{}{}
				out = append(out, w)
			}
		}
	}
	return out
}

// SearchWords is what a proposal is found by.
func (p *Proposal) SearchWords() []string { return Words(p.Title, p.Problem, p.SuggestedFix) }

func notWord(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) || r == utf8.RuneError
}

func clipWord(w string) string {
	if len(w) <= maxWord {
		return w
	}
	n := maxWord
	for !utf8.RuneStart(w[n]) {
		n--
	}
	return w[:n]
}
