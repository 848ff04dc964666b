package client

import (
	"context"
	"iter"
	"time"
)

// Choice is for or against.
type Choice string

// The choices.
const (
	For     Choice = "for"
	Against Choice = "against"
)

// Ballot is a vote to cast.
type Ballot struct {
	Vote    Choice `json:"vote"`
	Comment string `json:"comment,omitempty"`
}

// VoteResult is a vote that was cast, with the tally after it.
type VoteResult struct {
	ProposalID   string    `json:"proposal_id"`
	Vote         Choice    `json:"vote"`
	Comment      string    `json:"comment"`
	VotesFor     int       `json:"votes_for"`
	VotesAgainst int       `json:"votes_against"`
	VotedAt      time.Time `json:"voted_at"`
	Replaced     bool      `json:"replaced"` // an earlier vote of the same voter
}

// Vote votes on an open proposal. A second vote replaces the first.
func (s *ProposalsService) Vote(ctx context.Context, id string, b Ballot, opts ...Option) (*VoteResult, error) {
	return fetch[VoteResult](ctx, s.c, post(b, "proposals", id, "vote"), opts)
}

// VoteWithdrawal is the tally after a vote was withdrawn.
type VoteWithdrawal struct {
	ProposalID   string `json:"proposal_id"`
	VotesFor     int    `json:"votes_for"`
	VotesAgainst int    `json:"votes_against"`
}

// WithdrawVote withdraws the caller's vote.
func (s *ProposalsService) WithdrawVote(ctx context.Context, id string, opts ...Option) (*VoteWithdrawal, error) {
	return fetch[VoteWithdrawal](ctx, s.c, remove(false, "proposals", id, "vote"), opts)
}

// Vote is one vote on a proposal.
type Vote struct {
	Voter   string    `json:"voter"`
	Vote    Choice    `json:"vote"`
	Comment string    `json:"comment"`
	VotedAt time.Time `json:"voted_at"`
}

func (s *ProposalsService) votes(id string, p PageParams) listing[Vote] {
	r := read("proposals", id, "votes")
	r.query = values(p)
	return listing[Vote]{c: s.c, call: r, member: "votes", paging: byNumber}
}

// Votes returns one page of the votes on a proposal.
func (s *ProposalsService) Votes(ctx context.Context, id string, p PageParams, opts ...Option) (*Page[Vote], error) {
	return s.votes(id, p).page(ctx, opts)
}

// AllVotes iterates over all votes on a proposal.
func (s *ProposalsService) AllVotes(ctx context.Context, id string, opts ...Option) iter.Seq2[Vote, error] {
	return s.votes(id, PageParams{}).all(ctx, opts)
}
