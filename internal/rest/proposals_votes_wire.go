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

// TransformSchema takes lists and limits from the domain.
func (Ballot) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "vote", oneOf(proposal.Choices))
	property(s, "comment", length(0, proposal.MaxComment), matching(prosePattern()))
	return s
}

// VoteResult is what a vote led to.
type VoteResult struct {
	ProposalID   string `json:"proposal_id" doc:"The proposal voted on." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	Vote         string `json:"vote" doc:"The caller's vote from now on." example:"for"`
	Comment      string `json:"comment" doc:"The comment; empty without one." example:"Lost two deliveries last week."`
	VotesFor     int    `json:"votes_for" doc:"How many are for it now." example:"3"`
	VotesAgainst int    `json:"votes_against" doc:"How many are against it now." example:"1"`
	VotedAt      string `json:"voted_at" format:"date-time" doc:"When the vote was cast." example:"2026-03-02T10:00:00.000000Z"`
	Replaced     bool   `json:"replaced" doc:"Whether the caller had voted before." example:"false"`
}

// TransformSchema takes the list from the domain.
func (VoteResult) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "vote", oneOf(proposal.Choices))
	return s
}

// VoteWithdrawal is what taking a vote back led to.
type VoteWithdrawal struct {
	ProposalID   string `json:"proposal_id" doc:"The proposal." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	VotesFor     int    `json:"votes_for" doc:"How many are for it now." example:"2"`
	VotesAgainst int    `json:"votes_against" doc:"How many are against it now." example:"1"`
}

// Vote is one line of the list of votes.
type Vote struct {
	Voter   string `json:"voter" doc:"Who voted." example:"user:ada"`
	Vote    string `json:"vote" doc:"For or against." example:"for"`
	Comment string `json:"comment" doc:"Why; empty without a comment." example:"Lost two deliveries last week."`
	VotedAt string `json:"voted_at" format:"date-time" doc:"When." example:"2026-03-02T10:00:00.000000Z"`
}

// TransformSchema takes the list from the domain.
func (Vote) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "vote", oneOf(proposal.Choices))
	return s
}

// VoteList is one page of votes.
type VoteList struct {
	Votes []Vote `json:"votes" nullable:"false" doc:"The page, oldest first."`
	Total int64  `json:"total" doc:"How many votes there are." example:"4"`
	Page  int    `json:"page" doc:"The number of this page." example:"1"`
}

// HistoryEntry is one line of a proposal's history. What does not apply to its
// kind is left out.
type HistoryEntry struct {
	Seq   int64  `json:"seq" doc:"Its number; 1 is the submission." example:"2"`
	At    string `json:"at" format:"date-time" doc:"When." example:"2026-03-02T10:00:00.000000Z"`
	Actor string `json:"actor" doc:"Who did it." example:"user:ada"`
	Kind  string `json:"kind" doc:"What was done." example:"voted"`
	From  string `json:"from,omitempty" doc:"The status before."`
	To    string `json:"to,omitempty" doc:"The status after."`
	Note  string `json:"note,omitempty" doc:"The resolution note."`

	DuplicateOf string `json:"duplicate_of,omitempty" doc:"The proposal that it was rejected for as a duplicate."`

	Vote    string        `json:"vote,omitempty" doc:"The vote cast or taken back." example:"for"`
	Comment string        `json:"comment,omitempty" doc:"The comment on the vote."`
	Changes []FieldChange `json:"changes,omitempty" nullable:"false" doc:"The edited fields."`
}

// TransformSchema takes the lists from the domain.
func (HistoryEntry) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "kind", oneOf([]proposal.EntryKind{
		proposal.Submitted, proposal.Edited, proposal.StatusChanged, proposal.Voted, proposal.VoteWithdrawn,
	}))
	property(s, "from", oneOf(proposal.Statuses))
	property(s, "to", oneOf(proposal.Statuses))
	property(s, "vote", oneOf(proposal.Choices))
	return s
}

// FieldChange is one edited field.
type FieldChange struct {
	Field string `json:"field" doc:"The field." example:"title"`
	From  string `json:"from" doc:"Its old value."`
	To    string `json:"to" doc:"Its new value."`
}

// History is one page of a proposal's history.
type History struct {
	History []HistoryEntry `json:"history" nullable:"false" doc:"The page, oldest first."`
	Total   int64          `json:"total" doc:"How many entries there are." example:"7"`
	Page    int            `json:"page" doc:"The number of this page." example:"1"`
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
