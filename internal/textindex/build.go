package textindex

import (
	"encoding/binary"
	"slices"
	"strings"
)

const (
	// manyWords is the number of words from which a prefix has a set of its own.
	manyWords = 128
	// maxInline limits the sets in the dictionary, in bytes.
	maxInline = 64
	keyBytes  = 8 << 10 // of a page of the dictionary
)

// Doc is a document to index.
type Doc struct {
	ID    string
	Title []string // terms, in any order and number; they count as terms of the text, too
	Text  []string
	Tags  []string // values that searches filter by
}

// Build returns the pages of a segment of the documents, of which there must be between 1 and MaxDocs
// with different ids.
func Build(docs []Doc) [][]byte {
	docs = slices.Clone(docs)
	slices.SortFunc(docs, func(a, b Doc) int { return strings.Compare(a.ID, b.ID) })
	text, title, tags := postings{}, postings{}, postings{}
	ids := make([]string, len(docs))
	for i := range docs {
		d := &docs[i]
		ids[i] = d.ID
		for _, term := range d.Title {
			title.of(term).add(i)
			text.of(term).add(i)
		}
		for _, term := range d.Text {
			text.of(term).add(i)
		}
		for _, tag := range d.Tags {
			tags.of(tag).add(i)
		}
	}
	return encode(ids, map[kind]postings{inText: text, inTitle: title, tagged: tags})
}

// encode returns the pages of a segment.
func encode(ids []string, all map[kind]postings) [][]byte {
	w := &writer{ids: ids, entries: map[kind][]written{}}
	for k, p := range all {
		for _, term := range p.terms() {
			list := p[term].docs
			w.entries[k] = append(w.entries[k], written{term, encodeList(list, len(ids)), list})
		}
	}
	return w.finish()
}

// postings are the documents of each term.
type postings map[string]*posting

type posting struct{ docs []uint16 }

// of returns the documents of a term, to add to.
func (p postings) of(term string) *posting {
	list := p[term]
	if list == nil {
		list = &posting{}
		p[term] = list
	}
	return list
}

// add adds a document, unless it was the last one that was added.
func (l *posting) add(doc int) {
	d := uint16(doc) // below MaxDocs
	if n := len(l.docs); n == 0 || l.docs[n-1] != d {
		l.docs = append(l.docs, d)
	}
}

func (p postings) terms() []string {
	out := make([]string, 0, len(p))
	for term := range p {
		out = append(out, term)
	}
	slices.Sort(out)
	return out
}

// writer makes the pages of a segment from terms and their sets.
type writer struct {
	ids     []string
	entries map[kind][]written
}

// written is an entry of the dictionary with its encoded set.
type written struct {
	term string
	set  []byte
	docs []uint16 // nil for prefixes
}

// finish returns the pages.
func (w *writer) finish() [][]byte {
	w.addPrefixes(inText, textPrefix)
	w.addPrefixes(inTitle, titlePrefix)
	s := &Segment{docs: len(w.ids), last: w.ids[len(w.ids)-1]}
	idPages := w.idPages(s)
	dict, _ := w.keyPages(s, 0) // to count its pages, which precede those of the sets
	dict, sets := w.keyPages(s, len(dict)+len(idPages))
	pages := slices.Concat([][]byte{s.encode()}, dict, idPages, sets)
	for i, p := range pages {
		pages[i] = seal(p)
	}
	return pages
}

func (w *writer) idPages(s *Segment) (out [][]byte) {
	for part := range slices.Chunk(w.ids, perPage) {
		s.firstIDs = append(s.firstIDs, part[0])
		var page []byte
		before := ""
		for _, id := range part {
			page = appendShared(page, before, id)
			before = id
		}
		out = append(out, page)
	}
	return out
}

// keyPages returns the pages of the dictionary and those of the sets, whose numbers start after before.
// Numbers have a fixed width in the dictionary, so their values do not change its size.
func (w *writer) keyPages(s *Segment, before int) (dict, sets [][]byte) {
	s.firstKeys = nil
	var page, set []byte
	last := ""
	for k := inText; k <= tagged; k++ {
		for _, e := range w.entries[k] {
			key := k.key(e.term)
			if len(page) > keyBytes {
				dict, page = append(dict, page), nil
			}
			if page == nil {
				s.firstKeys = append(s.firstKeys, key)
				last = ""
			}
			page = appendShared(page, last, key)
			last = key
			if len(e.set) <= maxInline {
				page = append(page, 0)
				page = appendStr(page, string(e.set))
				continue
			}
			if len(set)+len(e.set) > MaxPage {
				sets, set = append(sets, set), nil
			}
			page = appendWide(page, 1+before+len(sets))
			page = binary.AppendUvarint(page, uint64(len(set)))
			page = binary.AppendUvarint(page, uint64(len(e.set)))
			set = append(set, e.set...)
		}
	}
	if page != nil {
		dict = append(dict, page)
	}
	if set != nil {
		sets = append(sets, set)
	}
	return dict, sets
}

// appendWide appends a number below 1<<28 that takes four bytes and is not 0.
func appendWide(out []byte, n int) []byte {
	return append(out, byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)|0x80, byte(n>>21)&0x7f)
}

// addPrefixes adds the sets of prefixes that many words have.
func (w *writer) addPrefixes(words, prefixes kind) {
	w.union(w.entries[words], prefixes, newSet(len(w.ids)))
	slices.SortFunc(w.entries[prefixes], func(a, b written) int { return strings.Compare(a.term, b.term) })
}

// union adds the sets of the words to into. If there are many, it makes a key of the prefix that all
// of them share, and does the same with groups of words that share more.
func (w *writer) union(words []written, prefixes kind, into Set) {
	if len(words) <= manyWords {
		for _, e := range words {
			for _, doc := range e.docs {
				into.Add(int(doc))
			}
		}
		return
	}
	n := shared(words[0].term, words[len(words)-1].term)
	prefix, all := words[0].term[:n], newSet(len(w.ids))
	for len(words) > 0 {
		end := 1
		for len(words[0].term) > n && end < len(words) && words[end].term[n] == words[0].term[n] {
			end++
		}
		w.union(words[:end], prefixes, all)
		words = words[end:]
	}
	if n > 0 {
		w.entries[prefixes] = append(w.entries[prefixes], written{prefix, EncodeSet(all, len(w.ids)), nil})
	}
	into.or(all)
}
