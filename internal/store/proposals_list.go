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

// List implements proposal.Store. It first finds the keys of a page in an index and then reads
// only these rows, so that a page costs the same for any size of the org.
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

// slow reports whether the page may cost more than a usual one: it starts far from the start of
// the list, walks the index of votes for rows that match a filter, or skips many rows that do
// not match.
func (q *listQuery) slow() bool {
	walk := q.f.Sort == proposal.SortVotes && q.filtered() && !q.few()
	return q.f.Offset < q.total && (q.f.Offset > manyRows || walk || q.reach-q.total > manyRows)
}

// plain reports whether the statement for the page does not depend on the total, and costs little
// for any total.
func (q *listQuery) plain() bool {
	return !q.sparse() && q.f.Offset <= manyRows && (q.f.Sort != proposal.SortVotes || !q.filtered())
}

// filtered reports whether the list has a filter that the index of votes does not begin with.
func (q *listQuery) filtered() bool { return q.f.Category != "" || q.f.SubmittedBy != "" || q.sparse() }

// sparse reports whether the list has a filter whose column is not in every index.
func (q *listQuery) sparse() bool {
	return q.f.Kind != "" || q.f.Evidence != "" || q.f.Fingerprint != ""
}

// walked returns the filter of the rows that the list reads in the index of its filters, and
// whether it is wider than the list's filter because the index lacks a column.
func (q *listQuery) walked() (proposal.Filter, bool) {
	f := q.f
	switch q.index() {
	case byEvidence:
		f.Category, f.SubmittedBy, f.Kind = "", "", ""
	case byPeople:
		f.Category, f.Evidence = "", ""
	case bySubmitter, byCategory, byReview:
		f.Kind, f.Evidence = "", ""
	default:
		return f, false
	}
	wider := f.Category != q.f.Category || f.SubmittedBy != q.f.SubmittedBy || f.Kind != q.f.Kind ||
		f.Evidence != q.f.Evidence
	return f, wider
}

// The indexes of the list. byEvidence and byPeople are partial.
const (
	byReview    = "proposals_review"
	byCategory  = "proposals_category"
	bySubmitter = "proposals_submitter"
	byEvidence  = "proposals_evidence"
	byPeople    = "proposals_people"
	byVotes     = "proposals_votes"
)

// index returns the index that finds the fewest rows by the filters, or "" to let the engine
// choose.
func (q *listQuery) index() string {
	switch {
	case !q.sparse() || q.f.Fingerprint != "":
		return ""
	case q.f.Evidence == proposal.WithEvidence:
		return byEvidence
	case q.f.SubmittedBy != "":
		return bySubmitter
	case q.f.Kind == identity.User:
		return byPeople
	case q.f.Category != "":
		return byCategory
	}
	return byReview
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
	case c == "score" && q.few():
		return prefix + "score + 0 DESC, " + prefix + "id DESC" // uses no index
	}
	return prefix + c + " DESC, " + prefix + "id DESC"
}

// sortColumn returns the column that the list sorts by before the id, or "".
func (q *listQuery) sortColumn() string {
	switch q.f.Sort {
	case proposal.SortReview:
		return "priority"
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
		return " AND (p.priority, p.id) < (" + q.arg(pos.Rank) + ", " + q.arg(pos.ID) + ")"
	case proposal.SortVotes:
		return " AND (p.score, p.id) < (" + q.arg(pos.Score) + ", " + q.arg(pos.ID) + ")"
	case proposal.SortOldest:
		return " AND p.id > " + q.arg(pos.ID)
	case proposal.SortNewest, proposal.SortRelevance:
	}
	return " AND p.id < " + q.arg(pos.ID)
}

// arms returns the FROM clauses of the ranges: one for each status and, if the list sorts by time, for each
// priority, because these columns precede the id in the indexes. The whole org in order of time
// is a single range.
func (q *listQuery) arms() []string {
	filters, after := q.filters(), q.after()
	index := q.byFilter()
	arm := func(where string) string {
		return ` FROM proposals p` + index + ` WHERE p.org_id = $1` + where + filters + after + ` ORDER BY ` + q.order("p.")
	}
	byTime := q.sortColumn() == ""
	if byTime && q.f.Status == "" && q.f.Priority == "" && filters == "" {
		return []string{arm(q.visible())}
	}
	ranks := []int{-1}
	if byTime {
		ranks = []int{0, 1, 2}
	}
	if q.f.Priority != "" {
		ranks = []int{q.f.Priority.Rank()}
	}
	var arms []string
	for _, st := range q.statuses() {
		where := " AND p.status = " + q.arg(string(st))
		index = q.byFilter()
		if st == proposal.Draft && !q.f.Viewer.Admin {
			where += " AND p.submitted_by = " + q.arg(q.me())
			if index != "" {
				index = q.d.by(bySubmitter) // only this index excludes the drafts of others
			}
		}
		for _, rank := range ranks {
			if rank < 0 {
				arms = append(arms, arm(where))
			} else {
				arms = append(arms, arm(where+" AND p.priority = "+strconv.Itoa(rank)))
			}
		}
	}
	return arms
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

// few reports whether so few rows match that sorting them is the cheapest plan. For more rows it
// is cheaper to walk the index of the sort and skip rows that do not match.
func (q *listQuery) few() bool {
	return q.filtered() && q.reach <= manyRows
}

// byFilter forces the index of the filters where an engine might choose another. A list by votes
// uses it only if few rows match.
func (q *listQuery) byFilter() string {
	index := q.index()
	switch {
	case q.f.Fingerprint != "":
		return ""
	case q.f.Sort == proposal.SortVotes && !q.few():
		if index != "" {
			return q.d.by(byVotes)
		}
		return ""
	case index != "":
		return q.d.by(index)
	case q.f.Sort != proposal.SortVotes:
		return ""
	case q.f.SubmittedBy != "":
		return q.d.by(bySubmitter)
	}
	return q.d.by(byCategory)
}

// filters returns the conditions besides org and status. No index for the sort by votes starts
// with them: the list walks its own index, which contains them, unless the exact total from the
// counters shows that sorting the matches is cheaper. If there are two filters, the index of
// submitters holds both.
func (q *listQuery) filters() string {
	walk := q.f.Sort == proposal.SortVotes && !q.few()
	column := func(c string, indexed bool) string {
		if indexed {
			return "p." + c
		}
		return q.d.unindexed("p." + c)
	}
	var b strings.Builder
	if q.f.Category != "" {
		b.WriteString(" AND " + column("category", !walk && q.f.SubmittedBy == "") + " = " + q.arg(string(q.f.Category)))
	}
	if q.f.SubmittedBy != "" {
		b.WriteString(" AND " + column("submitted_by", !walk) + " = " + q.arg(q.f.SubmittedBy))
	}
	if q.sparse() {
		q.sparseFilters(&b)
	}
	return b.String()
}

// sparseFilters writes the conditions in the form that the partial indexes have.
func (q *listQuery) sparseFilters(b *strings.Builder) {
	switch q.f.Kind {
	case identity.User:
		b.WriteString(" AND p.by_person = 1")
	case identity.Agent:
		b.WriteString(" AND p.by_person = 0")
	case identity.Service: // services submit nothing, and this filter never reaches the store
	}
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
