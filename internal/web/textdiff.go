package web

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A text difference: unchanged, removed and added text in reading order. Texts are compared by
// lines, and changed lines by words.

type diffKind string

const (
	diffSame    diffKind = "same"
	diffRemoved diffKind = "removed"
	diffAdded   diffKind = "added"
	diffGap     diffKind = "gap" // omitted unchanged text
)

// diffPart is a run of text of one kind.
type diffPart struct {
	Kind diffKind
	Text string
}

// maxDiffCells limits the table of a comparison. Larger texts are shown as replaced.
const maxDiffCells = 1 << 16

// diffText compares two texts.
func diffText(from, to string) []diffPart {
	var out []diffPart
	lines := diffTokens(splitLines(from), splitLines(to))
	for i := 0; i < len(lines); i++ {
		if i+1 < len(lines) && lines[i].Kind == diffRemoved && lines[i+1].Kind == diffAdded {
			out = appendParts(out, diffTokens(splitWords(lines[i].Text), splitWords(lines[i+1].Text))...)
			i++
			continue
		}
		out = appendParts(out, lines[i])
	}
	return out
}

// diffTokens compares two lists by their longest common subsequence. Removed text precedes the
// added text.
func diffTokens(from, to []string) []diffPart {
	head := 0
	for head < len(from) && head < len(to) && from[head] == to[head] {
		head++
	}
	tail := 0
	for tail < len(from)-head && tail < len(to)-head && from[len(from)-1-tail] == to[len(to)-1-tail] {
		tail++
	}
	out := part(nil, diffSame, from[:head]...)
	out = diffMiddle(out, from[head:len(from)-tail], to[head:len(to)-tail])
	return part(out, diffSame, from[len(from)-tail:]...)
}

func diffMiddle(out []diffPart, from, to []string) []diffPart {
	if len(from)*len(to) > maxDiffCells {
		return part(part(out, diffRemoved, from...), diffAdded, to...)
	}
	common := commonLengths(from, to)
	var removed, added []string
	flush := func() {
		out = part(part(out, diffRemoved, removed...), diffAdded, added...)
		removed, added = nil, nil
	}
	i, j, width := 0, 0, len(to)+1
	for i < len(from) || j < len(to) {
		switch {
		case i < len(from) && j < len(to) && from[i] == to[j]:
			flush()
			out = part(out, diffSame, from[i])
			i, j = i+1, j+1
		case j == len(to) || i < len(from) && common[(i+1)*width+j] >= common[i*width+j+1]:
			removed = append(removed, from[i])
			i++
		default:
			added = append(added, to[j])
			j++
		}
	}
	flush()
	return out
}

// commonLengths returns the lengths of the longest common subsequences of all suffixes.
func commonLengths(from, to []string) []int32 {
	width := len(to) + 1
	table := make([]int32, (len(from)+1)*width)
	for i := len(from) - 1; i >= 0; i-- {
		for j := len(to) - 1; j >= 0; j-- {
			if from[i] == to[j] {
				table[i*width+j] = table[(i+1)*width+j+1] + 1
			} else {
				table[i*width+j] = max(table[(i+1)*width+j], table[i*width+j+1])
			}
		}
	}
	return table
}

// part appends tokens of one kind.
func part(out []diffPart, kind diffKind, tokens ...string) []diffPart {
	if len(tokens) == 0 {
		return out
	}
	return appendParts(out, diffPart{kind, strings.Join(tokens, "")})
}

// appendParts merges neighbours of the same kind.
func appendParts(out []diffPart, parts ...diffPart) []diffPart {
	for _, p := range parts {
		if n := len(out); n > 0 && out[n-1].Kind == p.Kind {
			out[n-1].Text += p.Text
			continue
		}
		out = append(out, p)
	}
	return out
}

// splitLines splits a text after its line breaks.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// splitWords splits a text into words and the text between them.
func splitWords(s string) []string {
	var out []string
	start, word := 0, false
	for i, r := range s {
		is := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
		if i > start && (is != word || !is) {
			out = append(out, s[start:i])
			start = i
		}
		word = is
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

// diffContext is the number of unchanged characters around a change.
const diffContext = 80

// shortenDiff omits unchanged text far from changes, and cuts the rest to most characters.
func shortenDiff(parts []diffPart, most int) []diffPart {
	var out []diffPart
	for i, p := range parts {
		if p.Kind == diffSame {
			out = append(out, shortenSame(p.Text, i == 0, i == len(parts)-1)...)
		} else {
			out = append(out, p)
		}
	}
	for i := range out {
		n := utf8.RuneCountInString(out[i].Text)
		if n > most {
			out[i].Text = string([]rune(out[i].Text)[:most])
			return append(out[:i+1], diffPart{Kind: diffGap})
		}
		most -= n
	}
	return out
}

// shortenSame keeps the ends of an unchanged text that are next to a change.
func shortenSame(s string, first, last bool) []diffPart {
	r := []rune(s)
	head, tail := diffContext, diffContext
	if first {
		head = 0
	}
	if last {
		tail = 0
	}
	if len(r) <= head+tail+diffContext {
		return []diffPart{{diffSame, s}}
	}
	var out []diffPart
	if head > 0 {
		out = append(out, diffPart{diffSame, string(r[:head])})
	}
	out = append(out, diffPart{Kind: diffGap})
	if tail > 0 {
		out = append(out, diffPart{diffSame, string(r[len(r)-tail:])})
	}
	return out
}
