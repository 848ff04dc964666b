// Package textindex is an inverted index of texts. It is pure: it neither reads nor writes storage.
//
// A segment is an immutable index of up to MaxDocs documents, encoded as numbered pages. Page 0 is its
// header. It names the first key of every page of the dictionary, and the first id of every page of
// ids. A key of the dictionary is a kind and a term; its value is the set of the documents that have
// it. Small sets are in the dictionary, others in pages of their own. So a search reads only the pages
// of its terms, and of the ids that it returns.
//
// A prefix that many words have is a key, too, with the union of their sets: a search for a prefix
// of one letter reads one set. Documents are in the order of their ids.
//
// Pages come from storage that may be damaged. No content of a page makes a function panic.
package textindex

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sort"
	"strings"
)

const (
	// MaxDocs limits the documents of a segment.
	MaxDocs = 1 << 16
	// MaxPage is the size that pages of the dictionary and of sets do not exceed, except for one
	// large key. A header can be larger.
	MaxPage = 16 << 10

	magic   = "ptx1"
	perPage = 256 // ids
)

// kind is the first byte of a key.
type kind byte

// The kinds of keys. The key of a prefix belongs to the words of the kind before it.
const (
	inText kind = 'a' + iota
	textPrefix
	inTitle
	titlePrefix
	tagged
)

func (k kind) key(term string) string { return string(rune(k)) + term }

// ErrDamaged is the error of pages with an impossible content.
var ErrDamaged = errors.New("the text index is damaged")

func damaged(what string) error { return fmt.Errorf("%w: %s", ErrDamaged, what) }

// Segment is the decoded header of a segment.
type Segment struct {
	docs      int
	last      string   // the last id
	firstKeys []string // of the pages of the dictionary
	firstIDs  []string // of the pages of ids
}

// Docs returns the number of documents, with those that are deleted.
func (s *Segment) Docs() int { return s.docs }

// Open decodes page 0 of a segment.
func Open(header []byte) (*Segment, error) {
	page, err := Check(header)
	if err != nil {
		return nil, err
	}
	r := reader{data: page.data}
	if string(r.take(len(magic))) != magic {
		return nil, damaged("a header")
	}
	s := &Segment{docs: r.number(MaxDocs)}
	s.last = string(r.text())
	s.firstKeys = r.strs()
	s.firstIDs = r.strs()
	if r.bad || len(r.data) > 0 || s.docs == 0 || len(s.firstIDs) != (s.docs+perPage-1)/perPage ||
		!slices.IsSorted(s.firstKeys) || !slices.IsSorted(s.firstIDs) {
		return nil, damaged("a header")
	}
	return s, nil
}

// encode returns the header.
func (s *Segment) encode() []byte {
	out := append([]byte(nil), magic...)
	out = binary.AppendUvarint(out, uint64(s.docs)) // a length
	out = appendStr(out, s.last)
	for _, list := range [][]string{s.firstKeys, s.firstIDs} {
		out = binary.AppendUvarint(out, uint64(len(list)))
		for _, text := range list {
			out = appendStr(out, text)
		}
	}
	return out
}

// pages is the number of pages of the header, the dictionary and the ids. Those of sets follow.
func (s *Segment) pages() int { return 1 + len(s.firstKeys) + len(s.firstIDs) }

// keyPage returns the page of the dictionary that has the key, or where it would be.
func (s *Segment) keyPage(key string) int {
	return max(1, sort.Search(len(s.firstKeys), func(i int) bool { return s.firstKeys[i] > key }))
}

// idPage returns the page with the id of a document.
func (s *Segment) idPage(doc int) int { return 1 + len(s.firstKeys) + doc/perPage }

var checksums = crc32.MakeTable(crc32.Castagnoli)

// seal appends a checksum to a page.
func seal(page []byte) []byte {
	return binary.LittleEndian.AppendUint32(page, crc32.Checksum(page, checksums))
}

// Check checks a page that was read. Nobody may change it afterwards.
func Check(data []byte) (*Page, error) {
	n := len(data) - 4
	if n < 0 || binary.LittleEndian.Uint32(data[n:]) != crc32.Checksum(data[:n], checksums) {
		return nil, damaged("the checksum of a page does not fit")
	}
	return &Page{data: data[:n:n]}, nil
}

// reader decodes numbers and texts. After the first error it returns zero values.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.data) {
		r.bad = true
		return nil
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

// number decodes a number of at most most.
func (r *reader) number(most int) int {
	if len(r.data) > 0 && r.data[0] < 0x80 && int(r.data[0]) <= most { // most numbers
		n := int(r.data[0])
		r.data = r.data[1:]
		return n
	}
	n, shift := uint64(0), 0
	for i := 0; i < len(r.data) && i < binary.MaxVarintLen32; i++ {
		c := r.data[i]
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if n > uint64(most) { // a limit
				break
			}
			r.data = r.data[i+1:]
			return int(n) // at most most
		}
		shift += 7
	}
	r.bad = true
	return 0
}

// text decodes what appendStr appended.
func (r *reader) text() []byte { return r.take(r.number(len(r.data))) }

func (r *reader) strs() []string {
	n := r.number(len(r.data)) // each one takes a byte at least
	if r.bad {
		return nil
	}
	out := make([]string, 0, n)
	for range n {
		out = append(out, string(r.text()))
	}
	return out
}

func appendStr(out []byte, s string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(s))), s...)
}

// appendShared appends a text as the length of what it shares with the one before, and the rest.
func appendShared(out []byte, before, s string) []byte {
	n := shared(before, s)
	out = binary.AppendUvarint(out, uint64(n)) // a length
	return appendStr(out, s[n:])
}

func shared[T string | []byte](a T, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// decodeIDs decodes a page of ids.
func decodeIDs(page *Page) ([]string, error) {
	r := reader{data: page.data}
	all, ends := make([]byte, 0, perPage*32), make([]int, 0, perPage)
	for start := 0; len(r.data) > 0 && !r.bad && len(ends) < perPage; {
		n, rest := r.number(len(all)-start), r.text()
		before := all[start:]
		start = len(all)
		all = append(append(all, before[:n]...), rest...)
		ends = append(ends, len(all))
	}
	if r.bad || len(r.data) > 0 {
		return nil, damaged("a page of ids")
	}
	out, text, start := make([]string, len(ends)), string(all), 0
	for i, end := range ends {
		out[i], start = text[start:end], end
	}
	return out, nil
}

// idAt decodes one id of a page.
func idAt(page *Page, at int) (string, error) {
	r := reader{data: page.data}
	var buf [64]byte
	id := buf[:0]
	for i := 0; len(r.data) > 0; i++ {
		n, rest := r.number(len(id)), r.text()
		if r.bad {
			break
		}
		if id = append(id[:n], rest...); i == at {
			return string(id), nil
		}
	}
	return "", damaged("a page of ids")
}

// entry is an entry of the dictionary.
type entry struct {
	key    string
	inline []byte // the set, if it is in the dictionary
	page   int    // of the set, if it is not 0
	offset int
	length int
}

// entry decodes an entry of the dictionary without its key.
func (r *reader) entry() (e entry) {
	if e.page = r.number(1 << 30); e.page == 0 {
		e.inline = r.text()
		return e
	}
	e.offset, e.length = r.number(1<<30), r.number(1<<30)
	return e
}

// scan calls fn for the entries of a page of the dictionary from a key on, until it returns false. It does
// not decode the keys before that one. If a key shares more with the one before it than that one with
// from, both are less.
func scan(page *Page, from string, fn func(entry) bool) error {
	start, before := page.near(from)
	r := reader{data: page.data[start:]}
	skip, same, length := from != "", shared(before, from), len(before)
	for len(r.data) > 0 {
		n, rest := r.number(length), r.text()
		e := r.entry()
		if length = n + len(rest); r.bad || length == 0 {
			return damaged("a page of the dictionary")
		}
		if skip {
			if n > same {
				continue
			}
			if string(rest) < from[n:] {
				same = n + shared(rest, from[n:])
				continue
			}
			skip, e.key = false, from[:n]+string(rest)
		} else if e.key = before[:n] + string(rest); e.key <= before {
			return damaged("a page of the dictionary")
		}
		before = e.key
		if !fn(e) {
			return nil
		}
	}
	return nil
}

// isPrefix reports whether the key continues the prefix.
func (e *entry) isPrefix(prefix string) bool { return strings.HasPrefix(e.key, prefix) }
