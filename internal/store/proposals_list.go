package store

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// manyRows is the number of rows from which a read is a slow one. Ordinary connections
// may walk, sort or skip up to that many rows.
const manyRows = 2000

// List implements proposal.Store. It reads the rows of a page by an index, in its order, or first finds
// their keys there, so that a page costs the same for any size of the org.
func (s Proposals) List(ctx context.Context, f proposal.Filter) (items []proposal.Item, total int64, err error) {
	if q := newListQuery(s.d, f, 0); q.plain() {
		return s.listAtOnce(ctx, q)
	}
	if total, err = s.countRows(ctx, f); err != nil {
		return nil, 0, err
	}
	q := newListQuery(s.d, f, total)
	if base, wider := q.walked(); wider {
		if q.reach, err = s.countRows(ctx, base); err != nil {
			return nil, 0, err
		}
	}
	if !q.slow() {
		items, _, err = q.read(ctx, s.eng)
		return items, total, err
	}
	err = s.slow(ctx, f.Org, func(ctx context.Context, r reader) (err error) {
		items, _, err = q.read(ctx, r)
		return err
	})
	return items, total, err
}

// listAtOnce reads a page and its total with one statement. Only for an empty page, which has no
// row to hold the total, it needs another one.
func (s Proposals) listAtOnce(ctx context.Context, q *listQuery) ([]proposal.Item, int64, error) {
	if q.count = q.countSQL(); q.count == "" {
		return []proposal.Item{}, 0, nil
	}
	q.total = math.MaxInt64 // not known yet
	items, total, err := q.read(ctx, s.eng)
	if err == nil && len(items) == 0 {
		total, err = s.countRows(ctx, q.f)
	}
	return items, total, err
}

// listQuery builds the statements of one list.
type listQuery struct {
	d     *dialect
	f     proposal.Filter
	total int64
	// reach is the number of rows of the list in the index of the filters. Some of them may
	// not match.
	reach int64
	args  []any
	from  string // the FROM clause, if it is not the table alone
	// count is a query for the total, to run with that of the page; empty if the total is known.
	count string
}

func newListQuery(d *dialect, f proposal.Filter, total int64) *listQuery {
	return &listQuery{d: d, f: f, total: total, reach: total, args: []any{f.Org}}
}

// sparse reports whether the list has a filter whose column is not in every index.
func (q *listQuery) sparse() bool {
	return q.f.Kind != "" || q.f.Evidence != "" || q.f.Fingerprint != ""
}

// arg adds a parameter and returns its placeholder.
func (q *listQuery) arg(v any) string {
	q.args = append(q.args, v)
	return "$" + strconv.Itoa(len(q.args))
}

// order returns the ORDER BY terms. Every sort ends with the id, so that no two rows tie.
func (q *listQuery) order(prefix string) string {
	if q.f.Sort == proposal.SortOldest {
		return prefix + "id"
	}
	c := q.sortColumn()
	switch {
	case c == "":
		return prefix + "id DESC"
	case q.few() && prefix != "":
		// The score, from columns that no index has: a generic plan of PostgreSQL would read the index of votes.
		return prefix + "votes_for - " + prefix + "votes_against DESC, " + prefix + "id DESC"
	}
	return prefix + c + " DESC, " + prefix + "id DESC"
}

// sortColumn returns the column that the list sorts by before the id, or "". With a filter by priority
// all rows have the same priority, and PostgreSQL would sort by it needlessly.
func (q *listQuery) sortColumn() string {
	switch q.f.Sort {
	case proposal.SortReview:
		if q.f.Priority == "" {
			return "priority"
		}
	case proposal.SortVotes:
		return "score"
	case proposal.SortNewest, proposal.SortOldest, proposal.SortRelevance:
	}
	return ""
}

// after returns the condition that continues after the cursor.
func (q *listQuery) after() string {
	pos := q.f.After
	if pos == nil {
		return ""
	}
	switch q.f.Sort {
	case proposal.SortReview:
		if q.f.Priority != "" && q.f.Priority.Rank() == pos.Rank {
			break // SQLite would skip rows to find the id
		}
		return " AND (p.priority, p.id) < (" + q.arg(pos.Rank) + ", " + q.arg(pos.ID) + ")"
	case proposal.SortVotes:
		return " AND (p.score, p.id) < (" + q.arg(pos.Score) + ", " + q.arg(pos.ID) + ")"
	case proposal.SortOldest:
		return " AND p.id > " + q.arg(pos.ID)
	case proposal.SortNewest, proposal.SortRelevance:
	}
	return " AND p.id < " + q.arg(pos.ID)
}

// visible excludes the drafts of others, which only admins see.
func (q *listQuery) visible() string {
	if q.f.Viewer.Admin {
		return ""
	}
	return " AND (p.status <> 'draft' OR p.submitted_by = " + q.arg(q.me()) + ")"
}

// statuses returns the statuses that the filter covers.
func (q *listQuery) statuses() []proposal.Status {
	if q.f.Status == "" {
		return proposal.Statuses
	}
	return []proposal.Status{q.f.Status}
}

// filters returns the conditions of a search besides org, status and priority.
func (q *listQuery) filters() string {
	var b strings.Builder
	if q.f.Category != "" {
		category := "p.category"
		if q.f.SubmittedBy != "" {
			category = q.d.unindexed(category)
		}
		b.WriteString(" AND " + category + " = " + q.arg(string(q.f.Category)))
	}
	if q.f.SubmittedBy != "" {
		b.WriteString(" AND p.submitted_by = " + q.arg(q.f.SubmittedBy))
	}
	q.kindFilter(&b)
	q.sparseFilters(&b)
	return b.String()
}

// sparseFilters writes the conditions on evidence in the form that the partial index has.
func (q *listQuery) sparseFilters(b *strings.Builder) {
	switch q.f.Evidence {
	case proposal.WithEvidence:
		b.WriteString(" AND p.fingerprint <> ''")
	case proposal.WithoutEvidence:
		b.WriteString(" AND p.fingerprint = ''")
	}
	if q.f.Fingerprint != "" { // a fingerprint has one proposal
		b.WriteString(" AND p.id = (SELECT proposal_id FROM friction WHERE org_id = $1 AND fingerprint = " +
			q.arg(q.f.Fingerprint) + ")")
	}
}

func (q *listQuery) kindFilter(b *strings.Builder) {
	switch q.f.Kind {
	case identity.User:
		b.WriteString(" AND p.by_person = 1")
	case identity.Agent:
		b.WriteString(" AND p.by_person = 0")
	case identity.Service: // services submit nothing, and this filter never reaches the store
	}
}

func (q *listQuery) countMatches() string { return `SELECT count(*) FROM ` + q.matchConditions() }

func (q *listQuery) matchConditions() string {
	from := q.from
	if from == "" {
		from = "proposals p"
	}
	where := from + " WHERE p.org_id = $1"
	if q.f.Status != "" {
		where += " AND p.status = " + q.arg(string(q.f.Status))
	}
	if q.f.Priority != "" {
		where += " AND p.priority = " + q.arg(q.f.Priority.Rank())
	}
	return where + q.filters() + q.visible()
}
