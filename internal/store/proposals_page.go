package store

import (
	"cmp"
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/parley-dev/parley/internal/proposal"
)

// read reads the page, and the total if q.count asks for it.
func (q *listQuery) read(ctx context.Context, r reader) ([]proposal.Item, int64, error) {
	items := make([]proposal.Item, 0, q.f.Limit+1)
	if q.f.Offset >= q.total {
		return items, 0, nil
	}
	sql, row := q.page(), newItemRow(q)
	err := each(ctx, r, func(r rows) error {
		it, err := row.scan(r)
		items = append(items, it)
		return err
	}, sql, q.args...)
	sort.Slice(items, func(i, j int) bool { return q.compare(&items[i], &items[j]) < 0 }) // a join has no order
	return items, row.total, err
}

// compare compares items in the order of the list.
func (q *listQuery) compare(a, b *proposal.Item) int {
	byID := cmp.Compare(b.ID, a.ID)
	switch q.f.Sort {
	case proposal.SortReview:
		return cmp.Or(cmp.Compare(b.Priority.Rank(), a.Priority.Rank()), byID)
	case proposal.SortVotes:
		return cmp.Or(cmp.Compare(b.VotesFor-b.VotesAgainst, a.VotesFor-a.VotesAgainst), byID)
	case proposal.SortOldest:
		return -byID
	case proposal.SortNewest:
	}
	return byID
}

// page returns the statement for one page: up to limit+1 rows, so that the caller can tell
// whether more rows follow. The rows of one range are read directly. For several ranges the keys
// are read first, from the index, and on PostgreSQL also to skip the rows of an offset, or those that
// a filter beside the index excludes.
func (q *listQuery) page() string {
	list := q.ranges()
	if arms := q.arms(list); len(arms) == 1 && !q.few() {
		switch {
		case q.d.skipsKeys:
			return `SELECT ` + q.itemColumns() + arms[0] + q.tail()
		case q.plain() && q.f.Offset == 0:
			return `SELECT ` + q.itemColumns() + ` FROM (SELECT *` + arms[0] + q.most() + `) p ORDER BY ` + q.order("p.") + q.tail()
		}
	}
	return `SELECT ` + q.itemColumns() + ` FROM (` + q.keys(list) + `) k ` + q.d.byKey
}

// most limits rows to those of the largest page. Without a limit that it knows, a plan of PostgreSQL,
// which does not know the parameters, would expect a page of a tenth of the rows, and rather read and
// sort all of them than use the index.
func (q *listQuery) most() string { return limit(max(q.f.Limit, proposal.MaxLimit) + 1) }

// itemColumns returns the columns that an itemRow receives. Most proposals have no votes at all,
// so the viewer's own is not looked up for them.
func (q *listQuery) itemColumns() string {
	columns := `p.id, p.status, p.category, p.priority, p.submitted_by, p.submitted_at, p.updated_at, p.votes_for,
		p.votes_against, p.agents_for, p.agents_against, p.version, p.text_version, p.followup_id, p.title, p.fingerprint,
		p.evidence, CASE WHEN p.votes_for + p.votes_against = 0 THEN '' ELSE coalesce((SELECT v.choice FROM votes v
			WHERE v.org_id = $1 AND v.proposal_id = p.id AND v.voter = ` + q.arg(q.me()) + `), '') END`
	if q.f.Excerpt {
		columns += fmt.Sprintf(", substr(p.problem, 1, %d)", proposal.ExcerptSource)
	}
	if q.count != "" {
		columns += ", (" + q.count + ")"
	}
	return columns
}

// keyColumns returns the columns of the inner query: the sort column, the id and the key.
func (q *listQuery) keyColumns() string {
	columns := "p.id"
	if c := q.sortColumn(); c != "" {
		columns = "p." + c + ", p.id"
	}
	if q.d.key != "id" {
		columns += ", p." + q.d.key
	}
	return columns
}

// keys finds the keys of the page: it sorts the heads of the ranges.
func (q *listQuery) keys(list []ranges) string {
	columns := q.keyColumns()
	if arms := q.arms(list); len(arms) == 1 {
		keys := "SELECT " + columns + arms[0]
		if q.d.skipsKeys || q.f.Offset > 0 {
			return keys + q.tail()
		}
		return "SELECT * FROM (" + keys + q.most() + ") m ORDER BY " + q.order("") + q.tail()
	}
	head := " ORDER BY " + q.order("p.") + " LIMIT " + q.arg(q.f.Offset+int64(q.f.Limit)+1)
	return q.d.heads(columns, list, head) + " ORDER BY " + q.order("") + q.tail()
}

// liteHeads selects the heads of ranges. Without MATERIALIZED, SQLite sorts each head and merges
// them pairwise, which is slower.
func liteHeads(columns string, list []ranges, head string) string {
	var b strings.Builder
	for _, r := range list {
		for _, where := range r.conditions() {
			if b.Len() > 0 {
				b.WriteString(" UNION ALL ")
			}
			b.WriteString("SELECT * FROM (SELECT " + columns + r.from + where + head + ")")
		}
	}
	return "WITH m AS MATERIALIZED (" + b.String() + ") SELECT * FROM m"
}

// postgresHeads selects the heads of ranges. PostgreSQL takes long to plan many queries, so it plans
// one for all ranges of an index.
func postgresHeads(columns string, list []ranges, head string) string {
	var b strings.Builder
	for i, r := range list {
		if i > 0 {
			b.WriteString(" UNION ALL ")
		}
		tuples, names, where := []string{""}, "", r.where
		for _, c := range r.open {
			var longer []string
			for _, t := range tuples {
				for _, v := range c.values {
					longer = append(longer, t+", "+v)
				}
			}
			tuples, names = longer, names+", "+c.name
			where += " AND p." + c.name + " = v." + c.name
		}
		b.WriteString("SELECT h.* FROM (VALUES ")
		for n, t := range tuples {
			if n > 0 {
				b.WriteString(", ")
			}
			b.WriteString("(" + t[2:] + ")")
		}
		fmt.Fprintf(&b, ") v (%s) CROSS JOIN LATERAL (SELECT %s%s%s%s) h", names[2:], columns, r.from, where, head)
	}
	return "SELECT * FROM (" + b.String() + ") m"
}

// tail returns the LIMIT clause of the page.
func (q *listQuery) tail() string {
	return " LIMIT " + q.arg(q.f.Limit+1) + " OFFSET " + q.arg(q.f.Offset)
}

// itemRow receives one row of a page. It is reused for all rows, so that a row allocates only
// its own item.
type itemRow struct {
	item                   proposal.Item
	status, category, vote string
	rank                   int
	submitted, updated     int64
	total                  int64
	dest                   []any
}

func newItemRow(q *listQuery) *itemRow {
	row := &itemRow{item: proposal.Item{Proposal: proposal.Proposal{Org: q.f.Org}}}
	it := &row.item
	row.dest = []any{
		&it.ID, &row.status, &row.category, &row.rank, &it.SubmittedBy, &row.submitted, &row.updated, &it.VotesFor,
		&it.VotesAgainst, &it.AgentsFor, &it.AgentsAgainst, &it.Version, &it.TextVersion, &it.FollowupID, &it.Title,
		&it.Fingerprint, &it.Evidence, &row.vote,
	}
	if q.f.Excerpt {
		row.dest = append(row.dest, &it.Excerpt)
	}
	if q.count != "" {
		row.dest = append(row.dest, &row.total)
	}
	return row
}

func (row *itemRow) scan(r rows) (proposal.Item, error) {
	if err := r.Scan(row.dest...); err != nil {
		return proposal.Item{}, err
	}
	it := row.item
	it.Status, it.Category = proposal.Status(row.status), proposal.Category(row.category)
	it.Priority, it.MyVote = proposal.Priorities[row.rank], proposal.Choice(row.vote)
	it.SubmittedAt, it.UpdatedAt = fromMicros(row.submitted), fromMicros(row.updated)
	if it.Excerpt != "" {
		it.Excerpt = proposal.ExcerptOf(it.Excerpt)
	}
	return it, nil
}
