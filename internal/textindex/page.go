package textindex

import (
	"bytes"
	"sort"
	"sync/atomic"
)

// Page is a page whose checksum fits. Searches share it.
type Page struct {
	data  []byte
	uses  atomic.Int32
	marks atomic.Pointer[[]mark] // nil: not made yet
}

// Size is about what the page takes in memory.
func (p *Page) Size() int64 {
	return int64(cap(p.data) + cap(p.data)/markEvery*markSize)
}

// mark is a place in a page of the dictionary at which a search can start.
type mark struct {
	before string // the key of the entry before it
	offset int
}

const (
	// markEvery is how many bytes are between two marks at least.
	markEvery = 512
	// markSize is about what a mark takes in memory.
	markSize = 48
)

// near returns a place before the entry with a key, or where it would be, and the key of the entry
// before that place. The first search in a page walks it from its start: many pages are searched only
// once.
func (p *Page) near(key string) (offset int, before string) {
	if key == "" {
		return 0, ""
	}
	marks := p.marks.Load()
	if marks == nil {
		if p.uses.Add(1) == 1 {
			return 0, ""
		}
		made := marksOf(p.data)
		marks = &made
		p.marks.Store(marks)
	}
	after := sort.Search(len(*marks), func(i int) bool { return (*marks)[i].before >= key })
	if after == 0 {
		return 0, ""
	}
	m := &(*marks)[after-1]
	return m.offset, m.before
}

// marksOf returns the marks of a page, or none if it is damaged, which scan reports.
func marksOf(data []byte) (out []mark) {
	r := reader{data: data}
	var key []byte
	last := 0
	for len(r.data) > 0 {
		n, rest := r.number(len(key)), r.text()
		r.entry()
		if r.bad || bytes.Compare(rest, key[n:]) <= 0 {
			return nil
		}
		key = append(key[:n], rest...)
		if at := len(data) - len(r.data); at-last >= markEvery {
			out, last = append(out, mark{string(key), at}), at
		}
	}
	return out
}
