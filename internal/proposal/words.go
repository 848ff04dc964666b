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
	n := 0
	for _, text := range texts {
		n += len(text)
	}
	var out []string
	seen := make(map[string]struct{}, n/8+1)
	for _, text := range texts {
		for len(text) > 0 {
			var word string
			if word, text = nextWord(text); word == "" {
				continue
			}
			if _, ok := seen[word]; !ok {
				seen[word] = struct{}{}
				out = append(out, word)
			}
		}
	}
	return out
}

// SearchWords is what a proposal is found by.
func (p *Proposal) SearchWords() []string { return Words(p.Title, p.Problem, p.SuggestedFix) }

// nextWord cuts the first word off. ToLower returns its argument where there is
// nothing to change, so most words are not copied.
func nextWord(text string) (word, rest string) {
	start := strings.IndexFunc(text, isWord)
	if start < 0 {
		return "", ""
	}
	text = text[start:]
	end := strings.IndexFunc(text, notWord)
	if end < 0 {
		end = len(text)
	}
	return clipWord(strings.ToLower(text[:end])), text[end:]
}

func notWord(r rune) bool { return !isWord(r) }

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
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
