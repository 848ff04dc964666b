package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/proposal"
)

// Ballot is the body of a vote.
type Ballot struct {
	Vote    string  `json:"vote" doc:"For or against." example:"for"`
	Comment *string `json:"comment,omitempty" doc:"Why." example:"Lost two deliveries last week."`
}

// TransformSchema adds the enumeration and limits of the domain.
func (Ballot) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "vote", oneOf(proposal.Choices))
	property(s, "comment", length(0, proposal.MaxComment), matching(prosePattern()))
	return s
}

// VoteResult is the result of a vote.
type VoteResult struct {
	ProposalID   string `json:"proposal_id" doc:"Proposal id." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	Vote         string `json:"vote" doc:"The caller's current vote." example:"for"`
	Comment      string `json:"comment" doc:"Comment; may be empty." example:"Lost two deliveries last week."`
	VotesFor     int    `json:"votes_for" doc:"Number of votes for it." example:"3"`
	VotesAgainst int    `json:"votes_against" doc:"Number of votes against it." example:"1"`
	VotedAt      string `json:"voted_at" format:"date-time" doc:"When the vote was cast."`
	Replaced     bool   `json:"replaced" doc:"Whether it replaced an earlier vote of the caller." example:"false"`
}

// TransformSchema adds the enumeration of the domain.
func (VoteResult) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "vote", oneOf(proposal.Choices))
	return s
}

// VoteWithdrawal is the result of withdrawing a vote.
type VoteWithdrawal struct {
	ProposalID   string `json:"proposal_id" doc:"Proposal id." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	VotesFor     int    `json:"votes_for" doc:"Number of votes for it." example:"2"`
	VotesAgainst int    `json:"votes_against" doc:"Number of votes against it." example:"1"`
}

// Vote is an entry of the list of votes.
type Vote struct {
	Voter   string `json:"voter" doc:"Who voted." example:"user:ada"`
	Vote    string `json:"vote" doc:"For or against." example:"for"`
	Comment string `json:"comment" doc:"Comment; may be empty." example:"Lost two deliveries last week."`
	VotedAt string `json:"voted_at" format:"date-time" doc:"When the vote was cast."`
}

// TransformSchema adds the enumeration of the domain.
func (Vote) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "vote", oneOf(proposal.Choices))
	return s
}

// VoteList is a page of votes.
type VoteList struct {
	Votes []Vote `json:"votes" nullable:"false" doc:"Votes, oldest first."`
	Total int64  `json:"total" doc:"Number of votes." example:"4"`
	Page  int    `json:"page" doc:"Page number." example:"1"`
}

// HistoryEntry is an entry of a proposal's history. Fields that do not apply to its kind are
// omitted.
type HistoryEntry struct {
	Seq   int64  `json:"seq" doc:"Sequence number; 1 is the submission." example:"2"`
	At    string `json:"at" format:"date-time" doc:"When it happened."`
	Actor string `json:"actor" doc:"Who did it." example:"user:ada"`
	Kind  string `json:"kind" doc:"What happened." example:"voted"`
	From  string `json:"from,omitempty" doc:"Previous status."`
	To    string `json:"to,omitempty" doc:"New status."`
	Note  string `json:"note,omitempty" doc:"Resolution note."`

	DuplicateOf string `json:"duplicate_of,omitempty" doc:"Proposal of which it was rejected as a duplicate."`

	Vote    string        `json:"vote,omitempty" doc:"Vote that was cast or withdrawn." example:"for"`
	Comment string        `json:"comment,omitempty" doc:"Comment on the vote."`
	Changes []FieldChange `json:"changes,omitempty" nullable:"false" doc:"Edited fields."`
}

// TransformSchema adds the enumerations of the domain.
func (HistoryEntry) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "kind", oneOf([]proposal.EntryKind{
		proposal.Submitted, proposal.Edited, proposal.StatusChanged, proposal.Voted, proposal.VoteWithdrawn,
	}))
	property(s, "from", oneOf(proposal.Statuses))
	property(s, "to", oneOf(proposal.Statuses))
	property(s, "vote", oneOf(proposal.Choices))
	return s
}

// FieldChange is an edited field.
type FieldChange struct {
	Field string `json:"field" doc:"Name of the field." example:"title"`
	From  string `json:"from" doc:"Previous value."`
	To    string `json:"to" doc:"New value."`
}

// History is a page of a proposal's history.
type History struct {
	History []HistoryEntry `json:"history" nullable:"false" doc:"Entries, oldest first."`
	Total   int64          `json:"total" doc:"Number of entries." example:"7"`
	Page    int            `json:"page" doc:"Page number." example:"1"`
}

func entryOf(e *proposal.Entry) HistoryEntry {
	out := HistoryEntry{
		Seq: e.Seq, At: stamp(e.At), Actor: e.Actor, Kind: string(e.Kind), From: string(e.From), To: string(e.To),
		Note: e.Note, Vote: string(e.Choice), Comment: e.Comment, DuplicateOf: e.DuplicateOf,
	}
	for _, c := range e.Changes {
		out.Changes = append(out.Changes, FieldChange{Field: c.Field, From: c.From, To: c.To})
	}
	return out
}
