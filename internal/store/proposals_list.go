package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

const (
	// manyRows is where a read becomes a slow one: it may walk, sort or skip so many
	// rows on the connections that all requests share.
	manyRows = 2000
	// smallOrg is how many proposals an org may have for a search to read through
	// them. In a larger org it uses the index, which holds the words of all orgs: what
	// it costs there depends on what the other orgs have.
	smallOrg = 1000
)

// List implements proposal.Store. It finds the keys of a page in an index first
// and then reads these rows only, so that a page costs the same whatever the
// size of the org.
func (s Proposals) List(ctx context.Context, f proposal.Filter) (items []proposal.Item, total int64, err error) {
	if len(f.Words) > 0 {
		err = s.slow(ctx, f.Org, func(ctx context.Context, r reader) (err error) {
			items, total, err = s.search(ctx, r, f)
			return err
		})
		return items, total, err
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
		items, err = q.read(ctx, s.eng)
		return items, total, err
	}
	err = s.slow(ctx, f.Org, func(ctx context.Context, r reader) (err error) {
		items, err = q.read(ctx, r)
		return err
	})
	return items, total, err
}

// search finds a page of the proposals with the filter's words and counts all of
// them.
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

// searchScans reports whether a search reads through the org's proposals. Otherwise, the
// index has all of them when it returns.
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

// read reads the page.
func (q *listQuery) read(ctx context.Context, r reader) ([]proposal.Item, error) {
	items := make([]proposal.Item, 0, q.f.Limit+1)
	if q.f.Offset >= q.total {
		return items, nil
	}
	sql, row := q.page(), newItemRow(&q.f)
	err := each(ctx, r, func(r rows) error {
		it, err := row.scan(r)
		items = append(items, it)
		return err
	}, sql, q.args...)
	return items, err
}

// itemRow is one row of a page while it is read. It is used for all of them, so that a
// row costs no memory but its own.
type itemRow struct {
	item                   proposal.Item
	status, category, vote string
	rank                   int
	submitted, updated     int64
	dest                   []any
}

func newItemRow(f *proposal.Filter) *itemRow {
	row := &itemRow{item: proposal.Item{Proposal: proposal.Proposal{Org: f.Org}}}
	it := &row.item
	row.dest = []any{
		&it.ID, &row.status, &row.category, &row.rank, &it.SubmittedBy, &row.submitted, &row.updated, &it.VotesFor, &it.VotesAgainst,
		&it.AgentsFor, &it.AgentsAgainst, &it.Version, &it.TextVersion, &it.FollowupID, &it.Title, &it.Fingerprint, &it.Evidence, &row.vote,
	}
	if f.Excerpt {
		row.dest = append(row.dest, &it.Excerpt)
	}
	return row
}

func (row *itemRow) scan(r rows) (proposal.Item, error) {
	if err := r.Scan(row.dest...); err != nil {
		return proposal.Item{}, err
	}
	it := row.item
	it.Status, it.Category, it.Priority = proposal.Status(row.status), proposal.Category(row.category), proposal.Priorities[row.rank]
	it.SubmittedAt, it.UpdatedAt, it.MyVote = fromMicros(row.submitted), fromMicros(row.updated), proposal.Choice(row.vote)
	if it.Excerpt != "" {
		it.Excerpt = proposal.ExcerptOf(it.Excerpt)
	}
	return it, nil
}

// listQuery builds the statements of one list.
type listQuery struct {
	d     *dialect
	f     proposal.Filter
	total int64
	// reach is how many rows the index of the filters has for the list; some of them may not
	// match.
	reach int64
	args  []any
	// search is the FROM clause of a search; empty: there are no words.
	search string
}

func newListQuery(d *dialect, f proposal.Filter, total int64) *listQuery {
	return &listQuery{d: d, f: f, total: total, reach: total, args: []any{f.Org}}
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

// slow reports whether the page may cost more than a usual one: it starts far from
// the start of the list, walks the index of votes for rows that match a filter, or
// passes over many rows that do not.
func (q *listQuery) slow() bool {
	walk := q.f.Sort == proposal.SortVotes && q.filtered() && !q.few()
	return q.f.Offset < q.total && (q.f.Offset > manyRows || walk || q.reach-q.total > manyRows)
}

// filtered reports whether the list has a filter that the index of votes does not begin
// with.
func (q *listQuery) filtered() bool { return q.f.Category != "" || q.f.SubmittedBy != "" || q.sparse() }

// sparse reports whether the list has a filter for which not every index has a column.
func (q *listQuery) sparse() bool {
	return q.f.Kind != "" || q.f.Evidence != "" || q.f.Fingerprint != ""
}

// walked is the filter that leaves what the list reads in the index of its filters. It is
// wider than the list's own if that index lacks a column.
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
	return f, f.Category != q.f.Category || f.SubmittedBy != q.f.SubmittedBy || f.Kind != q.f.Kind || f.Evidence != q.f.Evidence
}

// The indexes of the list. Those of evidence and of people hold such proposals alone.
const (
	byReview    = "proposals_review"
	byCategory  = "proposals_category"
	bySubmitter = "proposals_submitter"
	byEvidence  = "proposals_evidence"
	byPeople    = "proposals_people"
	byVotes     = "proposals_votes"
)

// index names the index that finds the fewest rows by the filters; empty: the engine finds
// it by itself.
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
	return fmt.Sprintf("$%d", len(q.args))
}

// page is the statement for one page: up to limit+1 rows, so that the caller can
// tell whether more follow.
func (q *listQuery) page() string {
	var keys string
	if q.search != "" {
		keys = q.matches()
	} else {
		keys = q.ranges()
	}
	voter, excerpt := q.arg(q.me()), ""
	if q.f.Excerpt {
		excerpt = fmt.Sprintf(", substr(p.problem, 1, %d)", proposal.ExcerptSource)
	}
	return `SELECT p.id, p.status, p.category, p.priority, p.submitted_by, p.submitted_at, p.updated_at, p.votes_for,
		p.votes_against, p.agents_for, p.agents_against, p.version, p.text_version, p.followup_id, p.title, p.fingerprint,
		p.evidence, coalesce(v.choice, '')` + excerpt + `
		FROM (` + keys + `) k ` + q.d.byKey + `
		LEFT JOIN votes v ON v.org_id = $1 AND v.proposal_id = p.id AND v.voter = ` + voter + ` ORDER BY ` + q.order("p.")
}

// order is the list's order. Every sort ends with the id, so no two rows tie.
func (q *listQuery) order(prefix string) string {
	if q.f.Sort == proposal.SortOldest {
		return prefix + "id"
	}
	c := q.sortColumn()
	switch {
	case c == "":
		return prefix + "id DESC"
	case c == "score" && q.few():
		return prefix + "score + 0 DESC, " + prefix + "id DESC" // by no index
	}
	return prefix + c + " DESC, " + prefix + "id DESC"
}

// sortColumn is what the sort looks at before the id; empty: nothing.
func (q *listQuery) sortColumn() string {
	switch q.f.Sort {
	case proposal.SortReview:
		return "priority"
	case proposal.SortVotes:
		return "score"
	case proposal.SortNewest, proposal.SortOldest:
	}
	return ""
}

// after is the condition that continues behind the cursor.
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
	case proposal.SortNewest:
	}
	return " AND p.id < " + q.arg(pos.ID)
}

// keyColumns is what the inner query yields: the sort's column and the id.
func (q *listQuery) keyColumns() string {
	if c := q.sortColumn(); c != "" {
		return "p." + c + ", p.id"
	}
	return "p.id"
}

// ranges finds the page's keys without a search. Each range of an index that is
// in the list's own order is one arm; the heads of the arms are merged.
func (q *listQuery) ranges() string {
	tail := func() string { return fmt.Sprintf(" LIMIT %s OFFSET %s", q.arg(q.f.Limit+1), q.arg(q.f.Offset)) }
	arms := q.arms()
	if len(arms) == 1 {
		return arms[0] + tail()
	}
	limit := q.arg(q.f.Offset + int64(q.f.Limit) + 1)
	for i, arm := range arms {
		arms[i] = fmt.Sprintf("SELECT * FROM (%s LIMIT %s) r%d", arm, limit, i)
	}
	return "SELECT * FROM (" + strings.Join(arms, " UNION ALL ") + ") m ORDER BY " + q.order("") + tail()
}

// arms lists the ranges: one for each status and, for the sorts by time, each
// priority, as the indexes have them in front of the id. The whole org in order
// of time is one range of its own.
func (q *listQuery) arms() []string {
	filters, after := q.filters(), q.after()
	index := q.byFilter()
	arm := func(where string) string {
		return `SELECT ` + q.keyColumns() + ` FROM proposals p` + index + ` WHERE p.org_id = $1` + where + filters + after +
			` ORDER BY ` + q.order("p.")
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
				index = q.d.by(bySubmitter) // no other leaves out the drafts of others
			}
		}
		for _, rank := range ranks {
			if rank < 0 {
				arms = append(arms, arm(where))
			} else {
				arms = append(arms, arm(where+fmt.Sprintf(" AND p.priority = %d", rank)))
			}
		}
	}
	return arms
}

// visible leaves out the drafts of others, which only admins see.
func (q *listQuery) visible() string {
	if q.f.Viewer.Admin {
		return ""
	}
	return " AND (p.status <> 'draft' OR p.submitted_by = " + q.arg(q.me()) + ")"
}

// statuses lists the statuses that the filter covers.
func (q *listQuery) statuses() []proposal.Status {
	if q.f.Status == "" {
		return proposal.Statuses
	}
	return []proposal.Status{q.f.Status}
}

// few reports whether a filter leaves so little that sorting it is the cheapest:
// beyond that, walking the sort's index and leaving out what does not match is.
func (q *listQuery) few() bool {
	return q.filtered() && q.reach <= manyRows
}

// byFilter names the index to use where an engine might take another: that of the filters,
// in a list by votes only if they leave few rows.
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

// filters are the conditions beside org and status. The sort by votes has no index
// that starts with them: it walks its own, which holds them, unless the exact total,
// known from the counters, says that sorting what matches is cheaper. Of two filters
// the submitter's index is the one that holds both.
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

// sparseFilters are written as the partial indexes have them.
func (q *listQuery) sparseFilters(b *strings.Builder) {
	switch q.f.Kind {
	case identity.User:
		b.WriteString(" AND p.by_person = 1")
	case identity.Agent:
		b.WriteString(" AND p.by_person = 0")
	case identity.Service: // has submitted nothing, and is no filter that reaches the store
	}
	switch q.f.Evidence {
	case proposal.WithEvidence:
		b.WriteString(" AND p.fingerprint <> ''")
	case proposal.WithoutEvidence:
		b.WriteString(" AND p.fingerprint = ''")
	}
	if q.f.Fingerprint != "" { // files one proposal
		b.WriteString(" AND p.id = (SELECT proposal_id FROM friction WHERE org_id = $1 AND fingerprint = " +
			q.arg(q.f.Fingerprint) + ")")
	}
}

// matches finds the page's keys among the hits of a search.
func (q *listQuery) matches() string {
	return `SELECT ` + q.keyColumns() + ` FROM ` + q.matchConditions() + q.after() +
		fmt.Sprintf(" ORDER BY %s LIMIT %s OFFSET %s", q.order("p."), q.arg(q.f.Limit+1), q.arg(q.f.Offset))
}

func (q *listQuery) countMatches() string { return `SELECT count(*) FROM ` + q.matchConditions() }

func (q *listQuery) matchConditions() string {
	from := q.search
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
