package store

import (
	"context"
	"fmt"

	"github.com/parley-dev/parley/internal/proposal"
)

// smallOrg is the largest number of proposals of an org that a search scans. In a larger
// org it uses the index, which holds the words of all orgs: its cost depends on the data
// of other orgs.
const smallOrg = 1000

// searchList is List for a filter with words.
func (s Proposals) searchList(ctx context.Context, f proposal.Filter) (items []proposal.Item, total int64, err error) {
	err = s.slow(ctx, f.Org, func(ctx context.Context, r reader) (err error) {
		items, total, err = s.search(ctx, r, f)
		return err
	})
	return items, total, err
}

// search returns a page of the proposals with the filter's words, and the number of all of them.
func (s Proposals) search(ctx context.Context, r reader, f proposal.Filter) ([]proposal.Item, int64, error) {
	var total int64
	scan, err := s.searchScans(ctx, r, f.Org)
	if err != nil {
		return nil, 0, err
	}
	q := newSearchQuery(s.d, f, 0, scan)
	if _, err := one(ctx, r, []any{&total}, q.countMatches(), q.args...); err != nil {
		return nil, 0, err
	}
	items, err := newSearchQuery(s.d, f, total, scan).read(ctx, r)
	return items, total, err
}

// searchScans reports whether a search scans the org's proposals. If not, the index holds all of
// them when searchScans returns.
func (s Proposals) searchScans(ctx context.Context, r reader, org string) (bool, error) {
	var size int64
	if _, err := one(ctx, r, []any{&size}, `SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM counters
		WHERE org_id = $1 AND kind = $2 AND who = ''`, org, countProposals); err != nil {
		return false, err
	}
	if size <= smallOrg {
		return true, nil
	}
	return false, s.eng.readySearch(ctx, org)
}

// newSearchQuery is newListQuery for a filter with words.
func newSearchQuery(d *dialect, f proposal.Filter, total int64, scan bool) *listQuery {
	q := newListQuery(d, f, total)
	if q.search = d.search; scan {
		q.search = d.scan
		q.arg(d.scanWords(f.Words)) // $2, see dialect
	} else {
		q.arg(d.match(f.Words))
	}
	return q
}

// matches finds the keys of the page among the matches of a search.
func (q *listQuery) matches() string {
	return `SELECT ` + q.keyColumns() + ` FROM ` + q.matchConditions() + q.after() +
		fmt.Sprintf(" ORDER BY %s LIMIT %s OFFSET %s", q.order("p."), q.arg(q.f.Limit+1), q.arg(q.f.Offset))
}

