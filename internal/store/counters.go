package store

import (
	"cmp"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// counter names one count of rows.
type counter struct {
	org, kind, who, status, category string
	priority                         int
}

const (
	countProposals = "proposal"
	countEvidence  = "evidence" // the proposals among them that were filed from friction
	countFollowups = "followup"
	// countPeople is who counts the proposals of all people; no ref is like it.
	countPeople = string(identity.User)
)

// countProposal adds n to the counters that p is part of: everybody's, its submitter's
// and, if that is a person, all people's.
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

// countFollowup adds n to the counters that f is part of: everybody's and its
// assignee's. Those without an assignee are counted under unassigned.
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

// changedCounters lists the counters to change in one fixed order, so that two transactions
// never wait for each other in a circle.
func (t *tx) changedCounters() []counter {
	keys := make([]counter, 0, len(t.counts))
	for c, n := range t.counts {
		if n != 0 {
			keys = append(keys, c)
		}
	}
	slices.SortFunc(keys, compareCounters)
	return keys
}

// flushCounts queues the collected counts, one statement for each.
func (t *tx) flushCounts() {
	for _, c := range t.changedCounters() {
		t.exec(`INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
			VALUES ($1, $2, $3, $4, $5, $6, 0, $7)
			ON CONFLICT (org_id, kind, who, status, category, priority, slot) DO UPDATE SET n = counters.n + excluded.n`,
			c.org, c.kind, c.who, c.status, c.category, c.priority, t.counts[c])
	}
}

// flushCountsAtOnce is flushCounts for PostgreSQL, where every statement costs: all are
// added in one, in their order.
func (t *tx) flushCountsAtOnce(slot int) {
	keys := t.changedCounters()
	if len(keys) == 0 {
		return
	}
	var orgs, kinds, whos, statuses, categories []string
	var priorities, counts []int64
	for _, c := range keys {
		orgs, kinds, whos = append(orgs, c.org), append(kinds, c.kind), append(whos, c.who)
		statuses, categories = append(statuses, c.status), append(categories, c.category)
		priorities, counts = append(priorities, int64(c.priority)), append(counts, t.counts[c])
	}
	t.exec(`INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
		SELECT org, kind, who, status, category, priority, $8, n FROM unnest($1::text[], $2::text[], $3::text[], $4::text[],
			$5::text[], $6::bigint[], $7::bigint[]) AS c (org, kind, who, status, category, priority, n)
		ON CONFLICT (org_id, kind, who, status, category, priority, slot) DO UPDATE SET n = counters.n + excluded.n`,
		orgs, kinds, whos, statuses, categories, priorities, counts, slot)
}

func compareCounters(a, b counter) int {
	return cmp.Or(
		cmp.Compare(a.org, b.org), cmp.Compare(a.kind, b.kind), cmp.Compare(a.who, b.who),
		cmp.Compare(a.status, b.status), cmp.Compare(a.category, b.category), cmp.Compare(a.priority, b.priority),
	)
}
