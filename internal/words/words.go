// Package words splits text into terms: what the index of proposals holds, and what a search looks
// up. It knows nothing of proposals or of the index.
//
// Text is brought into one form first: compatibility forms are replaced (NFKC), case is folded, and
// accents of scripts in which they are optional are removed. A word is a run of letters, digits and
// marks. Scripts that put no spaces between words yield single characters and pairs of characters.
// Each emoji and each symbol outside of ASCII is a term of its own. Punctuation only separates.
package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

const (
	// MaxWord limits a term, in bytes. Longer words are cut.
	MaxWord = 64
	// MaxQuery limits the terms of a query.
	MaxQuery = 64
)

// Index calls add for the terms of a text by which searches find it, some of them repeatedly.
func Index(text string, add func(term string)) {
	split(normalize(text), func(t token) {
		if !t.pairs {
			add(t.text)
			return
		}
		before := ""
		for unit := range units(t.text) {
			add(unit)
			if before != "" {
				add(before + unit)
			}
			before = unit
		}
	})
}

// Query returns the terms of a search. Each one must occur; the last one is a prefix. Only the last
// one may be equal to another.
func Query(text string) []string {
	var all []string
	split(normalize(text), func(t token) {
		if !t.pairs {
			all = append(all, t.text)
			return
		}
		before, found := "", false
		for unit := range units(t.text) {
			if before != "" {
				all = append(all, before+unit)
				found = true
			}
			before = unit
		}
		if !found {
			all = append(all, before)
		}
	})
	if len(all) == 0 {
		return nil
	}
	last := all[len(all)-1]
	return append(Distinct(all[:len(all)-1]), last)
}

// Distinct removes repeated terms and keeps the order.
func Distinct(terms []string) []string {
	seen := make(map[string]struct{}, len(terms))
	out := terms[:0]
	for _, t := range terms {
		if _, ok := seen[t]; !ok {
			seen[t] = struct{}{}
			out = append(out, t)
		}
	}
	return out
}

// token is a word, a symbol or a run of a script without spaces.
type token struct {
	text  string
	pairs bool // a run whose characters and pairs are terms
}

// normalize brings text into the form in which words are compared. Most text is ASCII, which only
// needs lower case.
func normalize(text string) string {
	ascii := true
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return strings.ToLower(text) // returns its argument if nothing changes
	}
	// Folding can undo the normal form, and the other way round.
	text = norm.NFKC.String(cases.Fold().String(norm.NFKC.String(text)))
	return norm.NFC.String(stripAccents(norm.NFD.String(text)))
}

// stripAccents removes the marks after letters of scripts in which readers leave them out.
func stripAccents(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	optional := false
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
			optional = true
		case !unicode.Is(unicode.M, r):
			optional = unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Hebrew, unicode.Arabic)
		case optional && unicode.Is(unicode.Mn, r):
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// class says what a character is part of.
type class int

const (
	separator class = iota
	letter          // of a word
	paired          // of a run of a script without spaces
	mark            // belongs to the character before it
	symbol
	region // half of a flag
)

var asciiClass = func() (t [utf8.RuneSelf]class) {
	for c := range t {
		if '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			t[c] = letter
		}
	}
	return t
}()

// Sound marks of Japanese that no script has.
const (
	prolonged     = 'ー'
	halfProlonged = 'ｰ'
)

func classOf(r rune) class {
	switch {
	case r < utf8.RuneSelf:
		return asciiClass[r]
	case r == utf8.RuneError || r >= 0x1F3FB && r <= 0x1F3FF || unicode.Is(unicode.Variation_Selector, r):
		return separator // skin tones and variants of symbols do not count
	case unicode.Is(unicode.Regional_Indicator, r):
		return region
	case unicode.Is(unicode.M, r):
		return mark
	case r == prolonged || r == halfProlonged || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Bopomofo, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && unicode.IsLetter(r):
		return paired
	case unicode.IsLetter(r) || unicode.IsNumber(r):
		return letter
	case unicode.IsSymbol(r):
		return symbol
	}
	return separator
}

// split calls add for each token.
func split(text string, add func(token)) {
	for i := 0; i < len(text); {
		r, n := decode(text[i:])
		c := classOf(r)
		end := i + n
		switch c {
		case letter, paired, mark:
			if c == mark { // without a letter before it
				c = letter
			}
			for end < len(text) {
				r, n := decode(text[end:])
				if next := classOf(r); next != c && next != mark {
					break
				}
				end += n
			}
			if c == paired {
				add(token{text[i:end], true})
			} else {
				add(token{clip(text[i:end]), false})
			}
		case region:
			if r, n := decode(text[end:]); classOf(r) == region {
				end += n
			}
			add(token{text[i:end], false})
		case symbol:
			add(token{text[i:end], false})
		case separator:
		}
		i = end
	}
}

// units yields the characters of a run, each with its marks.
func units(run string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for run != "" {
			_, end := decode(run)
			for end < len(run) {
				r, n := decode(run[end:])
				if classOf(r) != mark {
					break
				}
				end += n
			}
			if !yield(clip(run[:end])) {
				return
			}
			run = run[end:]
		}
	}
}

// decode is utf8.DecodeRuneInString with a short way for ASCII.
func decode(s string) (rune, int) {
	if s != "" && s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	return utf8.DecodeRuneInString(s)
}

// clip cuts a term that is too long, between characters.
func clip(w string) string {
	if len(w) <= MaxWord/2 {
		return w
	}
	n := min(len(w), MaxWord)
	for n < len(w) && !utf8.RuneStart(w[n]) {
		n--
	}
	return w[:n]
}
