package rest

import (
	"context"
	"net/http"
	"strconv"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

const (
	proposalsPath = "/api/v1/orgs/{org}/proposals"
	proposalPath  = proposalsPath + "/{id}"
)

// OrgPath is the path of resources of an org.
type OrgPath struct {
	Org string `path:"org" pattern:"^[a-z0-9][a-z0-9-]{0,62}$" doc:"The org's id." example:"main"`
}

// ProposalPath is the path of one proposal.
type ProposalPath struct {
	OrgPath
	ID string `path:"id" pattern:"^prop-[0-9a-z]{26}$" doc:"The proposal's id." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
}

func (a *api) registerProposals() {
	register(a, operation{
		id: "list-proposals", method: http.MethodGet, path: proposalsPath, tag: tagProposals,
		summary: "List proposals", action: identity.ListProposals,
		description: "By default open proposals, by priority and then newest first; with q, the most relevant first. " +
			"Requires svc:tasks:read.",
	}, a.listProposals)
	register(a, operation{
		id: "submit-proposal", method: http.MethodPost, path: proposalsPath, tag: tagProposals,
		summary: "Submit a proposal", action: identity.SubmitProposal, status: http.StatusCreated,
		description: "Submits a proposal as `open` or as `draft`. Requires svc:tasks:write; services cannot submit.",
	}, a.submitProposal)
	register(a, operation{
		id: "get-proposal", method: http.MethodGet, path: proposalPath, tag: tagProposals,
		summary: "Get a proposal", action: identity.ReadProposal, validID: proposal.ValidID, cacheable: true,
		description: "The full record, with the caller's own vote. Requires svc:tasks:read.",
	}, a.getProposal)
	register(a, operation{
		id: "change-proposal", method: http.MethodPatch, path: proposalPath, tag: tagProposals,
		summary: "Resolve or edit a proposal", action: identity.ChangeProposal, validID: proposal.ValidID,
		errors: []int{http.StatusConflict, http.StatusPreconditionFailed},
		description: "With `status`, decides: draft → open → approved | rejected, approved → resolved, rejected → open. " +
			"Requires svc:admin:admin. Approval creates a follow-up. With `text_version`, the request fails with 412 " +
			"proposal.text_changed if the text has changed since; unlike the ETag, it does not change with votes. " +
			"`duplicate_of` rejects the proposal as a duplicate of another one.\n\n" +
			"With other fields, edits a draft or an open proposal. Requires svc:tasks:write and being the submitter, or " +
			"svc:admin:admin. A request cannot do both.",
	}, a.changeProposal)
	register(a, operation{
		id: "list-history", method: http.MethodGet, path: proposalPath + "/history", tag: tagProposals,
		summary: "List a proposal's history", action: identity.ReadProposal, validID: proposal.ValidID,
		description: "All submissions, edits, status changes and votes, oldest first. Requires svc:tasks:read.",
	}, a.listHistory)
}

type listProposalsInput struct {
	OrgPath
	Status statusFilter `query:"status" doc:"Filter by status."`
	ProposalFilters
	Sort    sortOrder  `query:"sort" doc:"review: by priority, then newest; the default without q. votes: by net votes (for minus against). relevance: words in the title first; the default with q, and only with it."`
	Page    pageNumber `query:"page" doc:"Page number; default 1. Cannot be combined with cursor."`
	Limit   pageLimit  `query:"limit" doc:"Page size."`
	Cursor  string     `query:"cursor" doc:"Cursor: next_cursor of the previous page, with the same filters and sort."`
	Include include    `query:"include" doc:"excerpt adds the beginning of each problem."`
}

// ProposalFilters has the filters of proposals except the status.
type ProposalFilters struct {
	Category    categoryFilter    `query:"category" doc:"Filter by category."`
	SubmittedBy submitterFilter   `query:"submitted_by" doc:"Filter by submitter, a user or an agent." example:"agent:scout"`
	Kind        submitterKind     `query:"submitted_by_kind" doc:"Filter by the kind of the submitter."`
	Priority    priorityFilter    `query:"priority" doc:"Filter by priority."`
	Evidence    evidenceFilter    `query:"evidence" doc:"yes: only proposals filed from reported friction. no: only the others."`
	Fingerprint fingerprintFilter `query:"fingerprint" doc:"Filter by the friction that filed it." example:"registry:timeout"`
	Q           searchText        `query:"q" doc:"Search words. All must match, the last one as a prefix. Case and accents do not count." example:"webhook retr"`
}

func (f *ProposalFilters) query() proposal.Query {
	return proposal.Query{
		Category: proposal.Category(f.Category), Priority: proposal.Priority(f.Priority),
		SubmittedBy: string(f.SubmittedBy), Kind: identity.Kind(f.Kind), Evidence: proposal.Evidence(f.Evidence),
		Fingerprint: string(f.Fingerprint), Text: string(f.Q),
	}
}

type listProposalsOutput struct {
	Link []string `header:"Link" doc:"Links to the first, previous and next page (RFC 8288)."`
	Body shownList
}

func (a *api) listProposals(ctx context.Context, c *call, in *listProposalsInput) (*listProposalsOutput, error) {
	q := in.query()
	q.Status, q.Sort = proposal.Status(in.Status), proposal.Sort(in.Sort)
	q.Page, q.Limit, q.Cursor = int(in.Page), int(in.Limit), in.Cursor
	q.Excerpt = in.Include == includeExcerpt
	page, err := a.proposals.List(ctx, c.Access, q)
	if err != nil {
		return nil, err
	}
	at := position{
		page: page.Number, more: page.Next != "", cursor: page.Next, byCursor: in.Cursor != "",
		deep: page.Number*page.Limit > deepRows,
	}
	return &listProposalsOutput{Link: links(c.request.URL, at), Body: shownList{&page, q.Excerpt}}, nil
}

// deepRows is the number of rows from which on a page by number costs more than the first ones.
const deepRows = 2000

type submitProposalInput struct {
	OrgPath
	OnceHeader
	Body payload[ProposalSubmission]
}

type submitProposalOutput struct {
	Location string `header:"Location" doc:"URL of the new proposal."`
	ETag     string `header:"ETag" doc:"The version of the record."`
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     shownProposal
}

func (a *api) submitProposal(ctx context.Context, c *call, in *submitProposalInput) (*submitProposalOutput, error) {
	b := &in.Body.value
	cmd := proposal.Submission{
		Title: b.Title, Category: proposal.Category(b.Category), Problem: b.Problem, SuggestedFix: b.SuggestedFix,
	}
	if b.Priority != nil {
		cmd.Priority = proposal.Priority(*b.Priority)
	}
	if b.Status != nil {
		cmd.Status = proposal.Status(*b.Status)
	}
	empty := append(notEmpty("priority", b.Priority), notEmpty("status", b.Status)...)
	if in.Body.flawed() || len(empty) > 0 {
		return nil, in.Body.check(cmd.Validate(), empty...)
	} // otherwise the service validates it
	var err error
	if cmd.Once, err = c.once(b); err != nil {
		return nil, err
	}
	done, err := a.proposals.Submit(ctx, c.Access, cmd)
	if err != nil {
		return nil, err
	}
	return &submitProposalOutput{
		Location: c.request.URL.EscapedPath() + "/" + done.Proposal.ID, ETag: c.etag(&done.Proposal),
		Replayed: replayed(done.Replayed), Body: shownProposal{&done.Proposal, done.Vote},
	}, nil
}

type getProposalInput struct {
	ProposalPath
	IfNoneMatch string `header:"If-None-Match" doc:"ETag that you have. 304 if it is current."`
}

type getProposalOutput struct {
	Status       int
	ETag         string `header:"ETag" doc:"The version of the record, for If-Match and If-None-Match."`
	CacheControl string `header:"Cache-Control" doc:"Responses may be stored but must be revalidated."`
	Body         shownProposal
}

// revalidate lets a client store its own copy, if it revalidates it on each use.
const revalidate = "private, no-cache"

func (a *api) getProposal(ctx context.Context, c *call, in *getProposalInput) (*getProposalOutput, error) {
	cur, err := a.proposals.Get(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	out := &getProposalOutput{Status: http.StatusOK, ETag: c.etag(&cur.Proposal), CacheControl: revalidate}
	if noneMatch(c.request.Header, out.ETag) {
		out.Status = http.StatusNotModified
		return out, nil
	}
	out.Body = shownProposal{&cur.Proposal, cur.Vote}
	return out, nil
}

// etag returns the ETag of a proposal. It covers the caller's own vote, and the status of the
// follow-up and the number of reports, which change without a new version.
func (c *call) etag(p *proposal.Proposal) string {
	return etag(p.Version, c.Principal().Ref()+" "+p.FollowupStatus+" "+strconv.FormatInt(p.Evidence, 10))
}
