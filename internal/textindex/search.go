package textindex

import (
	"errors"
	"math/bits"
	"slices"
)

// Order is the order of hits. Hits that are equal in it are sorted by id, the last one first.
type Order int

// The orders.
const (
	ByID        Order = iota
	ByRelevance       // words in titles first, rare words more than common ones
	ByTags            // the weights of the tags in Query.Weights
	Oldest            // the first id first
)

// Query selects documents.
type Query struct {
	Words  []string // all must occur
	Prefix string   // a word must begin with it; empty: none
	Any    []string // one must occur at least, if there are any
	Tags   []string // all must apply
	OneOf  []string // one must apply, if there are any
	// Hidden documents have the first tag but not the second.
	Hidden [2]string
	Only   string // an id; empty: any
	Except string // an id
	Order  Order
	// Weights are the weights of tags for ByTags.
	Weights map[string]int
}

// Hit is a document that a search found.
type Hit struct {
	Score int
	ID    string
}

// Search is a running search in some segments. No two of them may have a document with the same id
// that is not dead.
type Search struct {
	Query
	views   []*View
	matches []Set    // by view
	counts  []int    // of the matches, by view
	ranked  []ranked // by view
	total   int
}

// ranked are the matches of a view by score.
type ranked struct {
	docs   []uint16 // the highest score first, then the last document
	scores []class  // the highest first
}

// class are the matches of a view with one score.
type class struct{ score, start, end int } // of ranked.docs

// NewSearch starts a search.
func NewSearch(q Query, views []*View) *Search { return &Search{Query: q, views: views} }

// Match finds the matches. If it returns false, pages of the views are missing; the caller adds them
// and calls it again.
func (s *Search) Match() (done bool, err error) {
	if done, err := s.collect(); !done || err != nil {
		return false, err
	}
	s.matches, s.counts, s.total = make([]Set, 0, len(s.views)), make([]int, 0, len(s.views)), 0
	for _, v := range s.views {
		m, err := s.match(v)
		if err != nil {
			return false, err
		}
		n := 0
		if !v.isNone(m) {
			n = m.Count()
		}
		s.matches, s.counts, s.total = append(s.matches, m), append(s.counts, n), s.total+n
	}
	return true, s.score()
}

// Total returns the number of matches.
func (s *Search) Total() int { return s.total }

// CountTagged returns how many matches have a tag, which must be among Query.OneOf.
func (s *Search) CountTagged(tag string) (n int) {
	for i, v := range s.views {
		if s.without(v) {
			continue
		}
		set, err := v.set(tagged.key(tag))
		if err == nil { // Match has read it
			n += s.matches[i].countAnd(set)
		}
	}
	return n
}

// collect reads the sets of the query. It asks for all that is missing at once.
func (s *Search) collect() (done bool, err error) {
	done = true
	check := func(_ Set, err error) error {
		if errors.Is(err, errMissing) {
			done = false
			return nil
		}
		return err
	}
	var words, keys []string
	for _, word := range slices.Concat(s.Words, s.Any) {
		words = append(words, inText.key(word))
		if s.Order == ByRelevance {
			keys = append(keys, inTitle.key(word))
		}
	}
	if s.Prefix != "" && s.Order == ByRelevance {
		keys = append(keys, inText.key(s.Prefix))
	}
	for _, tag := range slices.Concat(s.Tags, s.OneOf, s.Hidden[:]) {
		if tag != "" {
			keys = append(keys, tagged.key(tag))
		}
	}
	for tag := range s.Weights {
		keys = append(keys, tagged.key(tag))
	}
	for _, v := range s.views {
		for _, key := range words {
			if err := check(v.set(key)); err != nil {
				return false, err
			}
		}
		if s.Prefix != "" {
			if err := check(v.withPrefix(inText, textPrefix, s.Prefix)); err != nil {
				return false, err
			}
		}
		if s.without(v) {
			continue
		}
		for _, key := range keys {
			if err := check(v.set(key)); err != nil {
				return false, err
			}
		}
		if s.Prefix != "" && s.Order == ByRelevance {
			if err := check(v.withPrefix(inTitle, titlePrefix, s.Prefix)); err != nil {
				return false, err
			}
		}
		for _, id := range []string{s.Only, s.Except} {
			if id == "" {
				continue
			}
			_, err := v.find(id)
			if err := check(nil, err); err != nil {
				return false, err
			}
		}
	}
	return done, nil
}

// without reports whether a view is known to lack a word that matches must have. Most segments lack a rare
// word, and then their other sets are not needed.
func (s *Search) without(v *View) bool {
	if s.Prefix != "" && v.lacks(prefixKey(textPrefix, s.Prefix)) {
		return true
	}
	return slices.ContainsFunc(s.Words, func(word string) bool { return v.lacks(inText.key(word)) })
}

// match returns the matches of a view, whose pages are all there.
func (s *Search) match(v *View) (Set, error) {
	if s.without(v) {
		return v.none(), nil
	}
	out := fullSet(v.docs)
	out.andNot(v.dead)
	var failed error
	get := func(key string) Set {
		set, err := v.set(key)
		if err != nil {
			failed = err
			return newSet(v.docs)
		}
		return set
	}
	for _, word := range s.Words {
		out.and(get(inText.key(word)))
	}
	for _, tag := range s.Tags {
		out.and(get(tagged.key(tag)))
	}
	if s.Prefix != "" {
		set, err := v.withPrefix(inText, textPrefix, s.Prefix)
		if err != nil {
			return nil, err
		}
		out.and(set)
	}
	for _, of := range []struct {
		kind kind
		list []string
	}{{inText, s.Any}, {tagged, s.OneOf}} {
		if len(of.list) == 0 {
			continue
		}
		any := newSet(v.docs)
		for _, term := range of.list {
			any.or(get(of.kind.key(term)))
		}
		out.and(any)
	}
	if s.Hidden[0] != "" {
		hidden := get(tagged.key(s.Hidden[0])).clone()
		hidden.andNot(get(tagged.key(s.Hidden[1])))
		out.andNot(hidden)
	}
	if failed != nil {
		return nil, failed
	}
	return out, s.byID(v, out)
}

// byID applies the conditions on the id.
func (s *Search) byID(v *View, out Set) error {
	if s.Only != "" {
		doc, err := v.find(s.Only)
		if err != nil {
			return err
		}
		one := newSet(v.docs)
		if doc >= 0 {
			one.Add(doc)
		}
		out.and(one)
	}
	if s.Except != "" {
		doc, err := v.find(s.Except)
		if err != nil {
			return err
		}
		if doc >= 0 {
			out[doc/64] &^= 1 << (doc % 64)
		}
	}
	return nil
}

// maxScore limits a score. 64 words reach less.
const maxScore = 1<<13 - 1

// score sorts the matches of each view by score.
func (s *Search) score() error {
	weights, err := s.weights()
	if err != nil {
		return err
	}
	s.ranked = make([]ranked, len(s.views))
	for i, v := range s.views {
		switch n := s.counts[i]; {
		case n == 0:
		case n <= fewMatches:
			if s.ranked[i], err = rankFew(v, s.matches[i], n, weights); err != nil {
				return err
			}
		default:
			if s.ranked[i], err = rankMany(v, s.matches[i], weights); err != nil {
				return err
			}
		}
	}
	return nil
}

// fewMatches is how many matches of a view are sorted one by one: to clear a table for all documents of
// a segment takes longer.
const fewMatches = 512

// rankFew sorts few documents.
func rankFew(v *View, docs Set, n int, weights []weight) (out ranked, err error) {
	sets := make([]Set, len(weights))
	for i, w := range weights {
		if sets[i], err = w.set(v); err != nil {
			return out, err
		}
	}
	scored := make([]uint32, 0, n) // the score and the document
	for doc := range docs.all() {
		score := uint32(0)
		for i, set := range sets {
			if set.Has(doc) {
				score = min(maxScore, score+uint32(weights[i].points))
			}
		}
		scored = append(scored, score<<16|uint32(doc)) // doc is below MaxDocs
	}
	slices.Sort(scored)
	slices.Reverse(scored)
	out.docs = make([]uint16, n)
	for i, s := range scored {
		out.docs[i] = uint16(s) // the document
		if score := int(s >> 16); i == 0 || score != out.scores[len(out.scores)-1].score {
			out.scores = append(out.scores, class{score, i, i})
		}
		out.scores[len(out.scores)-1].end = i + 1
	}
	return out, nil
}

// rankMany sorts documents.
func rankMany(v *View, docs Set, weights []weight) (out ranked, err error) {
	scores := make([]uint16, v.docs)
	for _, w := range weights {
		set, err := w.set(v)
		if err != nil {
			return out, err
		}
		set = set.clone()
		set.and(docs)
		for doc := range set.all() {
			scores[doc] = min(maxScore, scores[doc]+w.points)
		}
	}
	return rank(docs, scores), nil
}

// rank sorts documents by counting how many have each score.
func rank(docs Set, scores []uint16) (out ranked) {
	var ends [maxScore + 1]int
	top := 0
	for doc := range docs.all() {
		ends[scores[doc]]++
		top = max(top, int(scores[doc]))
	}
	n := 0
	for score := top; score >= 0; score-- {
		if count := ends[score]; count > 0 {
			out.scores = append(out.scores, class{score, n, n + count})
			n += count
		}
		ends[score] = n
	}
	out.docs = make([]uint16, n)
	for doc := range docs.all() { // the last document of a score comes first
		score := scores[doc]
		ends[score]--
		out.docs[ends[score]] = uint16(doc) // below MaxDocs
	}
	return out
}

// weight is what documents of a set gain.
type weight struct {
	set    func(*View) (Set, error)
	points uint16
}

// weights returns the weights of the order.
func (s *Search) weights() (out []weight, err error) {
	key := func(key string) func(*View) (Set, error) {
		return func(v *View) (Set, error) { return v.set(key) }
	}
	prefix := func(words, prefixes kind) func(*View) (Set, error) {
		return func(v *View) (Set, error) { return v.withPrefix(words, prefixes, s.Prefix) }
	}
	switch s.Order {
	case ByTags:
		for tag, points := range s.Weights {
			out = append(out, weight{key(tagged.key(tag)), uint16(min(points, maxScore))})
		}
	case ByRelevance:
		for _, word := range s.Any {
			points, err := s.rarity(key(inText.key(word)))
			if err != nil {
				return nil, err
			}
			out = append(out, weight{key(inText.key(word)), points}, weight{key(inTitle.key(word)), points})
		}
		for _, word := range s.Words {
			points, err := s.rarity(key(inText.key(word)))
			if err != nil {
				return nil, err
			}
			out = append(out, weight{key(inTitle.key(word)), 2 * points})
		}
		if s.Prefix != "" {
			points, err := s.rarity(prefix(inText, textPrefix))
			if err != nil {
				return nil, err
			}
			// The whole word counts more than the beginning of another.
			out = append(out, weight{prefix(inTitle, titlePrefix), 2 * points}, weight{key(inText.key(s.Prefix)), points})
		}
	case ByID, Oldest:
	}
	return out, nil
}

// rarity returns a number that doubles of rarity increase by one. It counts the documents of all
// segments, so it does not depend on how they are divided.
func (s *Search) rarity(set func(*View) (Set, error)) (uint16, error) {
	all, having := 0, 0
	for _, v := range s.views {
		with, err := set(v)
		if err != nil {
			return 0, err
		}
		all += v.alive
		if !v.isNone(with) {
			having += with.Count() - with.countAnd(v.dead)
		}
	}
	return uint16(bits.Len(uint(all / max(1, having)))), nil // at most 64
}
