package mcp

import (
	"context"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

type submitIn struct {
	Title        string  `json:"title" jsonschema:"One line that names the improvement."`
	Category     string  `json:"category"`
	Problem      string  `json:"problem" jsonschema:"What is wrong today, with what you saw of it."`
	SuggestedFix string  `json:"suggested_fix" jsonschema:"What to do about it."`
	Priority     *string `json:"priority,omitempty" jsonschema:"How soon it should be reviewed; high ones come first."`
}

type listIn struct {
	Status      *string `json:"status,omitempty" jsonschema:"Only this status."`
	Category    *string `json:"category,omitempty" jsonschema:"Only this category."`
	Priority    *string `json:"priority,omitempty" jsonschema:"Only this priority."`
	SubmittedBy *string `json:"submitted_by,omitempty" jsonschema:"Only proposals of this user or agent, such as agent:scout."`
	Q           *string `json:"q,omitempty" jsonschema:"Words that must all occur, the last one as a prefix."`
	Sort        *string `json:"sort,omitempty" jsonschema:"review: priority, then newest; the default without q. votes: net votes (for minus against). relevance: the default with q, and only with it."`
	Limit       *int    `json:"limit,omitempty" jsonschema:"Results on a page."`
	Cursor      *string `json:"cursor,omitempty" jsonschema:"The next_cursor of the previous page; filters and sort must be the same."`
}

type idIn struct {
	ID string `json:"id" jsonschema:"The proposal's id, such as prop-01k5x8r2m4v7c9w3q6z1t0h8ye."`
}

type voteIn struct {
	ID      string  `json:"id" jsonschema:"The proposal's id."`
	Vote    string  `json:"vote" jsonschema:"Whether you are for or against it."`
	Comment *string `json:"comment,omitempty" jsonschema:"Why."`
}

// record is a whole proposal, as in the REST API.
type record struct {
	ID                 string   `json:"id"`
	Title              string   `json:"title"`
	Category           string   `json:"category"`
	Problem            string   `json:"problem"`
	SuggestedFix       string   `json:"suggested_fix"`
	Priority           string   `json:"priority"`
	Status             string   `json:"status"`
	SubmittedBy        string   `json:"submitted_by"`
	SubmittedAt        string   `json:"submitted_at"`
	UpdatedAt          string   `json:"updated_at"`
	VotesFor           int      `json:"votes_for"`
	VotesAgainst       int      `json:"votes_against"`
	ResolutionNote     string   `json:"resolution_note"`
	MyVote             *string  `json:"my_vote"`
	AllowedTransitions []string `json:"allowed_transitions"`
	FollowupID         *string  `json:"followup_id"`
	FollowupStatus     *string  `json:"followup_status"`
	Resolvable         bool     `json:"resolvable"`
}

type item struct {
	ID           string  `json:"id"`
	Title        string  `json:"title"`
	Category     string  `json:"category"`
	Status       string  `json:"status"`
	Priority     string  `json:"priority"`
	SubmittedBy  string  `json:"submitted_by"`
	SubmittedAt  string  `json:"submitted_at"`
	VotesFor     int     `json:"votes_for"`
	VotesAgainst int     `json:"votes_against"`
	MyVote       *string `json:"my_vote"`
}

type listOut struct {
	Proposals  []item  `json:"proposals"`
	Total      int64   `json:"total" jsonschema:"How many proposals match; with q at most 10000."`
	NextCursor *string `json:"next_cursor" jsonschema:"Continues the list as the argument cursor; null on the last page."`

	TotalExact    *bool `json:"total_exact,omitempty" jsonschema:"Only with q. false: more proposals match than total."`
	IndexComplete *bool `json:"index_complete,omitempty" jsonschema:"Only with q. false: some proposals were not searched yet; try again later."`
}

type voteOut struct {
	ProposalID   string  `json:"proposal_id"`
	Vote         *string `json:"vote" jsonschema:"Your vote now; null: none."`
	VotesFor     int     `json:"votes_for"`
	VotesAgainst int     `json:"votes_against"`
	Replaced     bool    `json:"replaced" jsonschema:"Whether you had voted before."`
}

func (s *server) addProposals(m *sdk.Server) {
	add(s, m, tool{
		name: "submit_proposal", title: "Submit a proposal", action: identity.SubmitProposal,
		description: "Files an improvement proposal in your org, where members vote on it and an admin decides. " +
			"Needs the scope svc:tasks:write; services cannot submit. " +
			"A repeat files a second proposal: look with list_proposals first. " +
			"For something that keeps getting in your way, report_friction is better.",
		limits: func(s *jsonschema.Schema) {
			length(s, "title", 1, proposal.MaxTitle)
			oneOf(s, "category", proposal.Categories)
			s.Properties["category"].Description = "What the proposal is about. " +
				"reliability: error handling, retries. performance: latency, resources. " +
				"security: access, secrets. process: workflow, handoffs. feature: new capabilities. " +
				"documentation: missing or outdated docs."
			length(s, "problem", 1, proposal.MaxText)
			length(s, "suggested_fix", 1, proposal.MaxText)
			oneOf(s, "priority", proposal.Priorities)
			byDefault(s, "priority", `"normal"`)
		},
	}, s.submitProposal)
	add(s, m, tool{
		name: "list_proposals", title: "List proposals", action: identity.ListProposals,
		effect: effect{readOnly: true, idempotent: true},
		description: "Lists the proposals of your org. By default the open ones, " +
			"the most urgent first, then the newest. Changes nothing. Needs the scope svc:tasks:read.",
		limits: func(s *jsonschema.Schema) {
			oneOf(s, "status", proposal.Statuses, proposal.All)
			byDefault(s, "status", `"open"`)
			oneOf(s, "category", proposal.Categories, proposal.All)
			oneOf(s, "priority", proposal.Priorities, proposal.All)
			length(s, "submitted_by", 1, proposal.MaxSearch)
			length(s, "q", 1, proposal.MaxSearch)
			oneOf(s, "sort", proposal.SearchSorts)
			between(s, "limit", 1, proposal.MaxLimit)
			byDefault(s, "limit", "20")
		},
	}, s.listProposals)
	add(s, m, tool{
		name: "get_proposal", title: "Get a proposal", action: identity.ReadProposal,
		effect: effect{readOnly: true, idempotent: true},
		description: "Returns one proposal of your org in full, with your own vote. Changes nothing. " +
			"Needs the scope svc:tasks:read.",
	}, s.getProposal)
	add(s, m, tool{
		name: "vote_on_proposal", title: "Vote on a proposal", action: identity.VoteOnProposal,
		effect: effect{idempotent: true, destructive: true},
		description: "Casts your vote on an open proposal. Needs the scope svc:tasks:write; services cannot vote. " +
			"You have one vote, whichever way you cast it: a repeat replaces it.",
		limits: func(s *jsonschema.Schema) {
			oneOf(s, "vote", proposal.Choices)
			length(s, "comment", 0, proposal.MaxComment)
		},
	}, s.vote)
	add(s, m, tool{
		name: "withdraw_vote", title: "Withdraw a vote", action: identity.VoteOnProposal,
		effect: effect{idempotent: true, destructive: true},
		description: "Withdraws your vote on an open proposal. Needs the scope svc:tasks:write. " +
			"A repeat finds no vote and fails, which changes nothing.",
	}, s.withdrawVote)
}

func (s *server) submitProposal(ctx context.Context, a *arguments[submitIn]) (*record, error) {
	cmd := proposal.Submission{
		Title: a.in.Title, Category: proposal.Category(a.in.Category), Problem: a.in.Problem,
		SuggestedFix: a.in.SuggestedFix, Priority: proposal.Priority(deref(a.in.Priority)),
	}
	a.notEmpty("priority", a.in.Priority)
	if err := a.check(cmd.Validate()); err != nil {
		return nil, err
	}
	done, err := s.Proposals.Submit(ctx, a.access, cmd)
	if err != nil {
		return nil, err
	}
	return recordOf(&done.Proposal, done.Vote), nil
}

func (s *server) listProposals(ctx context.Context, a *arguments[listIn]) (*listOut, error) {
	for name, v := range map[string]*string{
		"status": a.in.Status, "category": a.in.Category, "priority": a.in.Priority,
		"submitted_by": a.in.SubmittedBy, "q": a.in.Q, "sort": a.in.Sort, "cursor": a.in.Cursor,
	} {
		a.notEmpty(name, v)
	}
	if a.in.Limit != nil && *a.in.Limit < 1 {
		*a.in.Limit = -1 // which the domain refuses; 0 would be its default
	}
	if err := a.check(nil); err != nil {
		return nil, err
	}
	page, err := s.Proposals.List(ctx, a.access, proposal.Query{
		Status: proposal.Status(deref(a.in.Status)), Category: proposal.Category(deref(a.in.Category)),
		Priority: proposal.Priority(deref(a.in.Priority)), SubmittedBy: deref(a.in.SubmittedBy),
		Text: deref(a.in.Q), Sort: proposal.Sort(deref(a.in.Sort)),
		Limit: deref(a.in.Limit), Cursor: deref(a.in.Cursor),
	})
	if err != nil {
		return nil, err
	}
	out := &listOut{Proposals: make([]item, len(page.Items)), Total: page.Total, NextCursor: orNull(page.Next)}
	if page.Search {
		out.TotalExact, out.IndexComplete = &page.Exact, &page.Complete
	}
	for i := range page.Items {
		it := &page.Items[i]
		out.Proposals[i] = item{
			ID: it.ID, Title: it.Title, Category: string(it.Category), Status: string(it.Status),
			Priority: string(it.Priority), SubmittedBy: it.SubmittedBy, SubmittedAt: stamp(it.SubmittedAt),
			VotesFor: it.VotesFor, VotesAgainst: it.VotesAgainst, MyVote: orNull(string(it.MyVote)),
		}
	}
	return out, nil
}

func (s *server) getProposal(ctx context.Context, a *arguments[idIn]) (*record, error) {
	if err := a.check(nil); err != nil {
		return nil, err
	}
	cur, err := s.Proposals.Get(ctx, a.access, a.in.ID)
	if err != nil {
		return nil, err
	}
	return recordOf(&cur.Proposal, cur.Vote), nil
}

func (s *server) vote(ctx context.Context, a *arguments[voteIn]) (*voteOut, error) {
	cmd := proposal.Ballot{Choice: proposal.Choice(a.in.Vote), Comment: deref(a.in.Comment)}
	if err := a.check(cmd.Validate()); err != nil {
		return nil, err
	}
	done, err := s.Proposals.Vote(ctx, a.access, a.in.ID, cmd)
	if err != nil {
		return nil, err
	}
	return voteOf(&done), nil
}

func (s *server) withdrawVote(ctx context.Context, a *arguments[idIn]) (*voteOut, error) {
	if err := a.check(nil); err != nil {
		return nil, err
	}
	done, err := s.Proposals.WithdrawVote(ctx, a.access, a.in.ID)
	if err != nil {
		return nil, err
	}
	return voteOf(&done), nil
}

func voteOf(o *proposal.Outcome) *voteOut {
	out := &voteOut{
		ProposalID: o.Proposal.ID, VotesFor: o.Proposal.VotesFor, VotesAgainst: o.Proposal.VotesAgainst,
		Replaced: o.Replaced,
	}
	if o.Vote != nil {
		out.Vote = orNull(string(o.Vote.Choice))
	}
	return out
}

func recordOf(p *proposal.Proposal, vote *proposal.Vote) *record {
	r := &record{
		ID: p.ID, Title: p.Title, Category: string(p.Category), Problem: p.Problem, SuggestedFix: p.SuggestedFix,
		Priority: string(p.Priority), Status: string(p.Status), SubmittedBy: p.SubmittedBy,
		SubmittedAt: stamp(p.SubmittedAt), UpdatedAt: stamp(p.UpdatedAt), VotesFor: p.VotesFor,
		VotesAgainst: p.VotesAgainst, ResolutionNote: p.ResolutionNote, AllowedTransitions: []string{},
		FollowupID: orNull(p.FollowupID), FollowupStatus: orNull(p.FollowupStatus), Resolvable: p.Resolvable(),
	}
	for _, next := range p.Status.Next() {
		r.AllowedTransitions = append(r.AllowedTransitions, string(next))
	}
	if vote != nil {
		r.MyVote = orNull(string(vote.Choice))
	}
	return r
}
