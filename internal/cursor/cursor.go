// Package cursor encodes where the next page of a list begins. Clients hand a cursor back without
// looking into it.
//
// A cursor carries a version and a checksum of its list's name and filters, so a cursor of another
// list is rejected. It is not signed: readers check its values like any input. Lists that are
// ordered by the ids of their entries need no cursor; they use the id of the last entry.
package cursor

import (
	"encoding/base64"
	"encoding/binary"
	"time"
)

const (
	version = 2
	header  = 1 + 4 // version and checksum
	// maxLen bounds what is decoded. The longest ids fit with room to spare.
	maxLen = 2048
)

// List identifies a list that has cursors.
type List struct{ sum uint32 }

// Of returns the list with the given name. Its cursors are valid only with the same filters.
func Of(name string, filters ...string) List {
	// FNV-1a, with a zero byte after each string. It distinguishes lists; it does not stop attackers.
	const offset, prime = 2166136261, 16777619
	sum := uint32(offset)
	add := func(s string) {
		for i := range len(s) {
			sum = (sum ^ uint32(s[i])) * prime
		}
		sum *= prime
	}
	add(name)
	for _, f := range filters {
		add(f)
	}
	return List{sum}
}

// Writer builds a cursor from values.
type Writer struct{ b []byte }

// At begins a cursor.
func (l List) At() *Writer {
	b := make([]byte, 0, 64)
	return &Writer{binary.BigEndian.AppendUint32(append(b, version), l.sum)}
}

// Int adds a number.
func (w *Writer) Int(n int64) *Writer {
	w.b = binary.AppendVarint(w.b, n)
	return w
}

// Time adds a time, in microseconds.
func (w *Writer) Time(t time.Time) *Writer { return w.Int(t.UnixMicro()) }

// Text adds a string.
func (w *Writer) Text(s string) *Writer {
	w.b = append(binary.AppendUvarint(w.b, uint64(len(s))), s...)
	return w
}

// String returns the encoded cursor.
func (w *Writer) String() string { return base64.RawURLEncoding.EncodeToString(w.b) }

// Reader reads the values of a cursor in the order in which they were written. It remembers a
// failure; callers check Done once, at the end.
type Reader struct {
	b   []byte
	bad bool
}

// Read begins to read a cursor.
func (l List) Read(s string) *Reader {
	if len(s) > base64.RawURLEncoding.EncodedLen(maxLen) {
		return &Reader{bad: true}
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < header || b[0] != version || binary.BigEndian.Uint32(b[1:]) != l.sum {
		return &Reader{bad: true}
	}
	return &Reader{b: b[header:]}
}

// Int reads a number. It returns 0 if there is none left.
func (r *Reader) Int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Time reads a time, in UTC. Times before 1970 are rejected.
func (r *Reader) Time() time.Time {
	us := r.Int()
	if us < 0 {
		r.fail()
	}
	return time.UnixMicro(us).UTC()
}

// Text reads a string. It returns "" if there is none left.
func (r *Reader) Text() string {
	size, n := binary.Uvarint(r.b)
	if n <= 0 || size > uint64(len(r.b)-n) {
		r.fail()
		return ""
	}
	s := string(r.b[n : n+int(size)])
	r.b = r.b[n+int(size):]
	return s
}

// Done reports whether the whole cursor was read without a failure.
func (r *Reader) Done() bool { return !r.bad && len(r.b) == 0 }

func (r *Reader) fail() { r.b, r.bad = nil, true }
