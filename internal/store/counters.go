package store

import (
	"cmp"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// counter is the key of one row count.
type counter struct {
	org, kind, who, status, category string
	priority                         int
}

const (
	countProposals = "proposal"
	countEvidence  = "evidence" // the proposals that were filed from friction
	countFollowups = "followup"
	// countPeople is the value of who for the proposals of all users. No principal ref equals it.
	countPeople = string(identity.User)
)

// counted is a change of a counter.
type counted struct {
	counter
	n int64
}

// countProposal adds n to the counters that include p: the org's, its submitter's and, if a
// user submitted it, that of all users.
func (t *tx) countProposal(p *proposal.Proposal, n int64) {
	c := counter{p.Org, countProposals, "", string(p.Status), string(p.Category), p.Priority.Rank()}
	t.countBySubmitter(c, p, n)
	if p.Fingerprint != "" {
		c.kind = countEvidence
		t.countBySubmitter(c, p, n)
	}
}

func (t *tx) countBySubmitter(c counter, p *proposal.Proposal, n int64) {
	t.count(c, n)
	c.who = p.SubmittedBy
	t.count(c, n)
	if byPerson(p) {
		c.who = countPeople
		t.count(c, n)
	}
}

func byPerson(p *proposal.Proposal) bool {
	return strings.HasPrefix(p.SubmittedBy, string(identity.User)+":")
}

// countFollowup adds n to the counters that include f: the org's and its assignee's. A
// follow-up without an assignee counts as unassigned.
func (t *tx) countFollowup(f *followup.Followup, n int64) {
	c := counter{org: f.Org, kind: countFollowups, status: string(f.Status)}
	t.count(c, n)
	c.who = assigneeCounter(f.Assignee)
	t.count(c, n)
}

func assigneeCounter(assignee string) string {
	if assignee == "" {
		return followup.Unassigned
	}
	return assignee
}

// changedCounters returns what to add to which counter in sorted order, which prevents deadlocks.
func (t *tx) changedCounters() []counted {
	sums := make(map[counter]int64, len(t.counts))
	for i := range t.counts {
		sums[t.counts[i].counter] += t.counts[i].n
	}
	out := make([]counted, 0, len(sums))
	for c, n := range sums {
		if n != 0 {
			out = append(out, counted{c, n})
		}
	}
	slices.SortFunc(out, compareCounters)
	return out
}

// flushCounts queues one statement for each changed counter.
func (t *tx) flushCounts() {
	for _, c := range t.changedCounters() {
		t.exec(`INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
			VALUES ($1, $2, $3, $4, $5, $6, 0, $7)
			ON CONFLICT (org_id, kind, who, status, category, priority, slot) DO UPDATE SET n = counters.n + excluded.n`,
			c.org, c.kind, c.who, c.status, c.category, c.priority, c.n)
	}
}

// flushCountsAtOnce is flushCounts for PostgreSQL, where each statement is expensive: one
// statement adds all counts, in sorted order.
func (t *tx) flushCountsAtOnce(slot int) {
	changed := t.changedCounters()
	if len(changed) == 0 {
		return
	}
	var orgs, kinds, whos, statuses, categories []string
	var priorities, counts []int64
	for _, c := range changed {
		orgs, kinds, whos = append(orgs, c.org), append(kinds, c.kind), append(whos, c.who)
		statuses, categories = append(statuses, c.status), append(categories, c.category)
		priorities, counts = append(priorities, int64(c.priority)), append(counts, c.n)
	}
	t.exec(`INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
			SELECT org, kind, who, status, category, priority, $8, n
			FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[])
				AS c (org, kind, who, status, category, priority, n)
		ON CONFLICT (org_id, kind, who, status, category, priority, slot) DO UPDATE SET n = counters.n + excluded.n`,
		orgs, kinds, whos, statuses, categories, priorities, counts, slot)
}

func compareCounters(a, b counted) int {
	return cmp.Or(
		cmp.Compare(a.org, b.org), cmp.Compare(a.kind, b.kind), cmp.Compare(a.who, b.who),
		cmp.Compare(a.status, b.status), cmp.Compare(a.category, b.category), cmp.Compare(a.priority, b.priority),
	)
}
