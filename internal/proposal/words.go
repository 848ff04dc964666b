package proposal

import (
	"hash/maphash"
	"math/bits"
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
	out := make([]string, 0, n/8+1)
	seen := newWordSet(n/2 + len(texts)) // two words have something between them
	for _, text := range texts {
		for len(text) > 0 {
			var word string
			if word, text = nextWord(text); word != "" && seen.add(word, out) {
				out = append(out, word)
			}
		}
	}
	return out
}

// wordSet finds a word's place in a list, by open addressing. A map of strings
// would cost as much as all the rest of a proposal's indexing.
type wordSet struct {
	seed  maphash.Seed
	slots []int32 // place in the list plus one, or 0
}

// newWordSet makes a set for up to n words; more would not fit.
func newWordSet(n int) wordSet {
	return wordSet{maphash.MakeSeed(), make([]int32, 1<<bits.Len(uint(n+1)))} // a length
}

// add reports whether the word is new to the list; if so, it will be put at the
// list's end.
func (s wordSet) add(word string, list []string) bool {
	mask := uint64(len(s.slots) - 1) // a length
	for i := maphash.String(s.seed, word); ; i++ {
		slot := &s.slots[i&mask]
		if *slot == 0 {
			*slot = int32(len(list) + 1) // bounded by the text's length
			return true
		}
		if list[*slot-1] == word {
			return false
		}
	}
}

// SearchWords is what a proposal is found by.
func (p *Proposal) SearchWords() []string { return Words(p.Title, p.Problem, p.SuggestedFix) }

// Matches reports whether the texts contain all words of a query, the last one as a
// prefix: whether a search would find them. The query is what Words returned.
func Matches(query []string, texts ...string) bool {
	found := make([]bool, len(query))
	missing := len(query)
	for _, text := range texts {
		for len(text) > 0 && missing > 0 {
			var word string
			word, text = nextWord(text)
			for i, want := range query {
				if !found[i] && (word == want || i == len(query)-1 && strings.HasPrefix(word, want)) {
					found[i] = true
					missing--
				}
			}
		}
	}
	return missing == 0
}

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
