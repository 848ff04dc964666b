package rest

import (
	"context"
	"net/http"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
)

const (
	followupsPath = "/api/v1/orgs/{org}/followups"
	followupPath  = followupsPath + "/{id}"
)

// FollowupPath is the path of one follow-up.
type FollowupPath struct {
	OrgPath
	ID string `path:"id" pattern:"^fup-[0-9a-z]{26}$" doc:"The follow-up's id." example:"fup-01k5xb7d2n8f4j6s0a9g3r5w1c"`
}

func (a *api) registerFollowups() {
	register(a, operation{
		id: "list-followups", method: http.MethodGet, path: followupsPath, tag: tagFollowups,
		summary: "List follow-ups", action: identity.ListFollowups, description: "Newest first. Requires svc:tasks:read.",
	}, a.listFollowups)
	register(a, operation{
		id: "create-followup", method: http.MethodPost, path: followupsPath, tag: tagFollowups,
		summary: "Create a follow-up", action: identity.CreateFollowup, status: http.StatusCreated,
		description: "Creates a follow-up without a proposal. Requires svc:tasks:write; assigning it to an agent also " +
			"requires svc:a2a:write that includes the agent.",
	}, a.createFollowup)
	register(a, operation{
		id: "get-followup", method: http.MethodGet, path: followupPath, tag: tagFollowups,
		summary: "Get a follow-up", action: identity.ReadFollowup, validID: followup.ValidID, cacheable: true,
		description: "Requires svc:tasks:read.",
	}, a.getFollowup)
	register(a, operation{
		id: "change-followup", method: http.MethodPatch, path: followupPath, tag: tagFollowups,
		summary: "Change a follow-up", action: identity.ChangeFollowup, validID: followup.ValidID,
		errors: []int{http.StatusConflict, http.StatusPreconditionFailed},
		description: "Changes the given fields. Requires svc:tasks:write; assigning it to an agent also requires " +
			"svc:a2a:write that includes the agent.",
	}, a.changeFollowup)
}

type listFollowupsInput struct {
	OrgPath
	Status     followupStatusFilter `query:"status" doc:"Filter by status."`
	Assignee   assigneeFilter       `query:"assignee" doc:"Filter by assignee; none selects unassigned ones." example:"agent:fixer"`
	ProposalID string               `query:"proposal_id" pattern:"^[0-9A-Za-z-]{1,64}$" doc:"Filter by proposal." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	Page       pageNumber           `query:"page" doc:"Page number; default 1."`
	Limit      followupLimit        `query:"limit" doc:"Page size."`
}

type listFollowupsOutput struct {
	Link []string `header:"Link" doc:"Links to the first, previous and next page (RFC 8288)."`
	Body FollowupList
}

func (a *api) listFollowups(ctx context.Context, c *call, in *listFollowupsInput) (*listFollowupsOutput, error) {
	q := followup.Query{
		Status: followup.Status(in.Status), Assignee: string(in.Assignee), ProposalID: in.ProposalID,
		Page: int(in.Page), Limit: int(in.Limit),
	}
	list, total, err := a.followups.List(ctx, c.Access, &q)
	if err != nil {
		return nil, err
	}
	out := &listFollowupsOutput{
		Link: links(c.request.URL, numbered(q.Page, q.Limit, len(list), total)),
		Body: FollowupList{Followups: make([]Followup, len(list)), Total: total, Page: q.Page},
	}
	for i := range list {
		out.Body.Followups[i] = followupOf(&list[i])
	}
	return out, nil
}

type createFollowupInput struct {
	OrgPath
	OnceHeader
	Body payload[FollowupCreation]
}

type createFollowupOutput struct {
	Location string `header:"Location" doc:"URL of the new follow-up."`
	ETag     string `header:"ETag" doc:"The version of the record."`
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     Followup
}

func (a *api) createFollowup(ctx context.Context, c *call, in *createFollowupInput) (*createFollowupOutput, error) {
	b := &in.Body.value
	cmd := followup.Creation{Title: b.Title, Description: deref(b.Description), Assignee: deref(b.Assignee)}
	if err := in.Body.check(cmd.Validate()); err != nil {
		return nil, err
	}
	var err error
	if cmd.Once, err = c.once(b); err != nil {
		return nil, err
	}
	done, err := a.followups.Create(ctx, c.Access, cmd)
	if err != nil {
		return nil, err
	}
	f := &done.Followup
	return &createFollowupOutput{
		Location: c.request.URL.EscapedPath() + "/" + f.ID, ETag: followupTag(f), Replayed: replayed(done.Replayed),
		Body: followupOf(f),
	}, nil
}

type getFollowupInput struct {
	FollowupPath
	IfNoneMatch string `header:"If-None-Match" doc:"ETag that you have. 304 if it is current."`
}

type getFollowupOutput struct {
	Status       int
	ETag         string `header:"ETag" doc:"The version of the record, for If-Match and If-None-Match."`
	CacheControl string `header:"Cache-Control" doc:"Responses may be stored but must be revalidated."`
	Body         Followup
}

func (a *api) getFollowup(ctx context.Context, c *call, in *getFollowupInput) (*getFollowupOutput, error) {
	f, err := a.followups.Get(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	out := &getFollowupOutput{Status: http.StatusOK, ETag: followupTag(&f), CacheControl: revalidate}
	if noneMatch(c.request.Header, out.ETag) {
		out.Status = http.StatusNotModified
		return out, nil
	}
	out.Body = followupOf(&f)
	return out, nil
}

type changeFollowupInput struct {
	FollowupPath
	OnceHeader
	IfMatch string `header:"If-Match" doc:"ETag of the version you read. 412 if the record has changed since."`
	Body    payload[FollowupPatch]
}

type changeFollowupOutput struct {
	ETag     string `header:"ETag" doc:"The new version of the record."`
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     Followup
}

func (a *api) changeFollowup(ctx context.Context, c *call, in *changeFollowupInput) (*changeFollowupOutput, error) {
	b := &in.Body.value
	cmd := followup.Edit{
		Title: b.Title, Description: b.Description, Status: (*followup.Status)(b.Status), Assignee: b.Assignee,
	}
	var wrong []errs.Field
	if *b == (FollowupPatch{}) && len(in.Body.broken) == 0 {
		wrong = []errs.Field{{Message: "must contain at least one of title, description, status and assignee"}}
	}
	if err := in.Body.check(cmd.Validate(), wrong...); err != nil {
		return nil, err
	}
	var err error
	if cmd.IfVersion, err = ifMatch(c.request.Header, func() (int64, error) {
		f, err := a.followups.Get(ctx, c.Access, in.ID)
		return f.Version, err
	}); err != nil {
		return nil, err
	}
	if cmd.Once, err = c.once(b); err != nil {
		return nil, err
	}
	done, err := a.followups.Change(ctx, c.Access, in.ID, cmd)
	if err != nil {
		return nil, err
	}
	return &changeFollowupOutput{
		ETag: followupTag(&done.Followup), Replayed: replayed(done.Replayed), Body: followupOf(&done.Followup),
	}, nil
}

// followupTag returns the ETag of a follow-up. All callers see the same bytes.
func followupTag(f *followup.Followup) string { return etag(f.Version, "") }
