package store

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/bits"
	"slices"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/textindex"
)

// Search implements proposal.Store. The index finds the ids of a page; then only these rows are read.
func (s Proposals) Search(ctx context.Context, f proposal.Filter) (found proposal.Found, err error) {
	err = s.slow(ctx, f.Org, func(ctx context.Context, r reader) error {
		return s.match(ctx, r, f, func(m *matched) error {
			hits, err := m.page(ctx, f)
			if err != nil {
				return err
			}
			found = proposal.Found{
				Total: int64(min(m.Total(), proposal.MaxFound)), Exact: m.Total() <= proposal.MaxFound, Complete: m.complete,
			}
			found.Items, err = s.items(ctx, r, f, hits)
			return err
		})
	})
	return found, err
}

// matched is a search that has found its matches.
type matched struct {
	*textindex.Search
	index    *searchIndex
	r        reader
	org      string
	views    []*textindex.View
	ids      []int64
	complete bool
}

// maxRestarts is how often a search starts again because pages were replaced meanwhile.
const maxRestarts = 5

// match finds the matches of a filter and calls fn.
func (s Proposals) match(ctx context.Context, r reader, f proposal.Filter, fn func(*matched) error) error {
	q, err := s.indexQuery(ctx, r, f)
	if err != nil {
		return err
	}
	return s.run(ctx, r, f.Org, q, fn)
}

// run runs a query of the index. fn may run more than once.
func (s Proposals) run(
	ctx context.Context, r reader, org string, q textindex.Query, fn func(*matched) error,
) (err error) {
	var state *searchState
	for range maxRestarts {
		if state, err = s.search.state(ctx, r, org, state); err == nil {
			m := &matched{
				index: s.search, r: r, org: org, views: state.fresh(), ids: state.ids, complete: state.complete,
			}
			m.Search = textindex.NewSearch(q, m.views)
			if err = m.until(ctx, m.Match); err == nil {
				err = fn(m)
			}
		}
		if !errors.Is(err, errPageGone) {
			break
		}
	}
	if errors.Is(err, textindex.ErrDamaged) || errors.Is(err, errPageGone) {
		s.search.log.Error("text index: a search failed", "org", org, "error", err)
		err = errDamagedIndex(org, err)
	}
	return err
}

// until repeats a step of a search until no pages are missing.
func (m *matched) until(ctx context.Context, step func() (bool, error)) error {
	for {
		done, err := step()
		if err != nil || done {
			return err
		}
		if err := m.index.load(ctx, m.r, m.org, m.views, m.ids); err != nil {
			return err
		}
	}
}

// pick is textindex.Search.Pick that reads the pages which are missing.
func (m *matched) pick(ctx context.Context, after *textindex.Hit, offset int64, limit int) (hits []textindex.Hit, err error) {
	if offset >= int64(m.Total()) {
		return nil, nil
	}
	err = m.until(ctx, func() (done bool, err error) {
		hits, done, err = m.Pick(after, int(offset), limit) // less than the total
		return done, err
	})
	return hits, err
}

// page returns the hits of the page, and the next one.
func (m *matched) page(ctx context.Context, f proposal.Filter) ([]textindex.Hit, error) {
	if f.Sort == proposal.SortVotes {
		return m.byVotes(ctx, f)
	}
	var after *textindex.Hit
	if pos := f.After; pos != nil {
		after = &textindex.Hit{ID: pos.ID}
		switch f.Sort {
		case proposal.SortReview:
			after.Score = pos.Rank
		case proposal.SortRelevance:
			after.Score = int(min(max(pos.Score, -1), math.MaxInt32)) // a cursor can have any number
		case proposal.SortNewest, proposal.SortOldest, proposal.SortVotes:
		}
	}
	return m.pick(ctx, after, f.Offset, f.Limit+1)
}

// byVotes sorts the most relevant matches by their votes, which the index does not have.
func (m *matched) byVotes(ctx context.Context, f proposal.Filter) ([]textindex.Hit, error) {
	hits, err := m.pick(ctx, nil, 0, proposal.MaxFound)
	if err != nil || len(hits) == 0 {
		return nil, err
	}
	ids := idsOf(hits)
	if hits, enough, err := m.walkVotes(ctx, f, ids); enough || err != nil {
		return hits, err
	}
	sql, arg := m.index.d.listed(ids)
	if hits, err = m.scores(ctx, `SELECT p.score, p.id FROM (`+sql+`) k `+m.index.d.byID, m.org, arg); err != nil {
		return nil, err
	}
	order := func(a, b textindex.Hit) int {
		return cmp.Or(-cmp.Compare(a.Score, b.Score), -cmp.Compare(a.ID, b.ID))
	}
	slices.SortFunc(hits, order)
	if pos := f.After; pos != nil {
		last := textindex.Hit{Score: int(pos.Score), ID: pos.ID}
		hits = slices.DeleteFunc(hits, func(h textindex.Hit) bool { return order(h, last) <= 0 })
	}
	start := min(f.Offset, int64(len(hits)))
	return hits[start:min(start+int64(f.Limit)+1, int64(len(hits)))], nil
}

// walkVotes finds the page among the first proposals by votes, with any words. If many of all proposals
// match, that reads much less than the votes of all matches. enough is false if the page may have more.
func (m *matched) walkVotes(ctx context.Context, f proposal.Filter, ids []string) (hits []textindex.Hit, enough bool, err error) {
	docs := int64(0)
	for _, v := range m.views {
		docs += int64(v.Docs())
	}
	skip, matches := f.Offset, int64(len(ids))
	want := skip + int64(f.Limit) + 1
	if want > matches {
		return nil, false, nil
	}
	walk := 2 * want * docs / matches // twice as many as needed if the matches have the same votes as others
	if walk > matches || f.Priority != "" || f.Evidence != "" || f.Fingerprint != "" {
		return nil, false, nil
	}
	f.Offset, f.Limit = 0, rounded(walk)
	q := newListQuery(m.index.d, f, docs)
	sql := `SELECT k.score, k.id FROM (` + q.keys(q.ranges()) + `) k`
	if hits, err = m.scores(ctx, sql, q.args...); err != nil {
		return nil, false, err
	}
	slices.Sort(ids)
	hits = slices.DeleteFunc(hits, func(h textindex.Hit) bool {
		_, found := slices.BinarySearch(ids, h.ID)
		return !found
	})
	if int64(len(hits)) < want {
		return nil, false, nil
	}
	return hits[skip:want], true, nil
}

// rounded rounds a positive number up to one of few, so that there are few statements to prepare. The
// result is at most an eighth larger, or one.
func rounded(n int64) int {
	step := int64(1) << max(0, bits.Len64(uint64(n))-4) // n is positive
	return int((n/step + 1) * step)
}

// scores reads pairs of a score and an id.
func (m *matched) scores(ctx context.Context, sql string, args ...any) (hits []textindex.Hit, err error) {
	err = each(ctx, m.r, func(r rows) error {
		var h textindex.Hit
		err := r.Scan(&h.Score, &h.ID)
		hits = append(hits, h)
		return err
	}, sql, args...)
	return hits, err
}

func idsOf(hits []textindex.Hit) []string {
	ids := make([]string, len(hits))
	for i, h := range hits {
		ids[i] = h.ID
	}
	return ids
}

// items reads the rows of hits, in their order.
func (s Proposals) items(
	ctx context.Context, r reader, f proposal.Filter, hits []textindex.Hit,
) ([]proposal.Item, error) {
	items := make([]proposal.Item, 0, len(hits))
	if len(hits) == 0 {
		return items, nil
	}
	sql, arg := s.d.listed(idsOf(hits))
	q := newListQuery(s.d, f, 0)
	q.arg(arg)
	row, byID := newItemRow(q), map[string]proposal.Item{}
	if err := each(ctx, r, func(r rows) error {
		it, err := row.scan(r)
		byID[it.ID] = it
		return err
	}, `SELECT `+q.itemColumns()+` FROM (`+sql+`) k `+s.d.byID+` WHERE 1 = 1`+q.visible(), q.args...); err != nil {
		return nil, err
	}
	for _, h := range hits {
		if it, ok := byID[h.ID]; ok {
			it.Score = h.Score
			items = append(items, it)
		}
	}
	return items, nil
}

// indexQuery returns the query of a filter.
func (s Proposals) indexQuery(ctx context.Context, r reader, f proposal.Filter) (textindex.Query, error) {
	n := len(f.Words) - 1
	q := textindex.Query{Words: f.Words[:n], Prefix: f.Words[n]}
	switch f.Sort {
	case proposal.SortRelevance, proposal.SortVotes, "":
		q.Order = textindex.ByRelevance
	case proposal.SortReview:
		q.Order, q.Weights = textindex.ByTags, map[string]int{}
		for rank := 1; rank < len(proposal.Priorities); rank++ {
			q.Weights[priorityTag(rank)] = rank
		}
	case proposal.SortOldest:
		q.Order = textindex.Oldest
	case proposal.SortNewest:
	}
	if f.Status != "" {
		q.Tags = append(q.Tags, statusTag(f.Status))
	}
	if f.Category != "" {
		q.Tags = append(q.Tags, categoryTag(f.Category))
	}
	if f.Priority != "" {
		q.Tags = append(q.Tags, priorityTag(f.Priority.Rank()))
	}
	if f.SubmittedBy != "" {
		q.Tags = append(q.Tags, submitterTag(f.SubmittedBy))
	}
	if f.Kind != "" {
		q.Tags = append(q.Tags, kindTag(f.Kind == identity.User))
	}
	if f.Evidence != "" {
		q.Tags = append(q.Tags, evidenceTag(f.Evidence == proposal.WithEvidence))
	}
	q.Hidden = hiddenFrom(f.Viewer)
	if f.Fingerprint == "" {
		return q, nil
	}
	q.Only = "none"
	_, err := one(ctx, r, []any{&q.Only}, `SELECT proposal_id FROM friction WHERE org_id = $1 AND fingerprint = $2
		AND proposal_id <> ''`, f.Org, f.Fingerprint)
	return q, err
}

// hiddenFrom hides the drafts of others, which only admins see.
func hiddenFrom(v proposal.Viewer) [2]string {
	if v.Admin {
		return [2]string{}
	}
	return [2]string{statusTag(proposal.Draft), submitterTag(v.Principal.Ref())}
}

// searchCounts is Counts for a filter with words.
func (s Proposals) searchCounts(ctx context.Context, f proposal.Filter) (counts map[proposal.Status]int64, err error) {
	err = s.slow(ctx, f.Org, func(ctx context.Context, r reader) error {
		q, err := s.indexQuery(ctx, r, f)
		if err != nil {
			return err
		}
		q.Order = textindex.ByID
		for _, status := range proposal.Statuses {
			q.OneOf = append(q.OneOf, statusTag(status))
		}
		return s.run(ctx, r, f.Org, q, func(m *matched) error {
			counts = map[proposal.Status]int64{}
			for _, status := range proposal.Statuses {
				counts[status] = int64(m.CountTagged(statusTag(status)))
			}
			return nil
		})
	})
	return counts, err
}

// searchKeys returns the ids of the most relevant matches, for a statement that does the rest.
func (s Proposals) searchKeys(ctx context.Context, r reader, f proposal.Filter) (ids []string, err error) {
	f.Sort = proposal.SortRelevance
	err = s.match(ctx, r, f, func(m *matched) error {
		hits, err := m.pick(ctx, nil, 0, proposal.MaxFound)
		ids = idsOf(hits)
		return err
	})
	return ids, err
}
