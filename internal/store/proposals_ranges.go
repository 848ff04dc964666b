package store

import (
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/proposal"
)

// A list without words is read from ranges of an index. A range has one value for each column of
// the index before those of the sort, so its rows are in the order of the list. If a filter leaves
// a column open, each of its few values has a range of its own. So a page skips no rows, and sorts
// only the heads of the ranges.
//
// Two filters are exceptions, because each index costs every submission or even every vote. The
// rows with evidence are in small indexes, in which other filters skip rows, and a list of those
// without evidence skips the others. A list by votes of one priority skips those of other
// priorities; see few.

// The indexes of the list, with their columns after the org.
const (
	byReview    = "proposals_review"    // status, priority, id
	byCategory  = "proposals_category"  // status, category, by_person, priority, id
	bySubmitter = "proposals_submitter" // submitted_by, category, status, priority, id
	byEvidence  = "proposals_evidence"  // status, priority, id, where fingerprint <> ''

	// Every vote changes these.
	byVotes          = "proposals_votes"           // status, category, by_person, score, id
	bySubmitterVotes = "proposals_submitter_votes" // submitted_by, status, category, score, id
	byEvidenceVotes  = "proposals_evidence_votes"  // status, score, id, where fingerprint <> ''
)

// index returns the index for the rows of one submitter or, if who is empty, of all. It returns ""
// to let the engine choose.
func (q *listQuery) index(who string) string {
	votes := q.f.Sort == proposal.SortVotes && !q.few()
	evident := q.f.Evidence == proposal.WithEvidence && who == q.f.SubmittedBy // not for the viewer's own drafts
	switch {
	case q.f.Fingerprint != "":
		return ""
	case evident && votes:
		return byEvidenceVotes
	case evident:
		return byEvidence
	case who != "" && votes:
		return bySubmitterVotes
	case who != "":
		return bySubmitter
	case votes:
		return byVotes
	case q.f.Category != "" || q.f.Kind != "":
		return byCategory
	}
	return byReview
}

// few reports whether a list by votes has so few rows of its priority that sorting them is the
// cheapest plan. For more rows it is cheaper to walk the index of votes and skip other priorities: most
// of its ranges have enough of them. The index of rows with evidence has fewer ranges, so that is
// cheaper even for fewer rows.
func (q *listQuery) few() bool {
	most := int64(manyRows)
	if q.f.Evidence == proposal.WithEvidence {
		most = manyRows / 4
	}
	return q.f.Sort == proposal.SortVotes && q.f.Priority != "" && q.reach <= most
}

// walked returns the filter of the rows that the list reads in its index, and whether it is wider
// than the list's filter because the index lacks a column.
func (q *listQuery) walked() (proposal.Filter, bool) {
	f := q.f
	switch {
	case f.Fingerprint != "" || f.Evidence == "":
		return f, false
	case f.Evidence == proposal.WithEvidence:
		f.Category, f.SubmittedBy, f.Kind = "", "", ""
	default:
		f.Evidence = ""
	}
	wider := f.Category != q.f.Category || f.SubmittedBy != q.f.SubmittedBy || f.Kind != q.f.Kind ||
		f.Evidence != q.f.Evidence
	return f, wider
}

// plain reports whether the statement for the page does not depend on the total, and costs little
// for any total.
func (q *listQuery) plain() bool {
	return q.f.Evidence == "" && q.f.Fingerprint == "" && q.f.Offset <= manyRows &&
		(q.f.Sort != proposal.SortVotes || q.f.Priority == "")
}

// slow reports whether the page may cost more than a usual one: it starts far from the start of
// the list, or skips many rows that do not match.
func (q *listQuery) slow() bool {
	walk := q.f.Sort == proposal.SortVotes && q.f.Priority != "" && !q.few()
	return q.f.Offset < q.total && (q.f.Offset > manyRows || walk || q.reach-q.total > manyRows)
}

// ranges are ranges of one index: those with each combination of the values of its open columns.
type ranges struct {
	from, where string
	open        []openColumn
}

// openColumn is a column of an index with the values that it may have.
type openColumn struct {
	name   string
	values []string // SQL
}

// conditions returns the condition of each range.
func (r *ranges) conditions() []string {
	list := []string{r.where}
	for _, c := range r.open {
		out := make([]string, 0, len(list)*len(c.values))
		for _, where := range list {
			for _, v := range c.values {
				out = append(out, where+" AND p."+c.name+" = "+v)
			}
		}
		list = out
	}
	return list
}

// arms returns the FROM clauses of all ranges.
func (q *listQuery) arms(list []ranges) []string {
	var arms []string
	order := " ORDER BY " + q.order("p.")
	for _, r := range list {
		for _, where := range r.conditions() {
			arms = append(arms, r.from+where+order)
		}
	}
	return arms
}

// ranges returns the ranges of the list. The whole org in order of time is a single one.
func (q *listQuery) ranges() []ranges {
	if q.sortColumn() == "" && q.f.Status == "" && q.f.Priority == "" && q.f.Category == "" && q.f.SubmittedBy == "" &&
		!q.sparse() {
		return []ranges{{from: " FROM proposals p", where: " WHERE p.org_id = $1" + q.visible() + q.after()}}
	}
	var list []ranges
	var statuses []string
	for _, st := range q.statuses() {
		switch {
		case st != proposal.Draft || q.f.Viewer.Admin:
			statuses = append(statuses, q.arg(string(st)))
		case q.seesDrafts():
			list = append(list, q.rangesOf(q.me(), q.arg(string(st))))
		}
	}
	if len(statuses) > 0 {
		list = append(list, q.rangesOf(q.f.SubmittedBy, statuses...))
	}
	return list
}

// rangesOf returns the ranges of some statuses, of one submitter or, if who is empty, of all.
func (q *listQuery) rangesOf(who string, statuses ...string) ranges {
	index := q.index(who)
	r := ranges{from: " FROM proposals p", open: []openColumn{{"status", statuses}}}
	if index != "" {
		r.from += q.d.by(index)
	}
	var where strings.Builder
	where.WriteString(" WHERE p.org_id = $1")
	if who != "" {
		where.WriteString(" AND " + q.column("submitted_by", index) + " = " + q.arg(who))
	} else { // a submitter has one kind
		q.kindFilter(&where)
	}
	if q.f.Category != "" {
		where.WriteString(" AND " + q.column("category", index) + " = " + q.arg(string(q.f.Category)))
	} else if index == byCategory || index == bySubmitter || index == byVotes || index == bySubmitterVotes {
		r.open = append(r.open, openColumn{"category", literals(proposal.Categories)})
	}
	if q.f.Kind == "" && (index == byCategory || index == byVotes) {
		r.open = append(r.open, openColumn{"by_person", []string{"0", "1"}})
	}
	if q.f.Priority != "" {
		where.WriteString(" AND p.priority = " + strconv.Itoa(q.f.Priority.Rank()))
	} else if q.sortColumn() == "" {
		r.open = append(r.open, openColumn{"priority", []string{"0", "1", "2"}})
	}
	q.sparseFilters(&where)
	r.where = where.String() + q.after()
	return r
}

// literals returns the categories as literals.
func literals(categories []proposal.Category) []string {
	out := make([]string, len(categories))
	for i, c := range categories {
		out[i] = "'" + string(c) + "'"
	}
	return out
}

// column returns a column for a condition. It hides a column that the index does not have: without
// statistics, PostgreSQL would choose another index for it.
func (q *listQuery) column(name, index string) string {
	has := false
	switch index {
	case "", bySubmitter, bySubmitterVotes:
		has = true
	case byCategory, byVotes:
		has = name == "category"
	}
	if has {
		return "p." + name
	}
	return q.d.unindexed("p." + name)
}
