package textindex

import (
	"errors"
	"slices"
	"sort"
)

// Pick returns the hits after a position, or from the first one on if there is none, without the first
// offset of them, and at most limit. If it returns false, pages of the views are missing; the caller
// adds them and calls it again. Match must be done.
func (s *Search) Pick(after *Hit, offset, limit int) (hits []Hit, done bool, err error) {
	if s.Order == Oldest {
		hits, err = s.pickOldest(after, offset, limit)
	} else {
		hits, err = s.pick(after, offset, limit)
	}
	if errors.Is(err, errMissing) {
		return nil, false, nil
	}
	return hits, err == nil, err
}

// pickOldest picks from the end: all hits have the same score.
func (s *Search) pickOldest(after *Hit, offset, limit int) ([]Hit, error) {
	left := s.total
	if after != nil {
		left = 0
		missing := false
		for i, v := range s.views {
			start, err := v.before(after.ID + "\x00") // the next possible id
			if errors.Is(err, errMissing) {
				missing = true
				continue
			}
			if err != nil {
				return nil, err
			}
			docs := s.ranked[i].docs
			left += sort.Search(len(docs), func(j int) bool { return int(docs[j]) < start })
		}
		if missing {
			return nil, errMissing
		}
	}
	if left -= offset; left <= 0 {
		return nil, nil
	}
	first := max(0, left-limit)
	hits, err := s.pick(nil, first, left-first)
	slices.Reverse(hits)
	return hits, err
}

func (s *Search) pick(after *Hit, offset, limit int) (hits []Hit, err error) {
	for _, score := range s.allScores() {
		if len(hits) == limit {
			break
		}
		if after != nil && score > after.Score {
			continue
		}
		m, err := s.merger(score, after)
		if err != nil {
			return nil, err
		}
		if offset, err = m.skip(offset); err != nil {
			return nil, err
		}
		for len(hits) < limit && offset == 0 && len(m.heads) > 0 {
			ids, err := m.next(limit - len(hits))
			if err != nil {
				return nil, err
			}
			for _, id := range ids {
				hits = append(hits, Hit{score, id})
			}
		}
	}
	return hits, nil
}

// allScores returns the scores of all matches, the highest first.
func (s *Search) allScores() []int {
	var out []int
	for _, r := range s.ranked {
		for _, c := range r.scores {
			out = append(out, c.score)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	slices.Reverse(out)
	return out
}

// merger merges the documents of one score of all views, the last id first.
type merger struct{ heads []head }

// head are the documents of a view that are left.
type head struct {
	*View
	docs []uint16 // the last one first; never empty
}

func (s *Search) merger(score int, after *Hit) (*merger, error) {
	m := &merger{}
	missing := false
	for i, v := range s.views {
		r := &s.ranked[i]
		at := slices.IndexFunc(r.scores, func(c class) bool { return c.score == score })
		if at < 0 {
			continue
		}
		docs := r.docs[r.scores[at].start:r.scores[at].end]
		if after != nil && score == after.Score {
			end, err := v.before(after.ID)
			if errors.Is(err, errMissing) {
				missing = true
				continue
			}
			if err != nil {
				return nil, err
			}
			docs = docs[sort.Search(len(docs), func(j int) bool { return int(docs[j]) < end }):]
		}
		if len(docs) > 0 {
			m.heads = append(m.heads, head{v, docs})
		}
	}
	if missing {
		return nil, errMissing
	}
	return m, nil
}

// lowest returns an id that those of the next document's page are not less than.
func (h *head) lowest() string { return h.firstIDs[int(h.docs[0])/perPage] }

// below reports whether the ids of all documents that are left are less than id.
func (h *head) below(id string) bool {
	if p := int(h.docs[0])/perPage + 1; p < len(h.firstIDs) {
		return h.firstIDs[p] <= id
	}
	return h.last < id
}

// top returns the head with the highest page, and whether all ids of that page come before those of
// the other heads.
func (m *merger) top() (at int, alone bool) {
	for i := range m.heads {
		if m.heads[i].lowest() > m.heads[at].lowest() {
			at = i
		}
	}
	id := m.heads[at].lowest()
	for i := range m.heads {
		if i != at && !m.heads[i].below(id) {
			return at, false
		}
	}
	return at, true
}

// skip skips n documents, and returns how many of n are left if there are not so many. It finds the
// place by the first ids of pages, so it reads few pages however many documents it skips.
func (m *merger) skip(n int) (int, error) {
	left := 0
	for i := range m.heads {
		left += len(m.heads[i].docs)
	}
	if n >= left {
		m.heads = nil
		return n - left, nil
	}
	if n > perPage {
		skipped, err := m.skipPages(n)
		if err != nil {
			return 0, err
		}
		n -= skipped
	}
	for n > 0 {
		if at, alone := m.top(); alone {
			of := min(n, m.heads[at].onPage())
			n -= of
			m.drop(at, of)
			continue
		}
		if _, err := m.next(n); err != nil {
			return 0, err
		}
		n--
	}
	return 0, nil
}

// skipPages skips at most n documents and returns how many it skipped. It skips all documents from the
// first id of some page on: the lowest such id from which at most n documents follow, itself included.
// What is left of n is on one page of each head.
func (m *merger) skipPages(n int) (skipped int, err error) {
	var firsts []string
	for i := range m.heads {
		h := &m.heads[i]
		firsts = append(firsts, h.firstIDs[int(h.docs[len(h.docs)-1])/perPage:int(h.docs[0])/perPage+1]...)
	}
	slices.Sort(firsts)
	low, high := 0, len(firsts) // the sought one is in [low, high]; high: none of them
	for low < high {
		middle := (low + high) / 2
		_, all, err := m.from(firsts[middle])
		if err != nil {
			return 0, err
		}
		if all > n {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == len(firsts) {
		return 0, nil
	}
	counts, skipped, err := m.from(firsts[low])
	if err != nil {
		return 0, err
	}
	for i := len(counts) - 1; i >= 0; i-- { // drop may delete a head
		m.drop(i, counts[i])
	}
	return skipped, nil
}

// from counts the documents whose ids are not less than id, by head and in all.
func (m *merger) from(id string) (counts []int, all int, err error) {
	counts = make([]int, len(m.heads))
	missing := false
	for i := range m.heads {
		h := &m.heads[i]
		start, err := h.before(id)
		if errors.Is(err, errMissing) {
			missing = true
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		counts[i] = sort.Search(len(h.docs), func(j int) bool { return int(h.docs[j]) < start })
		all += counts[i]
	}
	if missing {
		return nil, 0, errMissing
	}
	return counts, all, nil
}

// onPage returns the number of documents on the page of the next one.
func (h *head) onPage() int {
	page := int(h.docs[0]) / perPage
	return sort.Search(len(h.docs), func(j int) bool { return int(h.docs[j])/perPage < page })
}

func (m *merger) drop(at, n int) {
	if m.heads[at].docs = m.heads[at].docs[n:]; len(m.heads[at].docs) == 0 {
		m.heads = slices.Delete(m.heads, at, at+1)
	}
}

// next returns some of the next ids, of which there must be one. The caller wants that many: their
// pages are read together.
func (m *merger) next(want int) (ids []string, err error) {
	at, alone := m.top()
	if alone {
		h := &m.heads[at]
		for _, doc := range h.docs[:min(want, h.onPage())] {
			id, err := h.id(int(doc))
			if err != nil {
				h.want(want)
				return nil, err
			}
			ids = append(ids, id)
		}
		m.drop(at, len(ids))
		return ids, nil
	}
	first, top, lowest, missing := "", at, m.heads[at].lowest(), false
	for i := range m.heads {
		h := &m.heads[i]
		if i != top && h.below(lowest) {
			continue
		}
		id, err := h.id(int(h.docs[0]))
		switch {
		case errors.Is(err, errMissing):
			missing = true
			if i == top {
				h.want(want)
			}
		case err != nil:
			return nil, err
		case id > first:
			first, at = id, i
		}
	}
	if missing {
		return nil, errMissing
	}
	m.drop(at, 1)
	return []string{first}, nil
}

// maxAhead limits the pages of ids that are read ahead.
const maxAhead = 64

// want asks for the pages of the next ids.
func (h *head) want(ids int) {
	pages := 0
	for i, last := 0, -1; i < min(ids, len(h.docs)) && pages < maxAhead; i++ {
		if n := h.idPage(int(h.docs[i])); n != last {
			_, _ = h.page(n) // if it is missing, that is recorded
			last = n
			pages++
		}
	}
}
