package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// Proposals stores proposals, their votes and history, and saved notes.
type Proposals struct{ *db }

// Proposals returns the implementation of proposal.Store.
func (s *Store) Proposals() Proposals { return Proposals{s.db} }

// Insert implements proposal.Store. Without an idempotency key it depends on no earlier row, so
// it is combined with other writes.
func (s Proposals) Insert(ctx context.Context, p proposal.Proposal, by identity.Principal, once *idempotency.Key,
) (proposal.Outcome, error) {
	write := s.eng.add
	if once != nil {
		write = s.eng.write
	}
	submitted := s.hooks.submission(&p) // not in the only writer
	out := proposal.Outcome{}
	err := write(ctx, func(t *tx) error {
		out = proposal.Outcome{}
		if done, err := t.replay(ctx, once, by, p.SubmittedAt, &out); done || err != nil {
			out.Replayed = true
			return err
		}
		out.Proposal = p
		t.insertProposal(&p, submitted)
		return t.remember(once, by, p.SubmittedAt, out)
	})
	return out, err
}

// insertProposal queues the insertion of a proposal, and its event.
func (t *tx) insertProposal(p *proposal.Proposal, submitted event.Event) {
	t.insert(`INSERT INTO proposals (org_id, id, status, category, priority, submitted_by, submitted_at, updated_at,
					votes_for, votes_against, score, version, followup_id, title, problem, suggested_fix, resolution_note,
					submitted_as, by_person, fingerprint, evidence)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $3, $18, $19, $20)`,
		p.Org, p.ID, string(p.Status), string(p.Category), p.Priority.Rank(), p.SubmittedBy, micros(p.SubmittedAt),
		micros(p.UpdatedAt), p.VotesFor, p.VotesAgainst, p.VotesFor-p.VotesAgainst, p.Version, p.FollowupID,
		p.Title, p.Problem, p.SuggestedFix, p.ResolutionNote, flag(byPerson(p)), p.Fingerprint, p.Evidence)
	t.await(p.Org, p.ID, false)
	t.countProposal(p, +1)
	t.touch(p.Org)
	t.emit(submitted)
}

// Update implements proposal.Store.
func (s Proposals) Update(ctx context.Context, id, original string, by identity.Principal, once *idempotency.Key,
	decide func(proposal.Current) (proposal.Change, error),
) (proposal.Outcome, error) {
	c := &change{id: id, original: original, by: by, once: once, decide: decide, now: s.now}
	err := s.eng.change(ctx, c)
	return c.out, err
}

// apply queues the writes of a decision.
func (t *tx) apply(cur *proposal.Current, c *proposal.Change, by identity.Principal) (proposal.Outcome, error) {
	out := proposal.Outcome{Proposal: cur.Proposal, Vote: c.Vote, Replaced: cur.Vote != nil && c.Vote != nil}
	if c.Entry.Kind == "" {
		return out, nil
	}
	old, p := &cur.Proposal, &c.Proposal
	p.Version = old.Version + 1
	c.Entry.Seq = p.Version
	out.Proposal = *p
	if p.Status != old.Status || p.Category != old.Category || p.Priority != old.Priority {
		t.countProposal(old, -1)
		t.countProposal(p, +1)
	}
	t.updateProposal(old, p)
	if p.Title != old.Title || p.Problem != old.Problem || p.SuggestedFix != old.SuggestedFix {
		t.exec(`UPDATE proposals SET title = $3, problem = $4, suggested_fix = $5, text_version = $6
			WHERE org_id = $1 AND id = $2`, p.Org, p.ID, p.Title, p.Problem, p.SuggestedFix, p.TextVersion)
		t.await(p.Org, p.ID, true)
	} else if p.Status != old.Status || p.Category != old.Category || p.Priority != old.Priority {
		t.await(p.Org, p.ID, true)
	}
	t.setVote(p, cur.Vote, c.Vote, by)
	t.emitProposal(p, &c.Entry)
	if f := c.Followup; f != nil {
		t.insertFollowup(&followup.Followup{
			Org: p.Org, ID: f.ID, Title: f.Title, Description: f.Description, ProposalID: p.ID, TextHash: f.TextHash,
			Status: followup.Open, CreatedBy: c.Entry.Actor, CreatedAt: c.Entry.At, UpdatedAt: c.Entry.At, Version: 1,
		})
	}
	t.touch(p.Org)
	return out, t.insertEntry(p, c.Entry)
}

// updateProposal queues the change of a proposal's row, except for its text. SQLite writes every
// index with a column that the statement sets, even to the same value. So a vote, the most frequent
// change, sets no others than its own. PostgreSQL looks at the values, and sets whole rows, of which
// the last of a batch counts.
func (t *tx) updateProposal(old, p *proposal.Proposal) {
	score := p.VotesFor - p.VotesAgainst
	switch {
	case t.d == &postgresDialect || p.Status != old.Status || p.Category != old.Category ||
		p.Priority != old.Priority || p.FollowupID != old.FollowupID || p.ResolutionNote != old.ResolutionNote ||
		p.DuplicateOf != old.DuplicateOf:
		t.setProposal(p)
	case score != old.VotesFor-old.VotesAgainst:
		t.exec(`UPDATE proposals SET updated_at = $3, votes_for = $4, votes_against = $5, version = $6, agents_for = $7,
				agents_against = $8, score = $9
			WHERE org_id = $1 AND id = $2`,
			p.Org, p.ID, micros(p.UpdatedAt), p.VotesFor, p.VotesAgainst, p.Version, p.AgentsFor, p.AgentsAgainst, score)
	default:
		t.exec(`UPDATE proposals SET updated_at = $3, votes_for = $4, votes_against = $5, version = $6, agents_for = $7,
				agents_against = $8
			WHERE org_id = $1 AND id = $2`,
			p.Org, p.ID, micros(p.UpdatedAt), p.VotesFor, p.VotesAgainst, p.Version, p.AgentsFor, p.AgentsAgainst)
	}
}

func (t *tx) setVote(p *proposal.Proposal, old, vote *proposal.Vote, by identity.Principal) {
	key := rowKey{p.Org, p.ID, by.Ref()}
	switch {
	case vote == nil && old != nil:
		t.set(key, nil, `DELETE FROM votes WHERE org_id = $1 AND proposal_id = $2 AND voter = $3`, p.Org, p.ID, by.Ref())
	case vote != nil && (old == nil || *old != *vote):
		t.set(key, &setVotes, setVotes.upToValues+setVotes.rest,
			p.Org, p.ID, by.Ref(), string(vote.Choice), vote.Comment, micros(vote.VotedAt))
	}
}

// entryData holds the fields of a history entry that have no column.
type entryData struct {
	From    proposal.Status        `json:",omitempty"`
	To      proposal.Status        `json:",omitempty"`
	Note    string                 `json:",omitempty"`
	Choice  proposal.Choice        `json:",omitempty"`
	Comment string                 `json:",omitempty"`
	Changes []proposal.FieldChange `json:",omitempty"`

	DuplicateOf string `json:",omitempty"`
}

func (t *tx) insertEntry(p *proposal.Proposal, e proposal.Entry) error {
	data, err := json.Marshal(entryData{e.From, e.To, e.Note, e.Choice, e.Comment, e.Changes, e.DuplicateOf})
	if err != nil {
		return fmt.Errorf("encode a history entry: %w", err)
	}
	t.insert(`INSERT INTO history (org_id, proposal_id, seq, at, actor, kind, data)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		p.Org, p.ID, e.Seq, micros(e.At), e.Actor, string(e.Kind), string(data))
	return nil
}

// Get implements proposal.Store.
func (s Proposals) Get(ctx context.Context, org, id string, viewer identity.Principal) (proposal.Current, error) {
	return current(ctx, s.eng, org, id, viewer)
}

// current reads a proposal and the viewer's vote on it.
func current(ctx context.Context, r reader, org, id string, viewer identity.Principal) (proposal.Current, error) {
	var (
		cur     = proposal.Current{Proposal: proposal.Proposal{Org: org}}
		p       = &cur.Proposal
		vote    voteRow
		found   bool
		columns = []any{&p.FollowupStatus, &vote.voter, &vote.choice, &vote.comment, &vote.at}
	)
	err := each(ctx, r, func(rs rows) error {
		found = true
		return scanRecord(rs, p, columns...)
	}, getProposal, org, id, viewer.Ref())
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	if vote.voter != "" {
		cur.Vote = vote.vote()
	}
	return cur, err
}

// getProposal reads a proposal, its follow-up's status and a voter's vote at once. Every look-up
// is by a whole key, so the plan does not depend on statistics.
const getProposal = `SELECT ` + recordColumns + `,
	coalesce((SELECT f.status FROM followups f WHERE f.org_id = $1 AND f.id = p.followup_id), ''),
		coalesce(v.voter, ''), coalesce(v.choice, ''), coalesce(v.comment, ''), coalesce(v.voted_at, 0)
		FROM proposals p
	LEFT JOIN votes v ON v.org_id = $1 AND v.proposal_id = $2 AND v.voter = $3
	WHERE p.org_id = $1 AND p.id = $2`

// voteRow receives a row of votes.
type voteRow struct {
	voter, choice, comment string
	at                     int64
}

func (r *voteRow) vote() *proposal.Vote {
	return &proposal.Vote{
		Voter: r.voter, Choice: proposal.Choice(r.choice), Comment: r.comment, VotedAt: fromMicros(r.at),
	}
}

const recordColumns = `p.id, p.status, p.category, p.priority, p.submitted_by, p.submitted_at, p.updated_at,
	p.votes_for, p.votes_against, p.agents_for, p.agents_against, p.version, p.text_version, p.followup_id, p.title,
	p.problem, p.suggested_fix, p.resolution_note, p.duplicate_of, p.fingerprint, p.evidence`

// scanRecord reads recordColumns, except for the org, and the columns after them.
func scanRecord(r rows, p *proposal.Proposal, more ...any) error {
	var status, category string
	var rank int
	var submitted, updated int64
	err := r.Scan(append([]any{
		&p.ID, &status, &category, &rank, &p.SubmittedBy, &submitted, &updated, &p.VotesFor, &p.VotesAgainst,
		&p.AgentsFor, &p.AgentsAgainst, &p.Version, &p.TextVersion, &p.FollowupID, &p.Title, &p.Problem,
		&p.SuggestedFix, &p.ResolutionNote, &p.DuplicateOf, &p.Fingerprint, &p.Evidence,
	}, more...)...)
	if err != nil {
		return err
	}
	p.Status, p.Category, p.Priority = proposal.Status(status), proposal.Category(category), proposal.Priorities[rank]
	p.SubmittedAt, p.UpdatedAt = fromMicros(submitted), fromMicros(updated)
	return nil
}

// Votes implements proposal.Store.
func (s Proposals) Votes(ctx context.Context, org, id string, offset int64, limit int) ([]proposal.Vote, int64, error) {
	var total int64
	if _, err := one(ctx, s.eng, []any{&total},
		`SELECT votes_for + votes_against FROM proposals WHERE org_id = $1 AND id = $2`, org, id); err != nil {
		return nil, 0, err
	}
	votes := []proposal.Vote{}
	// The votes are sorted on demand, so the cost grows with their number.
	err := s.slowIf(ctx, total > manyRows, org, func(ctx context.Context, r reader) error {
		return each(ctx, r, func(r rows) error {
			var v proposal.Vote
			var choice string
			var at int64
			if err := r.Scan(&v.Voter, &choice, &v.Comment, &at); err != nil {
				return err
			}
			v.Choice, v.VotedAt = proposal.Choice(choice), fromMicros(at)
			votes = append(votes, v)
			return nil
		}, `SELECT voter, choice, comment, voted_at FROM votes WHERE org_id = $1 AND proposal_id = $2
			ORDER BY voted_at, voter LIMIT $3 OFFSET $4`, org, id, limit, offset)
	})
	return votes, total, err
}

func scanEntry(r rows) (e proposal.Entry, err error) {
	var kind, text string
	var at int64
	if err := r.Scan(&e.Seq, &at, &e.Actor, &kind, &text); err != nil {
		return e, err
	}
	var d entryData
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return e, fmt.Errorf("decode a history entry: %w", err)
	}
	e.At, e.Kind = fromMicros(at), proposal.EntryKind(kind)
	e.From, e.To, e.Note, e.Choice, e.Comment, e.Changes = d.From, d.To, d.Note, d.Choice, d.Comment, d.Changes
	e.DuplicateOf = d.DuplicateOf
	return e, nil
}

// History implements proposal.Store.
func (s Proposals) History(
	ctx context.Context, org, id string, offset int64, limit int,
) ([]proposal.Entry, int64, error) {
	var total, submitted int64
	first := proposal.Entry{Seq: 1, Kind: proposal.Submitted}
	if _, err := one(ctx, s.eng, []any{&total, &submitted, &first.Actor, (*string)(&first.To)},
		`SELECT version, submitted_at, submitted_by, submitted_as FROM proposals
		WHERE org_id = $1 AND id = $2`, org, id); err != nil {
		return nil, 0, err
	}
	entries := []proposal.Entry{}
	if offset == 0 && total > 0 && limit > 0 {
		first.At = fromMicros(submitted)
		entries = append(entries, first)
	}
	const page = `FROM history WHERE org_id = $1 AND proposal_id = $2 AND seq > $3 ORDER BY seq LIMIT $4`
	args := []any{org, id, max(offset, 1), limit - len(entries)} // seq has no gaps, so it is the offset
	wide, err := s.wide(ctx, `SELECT octet_length(data) AS n `+page, args...)
	if err != nil {
		return nil, 0, err
	}
	err = s.slowIf(ctx, wide, org, func(ctx context.Context, r reader) error {
		return each(ctx, r, func(r rows) error {
			e, err := scanEntry(r)
			entries = append(entries, e)
			return err
		}, `SELECT seq, at, actor, kind, data `+page, args...)
	})
	return entries, total, err
}

// DataVersion implements proposal.Store.
func (s Proposals) DataVersion(ctx context.Context, org string) (uint64, error) {
	return s.eng.dataVersion(ctx, org)
}

// SeenVersion implements proposal.Store.
func (s Proposals) SeenVersion(org string) proposal.SeenVersion {
	return s.eng.seenVersion(org)
}
