package rest

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

func (a *api) registerTriage() {
	register(a, operation{
		id: "count-proposals", method: http.MethodGet, path: proposalsPath + "/counts", tag: tagProposals,
		summary: "Count proposals by status", action: identity.ListProposals,
		description: "The number of proposals per status that match the filters. Drafts are those that the caller may see. " +
			"Requires svc:tasks:read.",
	}, a.countProposals)
	register(a, operation{
		id: "group-proposals", method: http.MethodGet, path: proposalsPath + "/groups", tag: tagProposals,
		summary: "Group proposals", action: identity.ListProposals,
		description: "The 100 largest groups of proposals, largest first; by default of open ones. It scans all matches: " +
			"503 search.busy if that takes too long. Requires svc:tasks:read.",
	}, a.groupProposals)
	register(a, operation{
		id: "find-similar-proposals", method: http.MethodGet, path: proposalsPath + "/similar", tag: tagProposals,
		summary: "Find proposals similar to a text", action: identity.ListProposals,
		description: "Likely duplicates of a text, most similar first: open, approved and rejected proposals, and the " +
			"caller's own drafts, that share significant words. Requires svc:tasks:read.",
	}, a.similarToText)
	register(a, operation{
		id: "list-similar-proposals", method: http.MethodGet, path: proposalPath + "/similar", tag: tagProposals,
		summary: "List proposals similar to a proposal", action: identity.ReadProposal, validID: proposal.ValidID,
		description: "Likely duplicates of a proposal, most similar first. Requires svc:tasks:read.",
	}, a.similarToProposal)
	register(a, operation{
		id: "decide-proposals", method: http.MethodPost, path: proposalsPath + "/decisions", tag: tagProposals,
		summary: "Decide several proposals", action: identity.ResolveProposal,
		description: "Applies one decision to up to 100 proposals, independently of each other. Returns 200 with one " +
			"result per proposal, in order; some of them may have failed. Requires svc:admin:admin.",
	}, a.decideProposals)
	// The patterns of a single proposal also match these paths.
	for _, name := range []string{"counts", "groups", "similar"} {
		a.router.RefuseMethods(proposalsPath+"/"+name, http.MethodPatch)
	}
	a.router.RefuseMethods(proposalsPath+"/decisions", http.MethodGet, http.MethodPatch)
}

type countProposalsInput struct {
	OrgPath
	ProposalFilters
}

type countProposalsOutput struct{ Body ProposalCounts }

func (a *api) countProposals(ctx context.Context, c *call, in *countProposalsInput) (*countProposalsOutput, error) {
	counts, err := a.proposals.Counts(ctx, c.Access, in.query())
	if err != nil {
		return nil, err
	}
	return &countProposalsOutput{Body: countsOf(counts)}, nil
}

type groupBy string

func (groupBy) Schema(huma.Registry) *huma.Schema { return stringSchema(oneOf(proposal.GroupBys)) }

type groupProposalsInput struct {
	OrgPath
	By     groupBy      `query:"by" required:"true" doc:"Property to group by."`
	Status statusFilter `query:"status" doc:"Filter by status."`
	ProposalFilters
}

type groupProposalsOutput struct{ Body ProposalGroups }

func (a *api) groupProposals(ctx context.Context, c *call, in *groupProposalsInput) (*groupProposalsOutput, error) {
	q := in.query()
	q.Status = proposal.Status(in.Status)
	groups, err := a.proposals.Groups(ctx, c.Access, q, proposal.GroupBy(in.By))
	if err != nil {
		return nil, err
	}
	out := &groupProposalsOutput{Body: ProposalGroups{Groups: make([]ProposalGroup, len(groups))}}
	for i := range groups {
		out.Body.Groups[i] = groupOf(&groups[i])
	}
	return out, nil
}

type (
	likeTitle    string
	likeProblem  string
	similarLimit int
)

// maxLikeProblem keeps the URL within the limit of headers, also if all characters are escaped.
// An excerpt of the problem works as well as the whole text.
const maxLikeProblem = 2000

func (likeTitle) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(1, proposal.MaxTitle), matching(storable))
}

func (likeProblem) Schema(huma.Registry) *huma.Schema {
	return stringSchema(length(1, maxLikeProblem), matching(storable))
}

func (similarLimit) Schema(huma.Registry) *huma.Schema {
	return integer(1, proposal.MaxSimilar, proposal.MaxSimilar)
}

type similarToTextInput struct {
	OrgPath
	Title   likeTitle    `query:"title" doc:"Title, or its beginning. Required without problem." example:"Retry webhook deliveries"`
	Problem likeProblem  `query:"problem" doc:"Problem, or its beginning."`
	Limit   similarLimit `query:"limit" doc:"Maximum number of results."`
}

type similarOutput struct{ Body SimilarProposals }

func (a *api) similarToText(ctx context.Context, c *call, in *similarToTextInput) (*similarOutput, error) {
	like := proposal.SimilarTo{Title: string(in.Title), Problem: string(in.Problem)}
	found, err := a.proposals.Similar(ctx, c.Access, like, int(in.Limit))
	return similarOf(found), err
}

type similarToProposalInput struct {
	ProposalPath
	Limit similarLimit `query:"limit" doc:"Maximum number of results."`
}

func (a *api) similarToProposal(ctx context.Context, c *call, in *similarToProposalInput) (*similarOutput, error) {
	found, err := a.proposals.SimilarToOne(ctx, c.Access, in.ID, int(in.Limit))
	return similarOf(found), err
}

type decideProposalsInput struct {
	OrgPath
	OnceHeader
	Body payload[ProposalDecisions]
}

type decideProposalsOutput struct{ Body DecisionResults }

func (a *api) decideProposals(ctx context.Context, c *call, in *decideProposalsInput) (*decideProposalsOutput, error) {
	b := &in.Body.value
	cmd := proposal.Bulk{
		Status: proposal.Status(b.Status), Note: deref(b.ResolutionNote), Items: make([]proposal.BulkItem, len(b.Items)),
	}
	for i, it := range b.Items {
		cmd.Items[i] = proposal.BulkItem{ID: it.ID, TextVersion: it.TextVersion}
	}
	if err := in.Body.check(cmd.Validate()); err != nil {
		return nil, err
	}
	var err error
	if cmd.Once, err = c.once(b); err != nil {
		return nil, err
	}
	results, err := a.proposals.ResolveAll(ctx, c.Access, cmd)
	if err != nil {
		return nil, err
	}
	out := &decideProposalsOutput{Body: DecisionResults{Results: make([]DecisionResult, len(results))}}
	for i := range results {
		r := &results[i]
		if r.Err != nil {
			p := httpx.NewProblem(ctx, worded(http.MethodPost, r.Err))
			out.Body.Results[i] = DecisionResult{
				ID: r.ID, Error: &DecisionError{Status: p.Status, Code: p.Code, Detail: p.Detail},
			}
			out.Body.Failed++
			continue
		}
		p := &r.Outcome.Proposal
		out.Body.Results[i] = DecisionResult{
			ID: r.ID, Status: orNull(string(p.Status)), FollowupID: orNull(p.FollowupID), Replayed: r.Outcome.Replayed,
		}
		out.Body.Done++
	}
	return out, nil
}
