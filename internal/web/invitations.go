package web

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// invitationsView is the list of the org's invitations.
type invitationsView struct {
	Tabs    []tab
	Rows    []invitationRow
	Pager   cursorLinks
	Invited typedInvitation
}

type invitationRow struct {
	identity.Invitation
	Status string
	Open   bool
}

// typedInvitation has the values of the form.
type typedInvitation struct {
	User, Name string
	Admin      bool
	Days       string
}

// InvitationDays returns the choices for the lifetime of an invitation.
func (typedInvitation) InvitationDays() []string { return []string{"1", "7", "30"} }

// Selected returns the chosen lifetime.
func (t typedInvitation) Selected() string {
	if t.Days == "" {
		return strconv.Itoa(int(identity.DefaultInvitation / (24 * time.Hour)))
	}
	return t.Days
}

// shownLink is the page that shows a link once.
type shownLink struct {
	Secret    *secret
	For, User string
	Admin     bool
	ExpiresAt time.Time
	Reset     bool   // a password link; otherwise an invitation
	Back      string // page to continue with
}

func (v *visit) invitationsPage() error { return v.showInvitations(typedInvitation{}, nil) }

// showInvitations lists the invitations, newest first, with the form for a new one.
func (v *visit) showInvitations(typed typedInvitation, problem error) error {
	a, err := v.access(identity.ReadMembers)
	if err != nil {
		return err
	}
	before := v.r.URL.Query().Get("cursor")
	if before != "" && !identity.ValidInvitationID(before) {
		return fieldError("cursor", "is not a cursor of this list; open the list again")
	}
	list, err := v.OrgAdmin.Invitations(v.r.Context(), a, before, adminPerPage+1)
	if err != nil {
		return err
	}
	next := ""
	if len(list) > adminPerPage {
		list = list[:adminPerPage]
		next = list[adminPerPage-1].ID
	}
	out := invitationsView{Tabs: v.memberTabs(""), Pager: v.cursorPager(next), Invited: typed}
	for i := range list {
		s := list[i].State(v.Now())
		out.Rows = append(out.Rows, invitationRow{list[i], s, s == identity.InvitationOpen})
	}
	return renderForm(v, http.StatusOK, "invitations", "Invitations", out, problem)
}

// invite creates an invitation, and shows its link once.
func (v *visit) invite() error {
	typed := typedInvitation{
		User: v.value("user"), Name: v.value("name"), Admin: v.value("admin") != "", Days: v.value("days"),
	}
	a, err := v.access(identity.ManageMembers)
	if err != nil {
		return v.audited(identity.InvitationCreate, "user:"+typed.User, err)
	}
	again := func(err error) error {
		return v.showInvitations(typed, v.audited(identity.InvitationCreate, "user:"+typed.User, err))
	}
	r := identity.InvitationRequest{User: typed.User, Name: typed.Name, Admin: typed.Admin}
	days, err := strconv.Atoi(typed.Days)
	if err != nil || !slices.Contains(typed.InvitationDays(), typed.Days) {
		return again(fieldError("days", "must be one of the choices"))
	}
	r.Expires = time.Duration(days) * 24 * time.Hour
	ctx, once, err := v.begin()
	if err != nil {
		return err
	}
	i, token, err := v.OrgAdmin.Invite(ctx, a, r)
	if err != nil && !sealed(err) {
		return again(err)
	}
	out := shownLink{
		Secret: v.newSecret("invitation", v.PublicURL+"/join/"+token, once), For: i.Name, User: i.User, Admin: i.Admin,
		ExpiresAt: i.ExpiresAt, Back: v.base() + "/members/invitations",
	}
	return render(v, http.StatusCreated, "link", "An invitation for "+i.Name, out)
}

// revokeInvitation revokes an invitation. Revoking it again changes nothing.
func (v *visit) revokeInvitation() error {
	id := v.r.PathValue("id")
	a, err := v.access(identity.ManageMembers)
	if err != nil {
		return v.audited(identity.InvitationRevoke, id, err)
	}
	if !identity.ValidInvitationID(id) {
		return errs.ErrNotFound
	}
	i, err := v.OrgAdmin.RevokeInvitation(v.r.Context(), a, id)
	if err != nil {
		return v.showInvitations(typedInvitation{}, v.audited(identity.InvitationRevoke, id, err))
	}
	return v.back(v.base()+"/members/invitations", "The invitation for "+i.Name+" was revoked; its link no longer works.")
}
