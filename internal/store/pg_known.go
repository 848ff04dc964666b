package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/proposal"
)

// known is what the changes of a batch depend on. It is updated after each of them, so that the next
// one finds what it would have read.
type known struct {
	records map[rowKey]*proposal.Proposal
	votes   map[rowKey]*proposal.Vote
	kept    map[keptKey]*keptRow
	done    map[keptKey]*change // those of the batch
	reads   knownReads
}

// keptKey names the kept outcome of a command.
type keptKey struct{ org, by, operation, key string }

func (c *change) proposalKey() rowKey { return rowKey{c.by.Org, c.id, ""} }

func (c *change) voteKey() rowKey { return rowKey{c.by.Org, c.id, c.by.Ref()} }

func (c *change) keptKey() keptKey {
	return keptKey{c.by.Org, c.by.Ref(), c.once.Operation, c.once.Value}
}

// knownReads are the keys to read, as columns.
type knownReads struct {
	orgs, ids                           []string // of proposals
	voteOrgs, voteIDs, voters           []string
	keptOrgs, keptBys, operations, keys []string
	now                                 time.Time
}

// newKnown returns the maps for a batch, in which every key stands for a row to read.
func newKnown(batch []*request) *known {
	k := &known{
		records: map[rowKey]*proposal.Proposal{}, votes: map[rowKey]*proposal.Vote{},
		kept: map[keptKey]*keptRow{}, done: map[keptKey]*change{},
		reads: knownReads{now: batch[0].change.now()},
	}
	for _, r := range batch {
		k.add(r.change)
	}
	return k
}

func (k *known) add(c *change) {
	rs, org := &k.reads, c.by.Org
	if c.original != "" && isNew(k.records, rowKey{org, c.original, ""}) {
		rs.orgs, rs.ids = append(rs.orgs, org), append(rs.ids, c.original)
	}
	if isNew(k.records, c.proposalKey()) {
		rs.orgs, rs.ids = append(rs.orgs, org), append(rs.ids, c.id)
	}
	if isNew(k.votes, c.voteKey()) {
		rs.voteOrgs, rs.voteIDs = append(rs.voteOrgs, org), append(rs.voteIDs, c.id)
		rs.voters = append(rs.voters, c.by.Ref())
	}
	if c.once != nil && isNew(k.kept, c.keptKey()) {
		rs.keptOrgs, rs.keptBys = append(rs.keptOrgs, org), append(rs.keptBys, c.by.Ref())
		rs.operations, rs.keys = append(rs.operations, c.once.Operation), append(rs.keys, c.once.Value)
	}
}

// isNew adds a key without a row, and reports whether it was missing.
func isNew[K comparable, R any](rows map[K]*R, key K) bool {
	_, known := rows[key]
	if !known {
		rows[key] = nil
	}
	return !known
}

// queries returns the queries that read everything. The lock is the first: the others see what was
// committed before it was taken. It takes the rows in the order of their keys, so that batches do not
// deadlock. Each row is looked up by its whole key, whatever PostgreSQL knows about the table.
func (k *known) queries() []pgQuery {
	rs := &k.reads
	out := []pgQuery{
		{statement{sql: lockProposals, args: []any{rs.orgs, rs.ids}}, func(rows) error { return nil }},
		{statement{sql: knownProposals, args: []any{rs.orgs, rs.ids}}, k.scanProposal},
		{statement{sql: knownVotes, args: []any{rs.voteOrgs, rs.voteIDs, rs.voters}}, k.scanVote},
	}
	if len(rs.keys) > 0 {
		args := []any{rs.keptOrgs, rs.keptBys, rs.operations, rs.keys, micros(rs.now)}
		out = append(out, pgQuery{statement{sql: knownOutcomes, args: args}, k.scanKept})
	}
	return out
}

const (
	lockProposals = `SELECT 1 FROM (SELECT org, id FROM unnest($1::text[], $2::text[]) AS k (org, id) ORDER BY org, id) k
		CROSS JOIN LATERAL (SELECT 1 FROM proposals WHERE org_id = k.org AND id = k.id FOR UPDATE) p`
	knownProposals = `SELECT ` + recordColumns + `, p.org_id,
			coalesce((SELECT f.status FROM followups f WHERE f.org_id = k.org AND f.id = p.followup_id), '')
		FROM unnest($1::text[], $2::text[]) AS k (org, id)
		CROSS JOIN LATERAL (SELECT * FROM proposals WHERE org_id = k.org AND id = k.id OFFSET 0) p`
	knownVotes = `SELECT v.org_id, v.proposal_id, v.voter, v.choice, v.comment, v.voted_at
		FROM unnest($1::text[], $2::text[], $3::text[]) AS k (org, id, voter)
		CROSS JOIN LATERAL (SELECT * FROM votes WHERE org_id = k.org AND proposal_id = k.id AND voter = k.voter OFFSET 0) v`
	knownOutcomes = `SELECT i.org_id, i.principal, i.operation, i.key, i.fingerprint, i.outcome
		FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS k (org, principal, operation, key)
		CROSS JOIN LATERAL (SELECT * FROM idempotency WHERE org_id = k.org AND principal = k.principal
			AND operation = k.operation AND key = k.key AND expires_at > $5 OFFSET 0) i`
)

func (k *known) scanProposal(r rows) error {
	p := &proposal.Proposal{}
	if err := scanRecord(r, p, &p.Org, &p.FollowupStatus); err != nil {
		return err
	}
	k.records[rowKey{p.Org, p.ID, ""}] = p
	return nil
}

func (k *known) scanVote(r rows) error {
	var key rowKey
	var v voteRow
	if err := r.Scan(&key.org, &key.proposal, &key.voter, &v.choice, &v.comment, &v.at); err != nil {
		return err
	}
	v.voter = key.voter
	k.votes[key] = v.vote()
	return nil
}

func (k *known) scanKept(r rows) error {
	var key keptKey
	var row keptRow
	if err := r.Scan(&key.org, &key.by, &key.operation, &key.key, &row.fingerprint, &row.outcome); err != nil {
		return err
	}
	k.kept[key] = &row
	return nil
}

// replay implements changeReader.
func (k *known) replay(_ context.Context, c *change, _ time.Time) (bool, error) {
	if c.once == nil {
		return false, nil
	}
	kept := k.kept[c.keptKey()]
	if earlier := k.done[c.keptKey()]; earlier != nil {
		text, err := json.Marshal(earlier.out)
		if err != nil {
			return false, fmt.Errorf("encode an outcome: %w", err)
		}
		kept = &keptRow{hex.EncodeToString(earlier.once.Fingerprint[:]), string(text)}
	}
	if kept == nil {
		return false, nil
	}
	return kept.decode(c.once, &c.out)
}

// proposals implements changeReader.
func (k *known) proposals(_ context.Context, c *change) (proposal.Current, error) {
	p := k.records[c.proposalKey()]
	if p == nil {
		return proposal.Current{}, errs.ErrNotFound
	}
	cur := proposal.Current{Proposal: *p, Vote: k.votes[c.voteKey()]}
	if c.original != "" && c.original != c.id {
		cur.Original = k.records[rowKey{c.by.Org, c.original, ""}]
	}
	return cur, nil
}

// update notes what a change will have written.
func (k *known) update(c *change) {
	if c.out.Replayed {
		return
	}
	k.records[c.proposalKey()], k.votes[c.voteKey()] = &c.out.Proposal, c.out.Vote
	if c.once != nil {
		k.done[c.keptKey()] = c
	}
}
