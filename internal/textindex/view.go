package textindex

import (
	"errors"
	"maps"
	"slices"
	"sort"
)

// View is a segment with the pages that were read of it so far. A function that lacks a page takes it
// from the source. If that has none, it records that the page is missing and returns errMissing; the
// caller reads all pages that are missing and tries again.
type View struct {
	*Segment
	dead    Set // documents that are deleted or that a newer segment has
	alive   int // the number of others
	source  Source
	pages   map[int]*Page
	missing map[int]struct{}
	sets    map[string]Set
	ids     map[int]*pageIDs // by page
	empty   Set              // of all keys that the segment lacks; nil: not made yet
}

// Source has pages that need not be read again. It returns nil for others.
type Source interface{ Page(n int) *Page }

// NewView returns a view. The source may be nil; it need not have the header.
func NewView(s *Segment, dead Set, source Source) *View {
	if dead == nil {
		dead = newSet(s.docs)
	}
	return &View{Segment: s, dead: dead, alive: s.docs - dead.Count(), source: source}
}

// memory is the source of a segment that is not stored.
type memory []*Page

// Page implements Source.
func (m memory) Page(n int) *Page {
	if n >= len(m) {
		return nil
	}
	return m[n]
}

// InMemory returns a view of the pages that Build returned.
func InMemory(pages [][]byte) (*View, error) {
	s, err := Open(pages[0])
	if err != nil {
		return nil, err
	}
	all := make(memory, len(pages))
	for i, data := range pages {
		if all[i], err = Check(data); err != nil {
			return nil, err
		}
	}
	return NewView(s, nil, all), nil
}

// Again returns a view of the same segment for another search.
func (v *View) Again() *View {
	return &View{Segment: v.Segment, dead: v.dead, alive: v.alive, source: v.source}
}

var errMissing = errors.New("textindex: pages are missing")

// Missing returns the pages that must be added, in order.
func (v *View) Missing() []int {
	if len(v.missing) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(v.missing))
}

// AddPage adds a page.
func (v *View) AddPage(n int, p *Page) {
	if v.pages == nil {
		v.pages = map[int]*Page{}
	}
	v.pages[n] = p
	delete(v.missing, n)
}

func (v *View) page(n int) (*Page, error) {
	if p, ok := v.pages[n]; ok {
		return p, nil
	}
	if v.source != nil {
		if p := v.source.Page(n); p != nil {
			v.AddPage(n, p) // the source may forget it
			return p, nil
		}
	}
	if v.missing == nil {
		v.missing = map[int]struct{}{}
	}
	v.missing[n] = struct{}{}
	return nil, errMissing
}

// none returns the set of a key that the segment lacks.
func (v *View) none() Set {
	if v.empty == nil {
		v.empty = newSet(v.docs)
	}
	return v.empty
}

// isNone reports whether a set is that of a key that the segment lacks.
func (v *View) isNone(s Set) bool { return v.empty != nil && &s[0] == &v.empty[0] }

// keep keeps the set of a key for this search.
func (v *View) keep(key string, s Set) {
	if v.sets == nil {
		v.sets = map[string]Set{}
	}
	v.sets[key] = s
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
	var found Set
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
	if found == nil {
		found = v.none()
	}
	v.keep(key, found)
	return found, nil
}

// lacks reports whether the segment is known to lack a key.
func (v *View) lacks(key string) bool {
	s, known := v.sets[key]
	return known && v.isNone(s)
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

// prefixKey is the key under which a view keeps the documents with a word that has the prefix.
func prefixKey(prefixes kind, prefix string) string { return prefixes.key(prefix) + "*" }

// withPrefix returns the documents with a word that has the prefix. The caller must not change it.
func (v *View) withPrefix(words, prefixes kind, prefix string) (Set, error) {
	memo := prefixKey(prefixes, prefix)
	if s, ok := v.sets[memo]; ok {
		return s, nil
	}
	// The first prefix that continues this one is the one that all of its words share.
	var out Set
	err := v.walk(prefixes.key(prefix), func(e *entry) (_ bool, err error) {
		out, err = v.setOf(e)
		return false, err
	})
	if err == nil && out == nil { // few words have it
		missing := false
		err = v.walk(words.key(prefix), func(e *entry) (bool, error) {
			s, err := v.setOf(e)
			switch {
			case errors.Is(err, errMissing): // look for the others
				missing, err = true, nil
			case err != nil:
			case out == nil:
				out = s
			default:
				out.or(s)
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
	if out == nil {
		out = v.none()
	}
	v.keep(memo, out)
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

// pageIDs are the ids of a page.
type pageIDs struct {
	all   []string // nil: only few were needed so far
	asked int
}

// fewIDs is how many ids of a page are looked up one by one before all are decoded. A look-up reads half
// of the page on average, but makes only one string.
const fewIDs = 3

// id returns the id of a document.
func (v *View) id(doc int) (string, error) {
	n, at := v.idPage(doc), doc%perPage
	known := v.knownIDs(n)
	if known.all == nil && known.asked < fewIDs {
		page, err := v.page(n)
		if err != nil {
			return "", err
		}
		known.asked++
		return idAt(page, at)
	}
	list, err := v.idsOf(n)
	if err != nil {
		return "", err
	}
	if at >= len(list) {
		return "", damaged("a page of ids")
	}
	return list[at], nil
}

// knownIDs returns what is known of the ids of a page.
func (v *View) knownIDs(n int) *pageIDs {
	known := v.ids[n]
	if known == nil {
		known = &pageIDs{}
		if v.ids == nil {
			v.ids = map[int]*pageIDs{}
		}
		v.ids[n] = known
	}
	return known
}

// idsOf returns all ids of a page.
func (v *View) idsOf(n int) ([]string, error) {
	known := v.knownIDs(n)
	if known.all != nil {
		return known.all, nil
	}
	page, err := v.page(n)
	if err != nil {
		return nil, err
	}
	known.all, err = decodeIDs(page)
	return known.all, err
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
		v.dead, v.alive = dead, v.docs-dead.Count()
	}
	return changed, done, nil
}

// Dead returns the documents that are hidden.
func (v *View) Dead() Set { return v.dead }

// AskAll asks for all pages of a segment with so many pages, except the header.
func (v *View) AskAll(pages int) {
	for n := 1; n < pages; n++ {
		_, _ = v.page(n) // if it is missing, that is recorded
	}
}
