package rest

import (
	"context"
	"net/http"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

const votePath = proposalPath + "/vote"

func (a *api) registerVotes() {
	register(a, operation{
		id: "cast-vote", method: http.MethodPost, path: votePath, tag: tagVotes,
		summary: "Vote on a proposal", action: identity.VoteOnProposal, validID: proposal.ValidID,
		errors: []int{http.StatusConflict},
		description: "Casts or replaces the caller's vote on an open proposal. Requires svc:tasks:write; services cannot " +
			"vote.",
	}, a.vote)
	register(a, operation{
		id: "withdraw-vote", method: http.MethodDelete, path: votePath, tag: tagVotes,
		summary: "Withdraw your vote", action: identity.VoteOnProposal, validID: proposal.ValidID,
		errors:      []int{http.StatusConflict},
		description: "404 if the caller has no vote. Requires svc:tasks:write.",
	}, a.withdrawVote)
	register(a, operation{
		id: "list-votes", method: http.MethodGet, path: proposalPath + "/votes", tag: tagVotes,
		summary: "List the votes on a proposal", action: identity.ReadProposal, validID: proposal.ValidID,
		description: "The current vote of each voter, oldest first. Requires svc:tasks:read.",
	}, a.listVotes)
}

type voteInput struct {
	ProposalPath
	OnceHeader
	Body payload[Ballot]
}

type voteOutput struct {
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     VoteResult
}

func (a *api) vote(ctx context.Context, c *call, in *voteInput) (*voteOutput, error) {
	b := &in.Body.value
	cmd := proposal.Ballot{Choice: proposal.Choice(b.Vote), Comment: deref(b.Comment)}
	if err := in.Body.check(cmd.Validate()); err != nil {
		return nil, err
	}
	var err error
	if cmd.Once, err = c.once(b); err != nil {
		return nil, err
	}
	done, err := a.proposals.Vote(ctx, c.Access, in.ID, cmd)
	if err != nil {
		return nil, err
	}
	p, v := &done.Proposal, done.Vote
	return &voteOutput{Replayed: replayed(done.Replayed), Body: VoteResult{
		ProposalID: p.ID, Vote: string(v.Choice), Comment: v.Comment,
		VotesFor: p.VotesFor, VotesAgainst: p.VotesAgainst, VotedAt: stamp(v.VotedAt), Replaced: done.Replaced,
	}}, nil
}

type withdrawVoteOutput struct {
	Body VoteWithdrawal
}

func (a *api) withdrawVote(ctx context.Context, c *call, in *ProposalPath) (*withdrawVoteOutput, error) {
	done, err := a.proposals.WithdrawVote(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	p := &done.Proposal
	return &withdrawVoteOutput{
		VoteWithdrawal{ProposalID: p.ID, VotesFor: p.VotesFor, VotesAgainst: p.VotesAgainst},
	}, nil
}

// pageInput selects a page of the votes or the history of a proposal.
type pageInput struct {
	ProposalPath
	Page  pageNumber `query:"page" doc:"Page number; default 1."`
	Limit pageLimit  `query:"limit" doc:"Page size."`
}

type listVotesOutput struct {
	Link []string `header:"Link" doc:"Links to the first, previous and next page (RFC 8288)."`
	Body VoteList
}

func (a *api) listVotes(ctx context.Context, c *call, in *pageInput) (*listVotesOutput, error) {
	paging := proposal.Paging{Page: int(in.Page), Limit: int(in.Limit)}
	votes, total, err := a.proposals.Votes(ctx, c.Access, in.ID, &paging)
	if err != nil {
		return nil, err
	}
	out := &listVotesOutput{
		Link: links(c.request.URL, numbered(paging.Page, paging.Limit, len(votes), total)),
		Body: VoteList{Votes: make([]Vote, len(votes)), Total: total, Page: paging.Page},
	}
	for i, v := range votes {
		out.Body.Votes[i] = Vote{Voter: v.Voter, Vote: string(v.Choice), Comment: v.Comment, VotedAt: stamp(v.VotedAt)}
	}
	return out, nil
}

type listHistoryOutput struct {
	Link []string `header:"Link" doc:"Links to the first, previous and next page (RFC 8288)."`
	Body History
}

func (a *api) listHistory(ctx context.Context, c *call, in *pageInput) (*listHistoryOutput, error) {
	paging := proposal.Paging{Page: int(in.Page), Limit: int(in.Limit)}
	entries, total, err := a.proposals.History(ctx, c.Access, in.ID, &paging)
	if err != nil {
		return nil, err
	}
	out := &listHistoryOutput{
		Link: links(c.request.URL, numbered(paging.Page, paging.Limit, len(entries), total)),
		Body: History{History: make([]HistoryEntry, len(entries)), Total: total, Page: paging.Page},
	}
	for i := range entries {
		out.Body.History[i] = entryOf(&entries[i])
	}
	return out, nil
}
