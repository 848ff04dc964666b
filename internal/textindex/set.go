package textindex

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
)

// Set is a set of documents of a segment, as a bitmap.
type Set []uint64

// newSet returns an empty set for so many documents.
func newSet(docs int) Set { return make(Set, (docs+63)/64) }

// fullSet returns the set of all documents.
func fullSet(docs int) Set {
	s := newSet(docs)
	for i := range s {
		s[i] = ^uint64(0)
	}
	if rest := docs % 64; rest != 0 {
		s[len(s)-1] = 1<<rest - 1
	}
	return s
}

// Has reports whether the set has a document.
func (s Set) Has(doc int) bool { return s[doc/64]>>(doc%64)&1 == 1 }

// Add adds a document.
func (s Set) Add(doc int) { s[doc/64] |= 1 << (doc % 64) }

// Count returns the number of documents.
func (s Set) Count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// clone returns a copy.
func (s Set) clone() Set { return append(Set(nil), s...) }

func (s Set) and(o Set) {
	for i := range s {
		s[i] &= o[i]
	}
}

func (s Set) or(o Set) {
	for i := range s {
		s[i] |= o[i]
	}
}

func (s Set) andNot(o Set) {
	for i := range s {
		s[i] &^= o[i]
	}
}

// countAnd returns the number of documents that both sets have.
func (s Set) countAnd(o Set) (n int) {
	for i := range s {
		n += bits.OnesCount64(s[i] & o[i])
	}
	return n
}

// all yields the documents in order.
func (s Set) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(i*64 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// The forms of an encoded set.
const (
	members = iota // the differences between consecutive members
	others         // the same of the documents that are not members
	bitmap
)

// EncodeSet returns the set in its shortest form.
func EncodeSet(s Set, docs int) []byte {
	n := s.Count()
	form, listed := byte(members), s
	if 2*n > docs {
		form, listed, n = others, fullSet(docs), docs-n
		listed.andNot(s)
	}
	size := (docs + 7) / 8
	if n <= size { // a difference takes at least a byte
		out := append(make([]byte, 0, n+n/4+1), form)
		last := 0
		for doc := range listed.all() {
			out = binary.AppendUvarint(out, uint64(doc-last)) // not negative
			last = doc
		}
		if len(out) <= size {
			return out
		}
	}
	out := make([]byte, 1, size+8)
	out[0] = bitmap
	for _, w := range s {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out[:size+1]
}

// encodeList is EncodeSet for a list of documents, which it sorts. Most sets are small: a bitmap would
// take longer to clear than the list to encode.
func encodeList(list []uint16, docs int) []byte {
	if len(list) > docs/16 {
		s := newSet(docs)
		for _, doc := range list {
			s.Add(int(doc))
		}
		return EncodeSet(s, docs)
	}
	slices.Sort(list)
	out := append(make([]byte, 0, 2*len(list)+1), members)
	last := uint16(0)
	for _, doc := range list {
		out = binary.AppendUvarint(out, uint64(doc-last))
		last = doc
	}
	return out
}

// eachDoc calls fn for the documents of an encoded set, without a bitmap if there are few.
func eachDoc(data []byte, docs int, fn func(doc int)) error {
	if len(data) == 0 || data[0] != members {
		s, err := DecodeSet(data, docs)
		if err != nil {
			return err
		}
		for doc := range s.all() {
			fn(doc)
		}
		return nil
	}
	doc := uint64(0)
	for data = data[1:]; len(data) > 0; {
		diff, n := binary.Uvarint(data)
		if n <= 0 || diff >= uint64(docs)-doc { // doc is below docs
			return damaged("a set")
		}
		doc += diff
		fn(int(doc)) // below docs
		data = data[n:]
	}
	return nil
}

// DecodeSet reverses EncodeSet. An empty text is the empty set.
func DecodeSet(data []byte, docs int) (Set, error) {
	s := newSet(docs)
	if len(data) == 0 {
		return s, nil
	}
	form, data := data[0], data[1:]
	switch form {
	case members, others:
		doc := uint64(0)
		for len(data) > 0 {
			diff, n := binary.Uvarint(data)
			if n <= 0 || diff >= uint64(docs)-doc { // doc is below docs
				return nil, damaged("a set")
			}
			doc += diff
			s.Add(int(doc)) // below docs
			data = data[n:]
		}
		if form == others {
			for i, w := range fullSet(docs) {
				s[i] = w &^ s[i]
			}
		}
	case bitmap:
		if len(data) != (docs+7)/8 {
			return nil, damaged("a set")
		}
		var last [8]byte
		for i := range s {
			if len(data) < 8 {
				copy(last[:], data)
				data = last[:]
			}
			s[i] = binary.LittleEndian.Uint64(data)
			data = data[8:]
		}
		s.and(fullSet(docs))
	default:
		return nil, damaged("a set")
	}
	return s, nil
}
