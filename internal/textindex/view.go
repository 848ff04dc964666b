package textindex

import (
	"errors"
	"maps"
	"sort"
)

// View is a segment with the pages that were read of it so far. A function that lacks a page records it,
// and returns errMissing; the caller reads all pages that are missing and tries again.
type View struct {
	*Segment
	dead    Set // documents that are deleted or that a newer segment has
	pages   map[int]*Page
	missing map[int]struct{}
	sets    map[string]Set
	ids     map[int][]string // by page
	empty   Set              // of all keys that the segment lacks
}

// NewView returns a view. The header is not needed among the pages, which may be nil.
func NewView(s *Segment, dead Set, pages map[int]*Page) *View {
	if pages == nil {
		pages = map[int]*Page{}
	}
	if dead == nil {
		dead = newSet(s.docs)
	}
	return &View{
		Segment: s, dead: dead, pages: pages, missing: map[int]struct{}{}, sets: map[string]Set{}, ids: map[int][]string{},
	}
}

// InMemory returns a view of the pages that Build returned.
func InMemory(pages [][]byte) (*View, error) {
	s, err := Open(pages[0])
	if err != nil {
		return nil, err
	}
	all := make(map[int]*Page, len(pages))
	for i, data := range pages {
		if all[i], err = Check(data); err != nil {
			return nil, err
		}
	}
	return NewView(s, nil, all), nil
}

// Again returns a view of the same segment for another search, with the same pages.
func (v *View) Again() *View { return NewView(v.Segment, v.dead, maps.Clone(v.pages)) }

var errMissing = errors.New("textindex: pages are missing")

// Missing returns the pages that must be added, in order.
func (v *View) Missing() []int {
	out := make([]int, 0, len(v.missing))
	for n := range v.missing {
		out = append(out, n)
	}
	sort.Ints(out)
	return out
}

// AddPage adds a page that was missing.
func (v *View) AddPage(n int, p *Page) {
	v.pages[n] = p
	delete(v.missing, n)
}

func (v *View) page(n int) (*Page, error) {
	if p, ok := v.pages[n]; ok {
		return p, nil
	}
	v.missing[n] = struct{}{}
	return nil, errMissing
}

// set returns the documents with a key, which is empty if there is none. The caller must not change it.
func (v *View) set(key string) (Set, error) {
	if s, ok := v.sets[key]; ok {
		return s, nil
	}
	page, err := v.page(v.keyPage(key))
	if err != nil {
		return nil, err
	}
	if v.empty == nil {
		v.empty = newSet(v.docs)
	}
	found := v.empty
	var failed error
	err = scan(page, key, func(e entry) bool {
		if e.key == key {
			found, failed = v.setOf(&e)
		}
		return false
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, only(err)
	}
	v.sets[key] = found
	return found, nil
}

// lacks reports whether the segment is known to lack a key.
func (v *View) lacks(key string) bool {
	s, known := v.sets[key]
	return known && &s[0] == &v.empty[0]
}

// only returns errMissing itself, which callers compare.
func only(err error) error {
	if errors.Is(err, errMissing) {
		return errMissing
	}
	return err
}

// setOf returns the set of an entry.
func (v *View) setOf(e *entry) (Set, error) {
	data, err := v.dataOf(e)
	if err != nil {
		return nil, err
	}
	return DecodeSet(data, v.docs)
}

// dataOf returns the encoded set of an entry.
func (v *View) dataOf(e *entry) ([]byte, error) {
	data := e.inline
	if e.page != 0 {
		if e.page < v.Segment.pages() {
			return nil, damaged("a page of the dictionary")
		}
		page, err := v.page(e.page)
		if err != nil {
			return nil, err
		}
		if e.offset > len(page.data) || e.length > len(page.data)-e.offset {
			return nil, damaged("a page of sets")
		}
		data = page.data[e.offset : e.offset+e.length]
	}
	return data, nil
}

// withPrefix returns the documents with a word that has the prefix.
func (v *View) withPrefix(words, prefixes kind, prefix string) (Set, error) {
	memo := prefixes.key(prefix) + "*"
	if s, ok := v.sets[memo]; ok {
		return s, nil
	}
	// The first prefix that continues this one is the one that all of its words share.
	out, first := newSet(v.docs), true
	err := v.walk(prefixes.key(prefix), func(e *entry) (bool, error) {
		s, err := v.setOf(e)
		if err == nil {
			out, first = s, false
		}
		return false, err
	})
	if err == nil && first { // few words have it
		missing := false
		err = v.walk(words.key(prefix), func(e *entry) (bool, error) {
			s, err := v.setOf(e)
			switch {
			case err == nil:
				out.or(s)
			case errors.Is(err, errMissing): // look for the others
				missing, err = true, nil
			}
			return true, err
		})
		if err == nil && missing {
			err = errMissing
		}
	}
	if err != nil {
		return nil, err
	}
	v.sets[memo] = out
	return out, nil
}

// walk calls fn for the entries whose keys have the prefix, until it returns false or an error.
func (v *View) walk(prefix string, fn func(*entry) (bool, error)) error {
	for n := v.keyPage(prefix); n <= len(v.firstKeys); n++ {
		if first := v.firstKeys[n-1]; first > prefix && !(&entry{key: first}).isPrefix(prefix) {
			return nil
		}
		page, err := v.page(n)
		if err != nil {
			return err
		}
		more := true
		var failed error
		err = scan(page, prefix, func(e entry) bool {
			if more = e.isPrefix(prefix); more {
				more, failed = fn(&e)
			}
			return more && failed == nil
		})
		if err != nil || failed != nil || !more {
			return errors.Join(err, failed)
		}
	}
	return nil
}

// id returns the id of a document.
func (v *View) id(doc int) (string, error) {
	list, err := v.idsOf(v.idPage(doc))
	if err != nil {
		return "", err
	}
	if doc%perPage >= len(list) {
		return "", damaged("a page of ids")
	}
	return list[doc%perPage], nil
}

func (v *View) idsOf(n int) ([]string, error) {
	if list, ok := v.ids[n]; ok {
		return list, nil
	}
	page, err := v.page(n)
	if err != nil {
		return nil, err
	}
	list, err := decodeIDs(page)
	if err == nil {
		v.ids[n] = list
	}
	return list, err
}

// before returns the number of documents whose ids are less than id.
func (v *View) before(id string) (int, error) {
	p := sort.SearchStrings(v.firstIDs, id) // pages before p start with a lesser id
	switch {
	case p == 0:
		return 0, nil
	case id > v.last:
		return v.docs, nil
	case p < len(v.firstIDs) && v.firstIDs[p] == id:
		return p * perPage, nil
	}
	list, err := v.idsOf(1 + len(v.firstKeys) + p - 1)
	if err != nil {
		return 0, err
	}
	return min(v.docs, (p-1)*perPage+sort.SearchStrings(list, id)), nil
}

// find returns the document with an id, or -1.
func (v *View) find(id string) (int, error) {
	doc, err := v.before(id)
	if err != nil || doc >= v.docs {
		return -1, err
	}
	if doc%perPage == 0 { // no page was needed
		if v.firstIDs[doc/perPage] == id {
			return doc, nil
		}
		return -1, nil
	}
	found, err := v.id(doc)
	if err == nil && found != id {
		doc = -1
	}
	return doc, err
}

// Mask hides the documents with these ids, and reports whether it changed anything. If done is false,
// pages are missing.
func (v *View) Mask(ids []string) (changed, done bool, err error) {
	dead := v.dead.clone()
	done = true
	for _, id := range ids {
		doc, err := v.find(id)
		switch {
		case errors.Is(err, errMissing):
			done = false
		case err != nil:
			return false, false, err
		case doc >= 0 && !dead.Has(doc):
			dead.Add(doc)
			changed = true
		}
	}
	if done {
		v.dead = dead
	}
	return changed, done, nil
}

// Dead returns the documents that are hidden.
func (v *View) Dead() Set { return v.dead }

// AskAll asks for all pages of a segment with so many pages, except the header.
func (v *View) AskAll(pages int) {
	for n := 1; n < pages; n++ {
		_, _ = v.page(n) // records that it is missing
	}
}
