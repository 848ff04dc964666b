package web

import (
	"net/http"
	"strconv"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// followupView is the page of a follow-up.
type followupView struct {
	F         followup.Followup
	Next      []followup.Status
	MayTake   bool
	MayChange bool
	Assignees []identity.Member
	Assigned  *identity.Member   // assignee, if not in the list of assignees
	Proposal  *proposal.Proposal // nil if there is none, or it is not visible
	SameText  bool               // the proposal still has the approved text
	Work      *workView
	Title     string // value of the form
	Text      string
	Editing   bool // the form was sent and failed
}

// followupForm has the values of the form that edits a follow-up.
type followupForm struct{ Title, Description string }

// followupPage shows a follow-up.
func (v *visit) followupPage() error { return v.showFollowup(nil, nil) }

func (v *visit) followupURL(id string) string { return v.base() + "/followups/" + id }

func (v *visit) showFollowup(typed *followupForm, problem error) error {
	a, err := v.access(identity.ReadFollowup)
	if err != nil {
		return err
	}
	ctx := v.r.Context()
	f, err := v.Followups.Get(ctx, a, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	row := v.followupRow(&f)
	view := followupView{
		F: f, Next: row.Next, MayTake: row.MayTake, MayChange: v.may(identity.ChangeFollowup),
		Title: f.Title, Text: f.Description,
	}
	if typed != nil {
		view.Title, view.Text, view.Editing = typed.Title, typed.Description, true
	}
	if view.MayChange {
		if view.Assignees, err = v.assignees(); err != nil {
			return err
		}
		view.Assigned = missingAssignee(f.Assignee, view.Assignees)
	}
	if view.Proposal, err = v.proposalWith(f.ProposalID); err != nil {
		return err
	}
	view.SameText = view.Proposal != nil && view.Proposal.TextHash() == f.TextHash
	if view.Work, err = v.work(&f, maxWork); err != nil {
		return err
	}
	return renderForm(v, http.StatusOK, "followup", f.Title, view, problem)
}

// missingAssignee returns the assignee if the list of choices lacks it.
func missingAssignee(ref string, offered []identity.Member) *identity.Member {
	p, err := identity.ParseRef("", ref)
	if ref == "" || err != nil {
		return nil
	}
	for i := range offered {
		if offered[i].Ref() == ref {
			return nil
		}
	}
	return &identity.Member{Principal: p, Name: p.ID}
}

// proposalWith returns a proposal, or nil if there is none that the member may see.
func (v *visit) proposalWith(id string) (*proposal.Proposal, error) {
	a, err := v.access(identity.ReadProposal)
	if err != nil || id == "" {
		return nil, nil //nolint:nilerr // not shown
	}
	cur, err := v.Proposals.Get(v.r.Context(), a, id)
	if err != nil {
		return nil, unlessGone(err)
	}
	return &cur.Proposal, nil
}

// changeFollowup assigns a follow-up, changes its status, or edits its text.
func (v *visit) changeFollowup() error {
	a, err := v.access(identity.ChangeFollowup)
	if err != nil {
		return err
	}
	cmd, said, typed := v.followupEdit()
	if cmd.Once, err = v.once(); err != nil {
		return err
	}
	if said == "" {
		return errs.New(errs.Invalid, "request.invalid", "choose a status or an assignee")
	}
	if _, err := v.Followups.Change(v.r.Context(), a, v.r.PathValue("id"), cmd); err != nil {
		return v.showFollowup(typed, err)
	}
	return v.back(v.followupURL(v.r.PathValue("id")), said)
}

// followupEdit reads the form. It returns the change, the message for success, and the entered
// text.
func (v *visit) followupEdit() (cmd followup.Edit, said string, typed *followupForm) {
	form := v.r.PostForm
	if s := followup.Status(v.value("status")); s != "" {
		cmd.Status = &s
		said = "The follow-up is now “" + followupWords[s] + "”."
	}
	if form.Has("assignee") {
		to := v.value("assignee")
		cmd.Assignee = &to
		said = "The follow-up is assigned to " + newWho(to).Name + "."
		if to == "" {
			said = "The follow-up is now unassigned."
		}
	}
	if form.Has("title") {
		typed = &followupForm{Title: v.value("title"), Description: v.text("description")}
		cmd.Title, cmd.Description = &typed.Title, &typed.Description
		if version, err := strconv.ParseInt(v.value("version"), 10, 64); err == nil {
			cmd.IfVersion = &version
		}
		said = "Your changes are saved."
	}
	return cmd, said, typed
}
