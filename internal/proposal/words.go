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
	start := skip(text, false)
	text = text[start:]
	end := skip(text, true)
	return clipWord(strings.ToLower(text[:end])), text[end:]
}

// skip returns the length of the run at the start of s that consists of word
// characters, or of others.
func skip(s string, word bool) int {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if asciiWord[c] != word {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if (r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))) != word {
			return i
		}
		i += n
	}
	return len(s)
}

var asciiWord = func() (t [utf8.RuneSelf]bool) {
	for c := range t {
		t[c] = '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	return t
}()

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
