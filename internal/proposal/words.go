package proposal

import (
	"hash/maphash"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWord limits one indexed word, in bytes.
const maxWord = 64

// Words returns the distinct words of the texts: runs of letters and digits, in lower case, in
// order of first appearance. Both engines index and search these words, so that they find the
// same.
func Words(texts ...string) []string {
	n := 0
	for _, text := range texts {
		n += len(text)
	}
	out := make([]string, 0, n/8+1)
	seen := newWordSet(n/2 + len(texts)) // a separator follows each word
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

// wordSet is a hash set over a list of words, with open addressing. A map of strings would
// double the cost of indexing a proposal.
type wordSet struct {
	seed  maphash.Seed
	slots []int32 // index in the list plus one, or 0
}

// newWordSet returns a set for up to n words.
func newWordSet(n int) wordSet {
	return wordSet{maphash.MakeSeed(), make([]int32, 1<<bits.Len(uint(n+1)))} // a length
}

// add adds the word and reports whether it is new. If so, the caller must append it to the list.
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

// SearchWords returns the words by which a search finds the proposal.
func (p *Proposal) SearchWords() []string { return Words(p.Title, p.Problem, p.SuggestedFix) }

// Matches reports whether the texts contain all words of a query, the last one as a prefix. The
// query is a result of Words.
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

// nextWord splits off the first word. ToLower returns its argument if nothing changes, so most
// words are not copied.
func nextWord(text string) (word, rest string) {
	start := skip(text, false)
	text = text[start:]
	end := skip(text, true)
	return clipWord(strings.ToLower(text[:end])), text[end:]
}

// skip returns the length of the prefix of s that consists of word characters, or of other
// characters if word is false.
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
