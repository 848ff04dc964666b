package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

const (
	invitationsPath = "/api/v1/orgs/{org}/invitations"
	invitationPath  = invitationsPath + "/{id}"

	// joinPath is the page where an invitation is accepted; the token follows.
	joinPath = "/join/"
)

func (a *api) registerInvitations() {
	register(a, operation{
		id: "list-invitations", method: http.MethodGet, path: invitationsPath, tag: tagMembers,
		summary: "List the invitations of the org", action: identity.ReadMembers,
		description: "Newest first, without their URLs." + needsAdmin,
	}, a.listInvitations)
	register(a, operation{
		id: "create-invitation", method: http.MethodPost, path: invitationsPath, tag: tagMembers, status: http.StatusCreated,
		summary: "Invite a person", action: identity.ManageMembers, audit: identity.InvitationCreate,
		errors: []int{http.StatusConflict},
		description: "The first person who opens the URL becomes the user, so hand it only to the invited person. The URL " +
			"is returned once, and again for the same Idempotency-Key, body and credentials. " +
			"409 if the user already exists." + needsAdmin,
	}, a.createInvitation)
	register(a, operation{
		id: "revoke-invitation", method: http.MethodDelete, path: invitationPath, tag: tagMembers,
		summary: "Revoke an invitation", action: identity.ManageMembers, validID: identity.ValidInvitationID,
		audit: identity.InvitationRevoke, errors: []int{http.StatusConflict},
		description: "Revoking it again changes nothing. 409 if it was accepted; disable the user instead." + needsAdmin,
	}, a.revokeInvitation)
}

type listInvitationsInput struct {
	OrgPath
	Cursor string      `query:"cursor" doc:"Cursor: next_cursor of the previous page."`
	Limit  manageLimit `query:"limit" doc:"Page size."`
}

type listInvitationsOutput struct{ Body InvitationList }

func (a *api) listInvitations(ctx context.Context, c *call, in *listInvitationsInput) (*listInvitationsOutput, error) {
	if in.Cursor != "" && !identity.ValidInvitationID(in.Cursor) {
		return nil, errs.InvalidFields(badCursor)
	}
	n := in.Limit.size()
	list, err := a.admin.Invitations(ctx, c.Access, in.Cursor, n+1)
	if err != nil {
		return nil, err
	}
	out := &listInvitationsOutput{}
	if len(list) > n {
		list = list[:n]
		out.Body.NextCursor = &list[n-1].ID
	}
	out.Body.Invitations = make([]Invitation, len(list))
	for i := range list {
		out.Body.Invitations[i] = invitationOf(&list[i])
	}
	return out, nil
}

type createInvitationInput struct {
	OrgPath
	OnceHeader
	Body payload[InvitationCreation]
}

type createInvitationOutput struct {
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
	Body     InvitationWithURL
}

func (a *api) createInvitation(ctx context.Context, c *call, in *createInvitationInput) (*createInvitationOutput, error) {
	b := &in.Body.value
	c.target = "user:" + b.User
	r := identity.InvitationRequest{User: b.User, Name: deref(b.Name), Admin: b.Admin}
	if b.ExpiresInSeconds != nil {
		r.Expires = seconds(*b.ExpiresInSeconds)
		if *b.ExpiresInSeconds > int(identity.MaxInvitation/time.Second) || r.Expires == 0 {
			r.Expires = -1 // out of bounds; 0 would select the default
		}
	}
	if err := in.Body.check(r.Validate(), notEmpty("name", b.Name)...); err != nil {
		return nil, err
	}
	ctx, once, err := c.begin(ctx, b)
	if err != nil {
		return nil, err
	}
	i, token, err := a.admin.Invite(ctx, c.Access, r)
	if err != nil {
		return nil, err
	}
	return &createInvitationOutput{
		Replayed: replayed(once.Replayed()),
		Body:     InvitationWithURL{URL: a.publicURL + joinPath + token, Invitation: invitationOf(&i)},
	}, nil
}

type invitationInput struct {
	OrgPath
	ID string `path:"id" pattern:"^inv-[0-9a-z]{1,64}$" doc:"The invitation's id." example:"inv-01k5xb7d2n8f4j6s0a9g3r5w1c"`
}

type invitationOutput struct{ Body Invitation }

func (a *api) revokeInvitation(ctx context.Context, c *call, in *invitationInput) (*invitationOutput, error) {
	i, err := a.admin.RevokeInvitation(ctx, c.Access, in.ID)
	if err != nil {
		return nil, err
	}
	return &invitationOutput{Body: invitationOf(&i)}, nil
}
