package store

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// change is a decision about a proposal, and its outcome. It may run more than once.
type change struct {
	id, original string // original is another proposal that the decision depends on, or empty
	by           identity.Principal
	once         *idempotency.Key
	decide       func(proposal.Current) (proposal.Change, error)
	now          func() time.Time
	out          proposal.Outcome
}

// changeReader reads what a change depends on. The proposals are locked until the end of the write.
type changeReader interface {
	// replay reads the outcome of an earlier command with the same idempotency key, if there is one.
	replay(ctx context.Context, c *change, now time.Time) (bool, error)
	// proposals reads the proposal with the vote of the actor, and the original.
	proposals(ctx context.Context, c *change) (proposal.Current, error)
}

// run decides and queues the writes.
func (c *change) run(ctx context.Context, t *tx, from changeReader) error {
	c.out = proposal.Outcome{}
	now := c.now()
	if done, err := from.replay(ctx, c, now); done || err != nil {
		c.out.Replayed = true
		return err
	}
	cur, err := from.proposals(ctx, c)
	if err != nil {
		return err
	}
	decided, err := c.decide(cur)
	if err != nil {
		return err
	}
	if c.out, err = t.apply(&cur, &decided, c.by); err != nil {
		return err
	}
	return t.remember(c.once, c.by, now, c.out)
}

// aloneReader reads for a change that shares no reads with others.
type aloneReader struct{ t *tx }

func (r aloneReader) replay(ctx context.Context, c *change, now time.Time) (bool, error) {
	return r.t.replay(ctx, c.once, c.by, now, &c.out)
}

func (r aloneReader) proposals(ctx context.Context, c *change) (proposal.Current, error) {
	original, err := r.original(ctx, c)
	if err != nil {
		return proposal.Current{}, err
	}
	// The lock covers all votes on the proposal. It is a statement of its own: a single one for both
	// would read the vote as it was before the lock was taken.
	r.t.lock(`SELECT 1 FROM proposals WHERE org_id = $1 AND id = $2`, c.by.Org, c.id)
	cur, err := current(ctx, r.t, c.by.Org, c.id, c.by)
	cur.Original = original
	return cur, err
}

// original reads the other proposal of a decision, if one is named. It locks both in the order
// of their ids: if two proposals are concurrently declared duplicates of each other, there is no
// deadlock, and the second decision sees the first.
func (r aloneReader) original(ctx context.Context, c *change) (*proposal.Proposal, error) {
	if c.original == "" || c.original == c.id {
		return nil, nil
	}
	r.t.lock(`SELECT 1 FROM proposals WHERE org_id = $1 AND id IN ($2, $3) ORDER BY id`, c.by.Org, c.id, c.original)
	found, err := records(ctx, r.t, c.by.Org, []string{c.original})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// setProposal queues the update of a proposal's row, except for its text. It sets all columns: of
// several changes in a batch only the last is written.
func (t *tx) setProposal(p *proposal.Proposal) {
	t.set(rowKey{p.Org, p.ID, ""}, &setProposals, wholeProposal,
		p.Org, p.ID, string(p.Status), string(p.Category), p.Priority.Rank(), micros(p.UpdatedAt), p.VotesFor,
		p.VotesAgainst, p.VotesFor-p.VotesAgainst, p.Version, p.FollowupID, p.ResolutionNote, p.AgentsFor,
		p.AgentsAgainst, p.DuplicateOf)
}

const wholeProposal = `UPDATE proposals SET status = $3, category = $4, priority = $5, updated_at = $6, votes_for = $7,
		votes_against = $8, score = $9, version = $10, followup_id = $11, resolution_note = $12, agents_for = $13,
		agents_against = $14, duplicate_of = $15
	WHERE org_id = $1 AND id = $2`

// setProposals is wholeProposal for many rows on PostgreSQL, which must be locked. It looks up each in
// the primary key, whatever PostgreSQL knows about the table; OFFSET 0 keeps the planner from another
// order.
var setProposals = many{
	`WITH new (org_id, id, status, category, priority, updated_at, votes_for, votes_against, score, version,
			followup_id, resolution_note, agents_for, agents_against, duplicate_of) AS (
		VALUES ($1::text, $2::text, $3::text, $4::text, $5::bigint, $6::bigint, $7::bigint, $8::bigint, $9::bigint,
			$10::bigint, $11::text, $12::text, $13::bigint, $14::bigint, $15::text)`,
	`) UPDATE proposals p SET status = new.status, category = new.category, priority = new.priority,
			updated_at = new.updated_at, votes_for = new.votes_for, votes_against = new.votes_against,
			score = new.score, version = new.version, followup_id = new.followup_id,
			resolution_note = new.resolution_note, agents_for = new.agents_for,
			agents_against = new.agents_against, duplicate_of = new.duplicate_of
		FROM new CROSS JOIN LATERAL (SELECT ctid FROM proposals
			WHERE org_id = new.org_id AND id = new.id OFFSET 0) found
		WHERE p.ctid = found.ctid`,
}

// setVotes inserts or replaces a vote, or many.
var setVotes = many{
	`INSERT INTO votes (org_id, proposal_id, voter, choice, comment, voted_at) VALUES ($1, $2, $3, $4, $5, $6)`,
	` ON CONFLICT (org_id, proposal_id, voter) DO UPDATE
		SET choice = excluded.choice, comment = excluded.comment, voted_at = excluded.voted_at`,
}
