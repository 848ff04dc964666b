package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// countRows returns how many rows a list without words has. It adds up counters; only the one
// proposal of a fingerprint is looked up.
func (s Proposals) countRows(ctx context.Context, f proposal.Filter) (n int64, err error) {
	q := newListQuery(s.d, f, 0)
	sql := ""
	if f.Fingerprint != "" {
		sql = q.countMatches()
	} else {
		sql = q.countSQL()
	}
	if sql != "" {
		_, err = one(ctx, s.eng, []any{&n}, sql, q.args...)
	}
	return n, err
}

// countSQL adds up the counters of a filter. It omits drafts that the viewer may not see, so that
// a total never reveals them. It is empty if no counter applies.
func (q *listQuery) countSQL() string {
	switch {
	case q.f.Viewer.Admin:
		return "SELECT " + q.sumCounters(q.f.SubmittedBy, q.f.Status, "")
	case q.f.Status == proposal.Draft && !q.seesDrafts():
		return ""
	case q.f.Status == proposal.Draft:
		return "SELECT " + q.sumCounters(q.me(), proposal.Draft, "")
	case q.f.Status != "" || !q.seesDrafts():
		return "SELECT " + q.sumCounters(q.f.SubmittedBy, q.f.Status, withoutDrafts)
	default:
		return "SELECT " + q.sumCounters(q.f.SubmittedBy, "", withoutDrafts) + " + " +
			q.sumCounters(q.me(), proposal.Draft, "")
	}
}

const withoutDrafts = " AND status <> 'draft'"

func (q *listQuery) me() string { return q.f.Viewer.Principal.Ref() }

// seesDrafts reports whether drafts can match for a viewer who is not an admin.
func (q *listQuery) seesDrafts() bool {
	own := q.f.SubmittedBy == "" || q.f.SubmittedBy == q.me()
	return own && (q.f.Kind == "" || q.f.Kind == q.f.Viewer.Principal.Kind)
}

// sumCounters adds up the rows of one submitter, or of all submitters that the filter covers.
func (q *listQuery) sumCounters(who string, status proposal.Status, more string) string {
	var b strings.Builder
	for _, t := range q.terms(who) {
		b.WriteString(t.sign)
		b.WriteString("(SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM counters WHERE ")
		q.counters(&b, t, status)
		b.WriteString(more + ")")
	}
	return b.String()
}

// counters writes the condition that selects the counters of a term.
func (q *listQuery) counters(b *strings.Builder, t term, status proposal.Status) {
	b.WriteString("org_id = $1 AND kind = '" + t.kind + "' AND who = " + q.arg(t.who))
	if status != "" {
		b.WriteString(" AND status = " + q.arg(string(status)))
	}
	if q.f.Category != "" {
		b.WriteString(" AND category = " + q.arg(string(q.f.Category)))
	}
	if q.f.Priority != "" {
		b.WriteString(" AND priority = " + q.arg(q.f.Priority.Rank()))
	}
}

// term is one kind of counter in a sum.
type term struct{ sign, kind, who string }

// terms returns the counters of the filter. What has no counter is computed as a difference: the
// proposals of agents are those that no user submitted.
func (q *listQuery) terms(who string) []term {
	list := []term{{kind: countProposals, who: who}}
	if who == "" && q.f.Kind == identity.User {
		list[0].who = countPeople
	}
	if who == "" && q.f.Kind == identity.Agent {
		list = append(list, term{" - ", countProposals, countPeople})
	}
	if q.f.Evidence == "" {
		return list
	}
	var with []term
	for _, t := range list {
		with = append(with, term{t.sign, countEvidence, t.who})
	}
	if q.f.Evidence == proposal.WithEvidence {
		return with
	}
	for _, t := range with {
		sign := " - "
		if t.sign == sign {
			sign = " + "
		}
		list = append(list, term{sign, t.kind, t.who})
	}
	return list
}

// Counts implements proposal.Store.
func (s Proposals) Counts(ctx context.Context, f proposal.Filter) (counts map[proposal.Status]int64, err error) {
	f.Status = ""
	switch q := newListQuery(s.d, f, 0); {
	case len(f.Words) > 0:
		counts, err = s.searchCounts(ctx, f)
	case f.Fingerprint != "":
		counts, err = byStatus(ctx, s.eng,
			"SELECT p.status, count(*) FROM "+q.matchConditions()+" GROUP BY p.status", q.args)
	default:
		counts, err = byStatus(ctx, s.eng, q.countsSQL(), q.args)
	}
	return counts, err
}

// countsSQL adds up the counters of a filter by status.
func (q *listQuery) countsSQL() string {
	var arms []string
	add := func(who string, status proposal.Status, more string) {
		for _, t := range q.terms(who) {
			sign := ""
			if t.sign == " - " {
				sign = "-"
			}
			var b strings.Builder
			fmt.Fprintf(&b, "SELECT status, CAST(%ssum(n) AS BIGINT) FROM counters WHERE ", sign)
			q.counters(&b, t, status)
			arms = append(arms, b.String()+more+" GROUP BY status")
		}
	}
	if q.f.Viewer.Admin {
		add(q.f.SubmittedBy, "", "")
	} else {
		add(q.f.SubmittedBy, "", withoutDrafts)
		if q.seesDrafts() {
			add(q.me(), proposal.Draft, "")
		}
	}
	return strings.Join(arms, " UNION ALL ")
}

// byStatus adds up the rows of a query that selects statuses and numbers.
func byStatus(ctx context.Context, r reader, sql string, args []any) (map[proposal.Status]int64, error) {
	counts := map[proposal.Status]int64{}
	err := each(ctx, r, func(r rows) error {
		var status string
		var n int64
		err := r.Scan(&status, &n)
		counts[proposal.Status(status)] += n
		return err
	}, sql, args...)
	return counts, err
}
