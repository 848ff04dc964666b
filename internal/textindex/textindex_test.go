package textindex

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// tb is a test of package testing or of rapid.
type tb interface {
	Helper()
	Fatal(args ...any)
}

// storage has the pages of segments, of which a search reads only those that it asks for. Its views
// have a source that keeps some pages at random, and may forget each one, if kept is not nil.
type storage struct {
	segments []*stored
	kept     *rand.Rand
}

type stored struct {
	pages [][]byte
	dead  Set
}

func (s *storage) add(docs []Doc) {
	if len(docs) > 0 {
		pages := Build(docs)
		s.segments = append(s.segments, &stored{pages, newSet(len(docs))})
	}
}

func (s *storage) views(t tb) (out []*View) {
	t.Helper()
	for _, seg := range s.segments {
		h, err := Open(seg.pages[0])
		if err != nil {
			t.Fatal(err)
		}
		var source Source
		if s.kept != nil {
			source = forgetful{t, seg.pages, s.kept}
		}
		out = append(out, NewView(h, seg.dead.clone(), source))
	}
	return out
}

// forgetful is a source that has each page now and then.
type forgetful struct {
	t     tb
	pages [][]byte
	rnd   *rand.Rand
}

// Page implements Source.
func (f forgetful) Page(n int) *Page {
	if f.rnd.IntN(2) == 0 {
		return nil
	}
	return checked(f.t, f.pages[n])
}

func checked(t tb, data []byte) *Page {
	t.Helper()
	p, err := Check(data)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// load reads what is missing.
func (s *storage) load(t tb, views []*View) (read int) {
	t.Helper()
	for i, v := range views {
		for _, n := range v.Missing() {
			v.AddPage(n, checked(t, s.segments[i].pages[n]))
			read++
		}
	}
	return read
}

func (s *storage) mask(t tb, ids []string) {
	t.Helper()
	views := s.views(t)
	for i, v := range views {
		for {
			_, done, err := v.Mask(ids)
			if err != nil {
				t.Fatal(err)
			}
			if done {
				break
			}
			s.load(t, views)
		}
		s.segments[i].dead = v.Dead()
	}
}

func (s *storage) merge(t tb, from, to int) {
	t.Helper()
	views := s.views(t)[from:to]
	for i, v := range views {
		for n, p := range s.segments[from+i].pages {
			v.AddPage(n, checked(t, p))
		}
	}
	pages, err := Merge(views)
	if err != nil {
		t.Fatal(err)
	}
	s.segments = slices.Delete(s.segments, from, to)
	if pages != nil {
		h, err := Open(pages[0])
		if err != nil {
			t.Fatal(err)
		}
		s.segments = slices.Insert(s.segments, from, &stored{pages, newSet(h.Docs())})
	}
}

// search returns a page of hits and the total. It counts the pages that it reads.
func (s *storage) search(t tb, q Query, after *Hit, offset, limit int) (hits []Hit, total, read int) {
	t.Helper()
	views := s.views(t)
	run := NewSearch(q, views)
	for {
		done, err := run.Match()
		if err != nil {
			t.Fatal(err)
		}
		if done {
			break
		}
		read += s.load(t, views)
	}
	for {
		hits, done, err := run.Pick(after, offset, limit)
		if err != nil {
			t.Fatal(err)
		}
		if done {
			return hits, run.Total(), read
		}
		read += s.load(t, views)
	}
}

// model is a search without an index.
type model map[string]Doc

func (m model) search(q Query) (out []Hit) {
	having := func(terms func(Doc) []string, ok func(string) bool) (n int) {
		for _, d := range m {
			if slices.ContainsFunc(terms(d), ok) {
				n++
			}
		}
		return n
	}
	text := func(d Doc) []string { return slices.Concat(d.Title, d.Text) }
	known := map[string]int{}
	rarity := func(name string, ok func(string) bool) int {
		if _, found := known[name]; !found {
			known[name] = bits.Len(uint(len(m) / max(1, having(text, ok))))
		}
		return known[name]
	}
	for _, d := range m {
		score, match := 0, q.Only == "" || q.Only == d.ID
		match = match && d.ID != q.Except
		for _, w := range q.Words {
			is := func(s string) bool { return s == w }
			match = match && slices.Contains(text(d), w)
			if q.Order == ByRelevance && slices.Contains(d.Title, w) {
				score += 2 * rarity(w, is)
			}
		}
		if q.Prefix != "" {
			begins := func(s string) bool { return strings.HasPrefix(s, q.Prefix) }
			match = match && slices.ContainsFunc(text(d), begins)
			if q.Order == ByRelevance && slices.ContainsFunc(d.Title, begins) {
				score += 2 * rarity("*", begins)
			}
			if q.Order == ByRelevance && slices.Contains(text(d), q.Prefix) {
				score += rarity("*", begins)
			}
		}
		for _, tag := range q.Tags {
			match = match && slices.Contains(d.Tags, tag)
		}
		for _, of := range []struct{ want, have []string }{{q.Any, text(d)}, {q.OneOf, d.Tags}} {
			match = match && (len(of.want) == 0 || slices.ContainsFunc(of.want, func(w string) bool { return slices.Contains(of.have, w) }))
		}
		for _, w := range q.Any {
			if q.Order == ByRelevance && slices.Contains(text(d), w) {
				score += rarity(w, func(s string) bool { return s == w })
				if slices.Contains(d.Title, w) {
					score += rarity(w, func(s string) bool { return s == w })
				}
			}
		}
		if q.Hidden[0] != "" && slices.Contains(d.Tags, q.Hidden[0]) && !slices.Contains(d.Tags, q.Hidden[1]) {
			match = false
		}
		if q.Order == ByTags {
			for tag, n := range q.Weights {
				if slices.Contains(d.Tags, tag) {
					score += n
				}
			}
		}
		if match {
			out = append(out, Hit{score, d.ID})
		}
	}
	slices.SortFunc(out, func(a, b Hit) int {
		if q.Order == Oldest {
			return cmp.Compare(a.ID, b.ID)
		}
		return cmp.Or(-cmp.Compare(a.Score, b.Score), -cmp.Compare(a.ID, b.ID))
	})
	return out
}

// TestIndexFindsWhatAModelFinds changes an index at random and compares searches with the model.
func TestIndexFindsWhatAModelFinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, m := &storage{}, model{}
		seed := rapid.Uint64().Draw(t, "seed")
		rnd := rand.New(rand.NewPCG(seed, 1))
		if rapid.Bool().Draw(t, "kept") {
			s.kept = rand.New(rand.NewPCG(seed, 2))
		}
		words := rapid.SampledFrom([]int{3, 30, 1000}).Draw(t, "words")
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			var docs []Doc
			var ids []string
			seen := map[string]bool{}
			for range rapid.SampledFrom([]int{1, 5, 300, 700}).Draw(t, "docs") {
				d := randomDoc(rnd, words)
				if !seen[d.ID] {
					seen[d.ID] = true
					docs, ids = append(docs, d), append(ids, d.ID)
				}
			}
			s.mask(t, ids)
			s.add(docs)
			for _, d := range docs {
				m[d.ID] = d
			}
			if n := len(s.segments); rapid.Bool().Draw(t, "merge") {
				from := rapid.IntRange(0, n-1).Draw(t, "from")
				s.merge(t, from, rapid.IntRange(from+1, n).Draw(t, "to"))
			}
			for range 4 {
				compare(t, s, m, randomQuery(t, words))
			}
		}
	})
}

func compare(t *rapid.T, s *storage, m model, q Query) {
	t.Helper()
	want := m.search(q)
	offset, limit := rapid.IntRange(0, 50).Draw(t, "offset"), rapid.IntRange(1, 40).Draw(t, "limit")
	if rapid.Bool().Draw(t, "deep") && len(want) > 0 {
		offset = rapid.IntRange(0, len(want)).Draw(t, "deep offset")
	}
	got, total, _ := s.search(t, q, nil, offset, limit)
	if total != len(want) {
		t.Fatalf("%+v: total %d, want %d", q, total, len(want))
	}
	part := want[min(offset, len(want)):min(offset+limit, len(want))]
	if diff := gocmp.Diff(part, got); len(part)+len(got) > 0 && diff != "" {
		t.Fatalf("%+v from %d mismatch (-want +got):\n%s", q, offset, diff)
	}
	if len(want) == 0 {
		return
	}
	at := rapid.IntRange(0, len(want)-1).Draw(t, "after")
	got, _, _ = s.search(t, q, &want[at], 0, limit)
	part = want[at+1 : min(at+1+limit, len(want))]
	if diff := gocmp.Diff(part, got); len(part)+len(got) > 0 && diff != "" {
		t.Fatalf("%+v after %v mismatch (-want +got):\n%s", q, want[at], diff)
	}
}

func randomWord(rnd *rand.Rand, words int) string {
	n := rnd.IntN(words)
	n = rnd.IntN(n + 1) // some are common
	return fmt.Sprintf("%c%d", 'a'+n%3, n)
}

func randomDoc(rnd *rand.Rand, words int) Doc {
	d := Doc{ID: fmt.Sprintf("id%05d", rnd.IntN(3000))}
	for range 1 + rnd.IntN(3) {
		d.Title = append(d.Title, randomWord(rnd, words))
	}
	for range rnd.IntN(12) {
		d.Text = append(d.Text, randomWord(rnd, words))
	}
	d.Tags = append(d.Tags, fmt.Sprint("status", rnd.IntN(3)), fmt.Sprint("by", rnd.IntN(4)))
	return d
}

func randomQuery(t *rapid.T, words int) Query {
	word := rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(0, words-1).Draw(t, "word")
		return fmt.Sprintf("%c%d", 'a'+n%3, n)
	})
	q := Query{Order: rapid.SampledFrom([]Order{ByID, ByRelevance, ByTags, Oldest}).Draw(t, "order")}
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0:
		q.Words = rapid.SliceOfNDistinct(word, 0, 2, rapid.ID).Draw(t, "words")
		q.Prefix = word.Draw(t, "prefix")
	case 1:
		q.Prefix = rapid.SampledFrom([]string{"a", "b1", "c", "x"}).Draw(t, "short")
	case 2:
		q.Any = rapid.SliceOfNDistinct(word, 1, 5, rapid.ID).Draw(t, "any")
	case 3:
		q.Words = []string{word.Draw(t, "word")}
	}
	if rapid.Bool().Draw(t, "filtered") {
		q.Tags = []string{"status1"}
	}
	if rapid.Bool().Draw(t, "draft") {
		q.Hidden = [2]string{"status0", "by1"}
	}
	if rapid.Bool().Draw(t, "one of") {
		q.OneOf = []string{"status0", "status2"}
	}
	if rapid.IntRange(0, 5).Draw(t, "ids") == 0 {
		q.Except = fmt.Sprintf("id%05d", rapid.IntRange(0, 3000).Draw(t, "except"))
	}
	if q.Order == ByTags {
		q.Weights = map[string]int{"status1": 1, "status2": 2}
	}
	return q
}

// A search reads a few pages of a large segment.
func TestSearchReadsFewPages(t *testing.T) {
	t.Parallel()
	const n = 20_000
	docs := make([]Doc, n)
	for i := range docs {
		docs[i] = Doc{
			ID: fmt.Sprintf("id%08d", i), Title: []string{"every", fmt.Sprintf("number%d", i)},
			Text: []string{"word", fmt.Sprintf("w%d", i%1000)}, Tags: []string{"open"},
		}
	}
	s := &storage{}
	s.add(docs)
	for _, q := range []Query{
		{Words: []string{"every"}, Prefix: "word"},
		{Prefix: "n"},
		{Prefix: "number1"},
		{Prefix: "number12345"},
		{Prefix: "w", Words: []string{"w7", "every"}},
	} {
		q.Tags, q.Order = []string{"open"}, ByRelevance
		hits, total, read := s.search(t, q, nil, 0, 20)
		if len(hits) == 0 || total == 0 || read > 30 {
			t.Errorf("%+v: %d hits of %d from %d pages", q, len(hits), total, read)
		}
	}
	if _, total, _ := s.search(t, Query{Prefix: "number1"}, nil, 0, 1); total != 11_111 {
		t.Errorf("%d have the prefix, want 11,111", total)
	}
	if hits, _, read := s.search(t, Query{Words: []string{"every"}}, nil, n-10, 20); len(hits) != 10 || read > 5 {
		t.Errorf("the last page has %d hits and reads %d pages", len(hits), read)
	}
}

// Proposals that are edited move to later segments, so that the ids of segments overlap.
func TestDeepPagesOfOverlappingSegmentsReadFewPages(t *testing.T) {
	t.Parallel()
	const n, segments = 100_000, 5
	s := &storage{}
	for part := range segments {
		var docs []Doc
		for i := part; i < n; i += segments {
			docs = append(docs, Doc{ID: fmt.Sprintf("id%08d", i), Title: []string{"every"}})
		}
		s.add(docs)
	}
	const most = 100 // of some 400 pages with ids
	for _, order := range []Order{ByID, Oldest} {
		q := Query{Words: []string{"every"}, Order: order}
		for _, offset := range []int{0, 300, n / 2, n - 10} {
			want := offset
			if order == ByID {
				want = n - 1 - offset
			}
			hits, _, read := s.search(t, q, nil, offset, 10)
			if len(hits) != 10 || hits[0].ID != fmt.Sprintf("id%08d", want) || read > most {
				t.Errorf("order %v from %d: hits %v from %d pages, want 10 from id%08d and at most %d pages",
					order, offset, hits, read, want, most)
			}
		}
		after := Hit{ID: fmt.Sprintf("id%08d", n/2)}
		if hits, _, read := s.search(t, q, &after, 0, 10); len(hits) != 10 || read > most {
			t.Errorf("order %v after %s: %d hits from %d pages, want 10 from at most %d", order, after.ID, len(hits), read, most)
		}
	}
}

// FuzzPages changes a page. Nothing may panic or run for ever.
func FuzzPages(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var docs []Doc
	for i := range 600 {
		d := randomDoc(rnd, 1000)
		d.ID = fmt.Sprintf("id%05d", i)
		docs = append(docs, d)
	}
	pages := Build(docs)
	for n, p := range pages {
		p = p[:len(p)-4] // without the checksum
		f.Add(uint8(n), p)
		f.Add(uint8(n), make([]byte, len(p)))
		f.Add(uint8(n), p[:len(p)/2])
	}
	f.Fuzz(func(t *testing.T, n uint8, data []byte) {
		changed := slices.Clone(pages)
		changed[int(n)%len(changed)] = seal(slices.Clone(data))
		v, err := InMemory(changed)
		if err != nil {
			return
		}
		_, _ = Merge([]*View{v.Again()})
		for _, q := range []Query{
			{Words: []string{"a3"}, Prefix: "b", Order: ByRelevance, Tags: []string{"status1"}}, {Prefix: "c10", Only: "id00100"},
		} {
			v := v.Again()
			run := NewSearch(q, []*View{v})
			if done, err := run.Match(); done && err == nil {
				_, _, _ = run.Pick(nil, 0, 50)
				_, _, _ = run.Pick(&Hit{3, "id00300"}, 5, 50)
			}
			_, _, _ = v.Mask([]string{"id00001", "zzz", ""})
		}
	})
}

func FuzzSet(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint16(100))
	f.Fuzz(func(t *testing.T, data []byte, n uint16) {
		docs := int(n) + 1
		s, err := DecodeSet(data, docs)
		if err != nil {
			return
		}
		again, err := DecodeSet(EncodeSet(s, docs), docs)
		if diff := gocmp.Diff(s, again); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}

// A segment without one of its pages is damaged, whichever it is.
func TestMissingPagesAreDamage(t *testing.T) {
	t.Parallel()
	var docs []Doc
	for i := range 2000 {
		docs = append(docs, Doc{ID: fmt.Sprintf("doc-%06d", i), Text: []string{"common", fmt.Sprintf("word%d", i)}})
	}
	var s storage
	s.add(docs)
	pages := s.segments[0].pages
	if len(pages) < 4 {
		t.Fatalf("%d pages, want more", len(pages))
	}
	for lost := 1; lost < len(pages); lost++ {
		v := s.views(t)[0]
		for n, p := range pages {
			if n != lost {
				v.AddPage(n, checked(t, p))
			}
		}
		_, verified := Verify(v)
		_, merged := Merge([]*View{v.Again()})
		if !errors.Is(verified, ErrDamaged) {
			t.Errorf("page %d of %d is missing: %v, want %v", lost, len(pages), verified, ErrDamaged)
		}
		if merged != nil && !errors.Is(merged, ErrDamaged) { // it needs no pages of prefixes
			t.Errorf("page %d of %d is missing: %v, want %v or none", lost, len(pages), merged, ErrDamaged)
		}
	}
}
