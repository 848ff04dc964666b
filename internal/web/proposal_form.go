package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// proposalForm is the form that submits or edits a proposal, with its values.
type proposalForm struct {
	ID           string // empty for a new proposal
	Action       string
	Cancel       string // URL of the cancel link
	Title        string
	Category     proposal.Category
	Problem      string
	SuggestedFix string
	Priority     proposal.Priority

	// Of an edit: the values when the form was opened.
	WasCategory proposal.Category
	WasPriority proposal.Priority
	TextVersion int64

	Categories []explained
	Priorities []explained
	Preview    bool
	Similar    similarView
	Changed    *changedView // set if the text changed during the edit
}

// explained is a value of a field with an explanation.
type explained struct{ Value, Text string }

// categories explain the categories of proposals.
var categories = []explained{
	{string(proposal.Reliability), "Something fails, or has to be repeated by hand."},
	{string(proposal.Performance), "Something is slow, or costs more than it should."},
	{string(proposal.Security), "Secrets, rights or data could get into the wrong hands."},
	{string(proposal.Process), "How people and agents work together."},
	{string(proposal.Feature), "Something new that would help."},
	{string(proposal.Documentation), "Something is missing in the docs, unclear or wrong."},
}

// priorities explain the priorities for the review.
var priorities = []explained{
	{string(proposal.High), "It hurts every day, or risks damage: review it first."},
	{string(proposal.Normal), "It can wait for its turn."},
	{string(proposal.Low), "Nice to have."},
}

// Values of the buttons, beside the status of a new proposal.
const (
	doPreview = "preview"
	doCheck   = "check"
)

// newProposalPage shows an empty form.
func (v *visit) newProposalPage() error {
	if _, err := v.access(identity.SubmitProposal); err != nil {
		return err
	}
	return v.showForm(proposalForm{Priority: proposal.Normal}, nil)
}

// showForm shows the form with its values and errors.
func (v *visit) showForm(f proposalForm, problem error) error {
	f.Categories, f.Priorities = categories, priorities
	title := "New proposal"
	f.Action, f.Cancel = v.base()+"/proposals/new", v.base()+"/proposals"
	if f.ID != "" {
		title = "Edit the proposal"
		f.Action, f.Cancel = v.proposalURL(f.ID)+"/edit", v.proposalURL(f.ID)
	}
	return renderForm(v, http.StatusOK, "proposal_form", title, f, problem)
}

// readForm reads the values.
func (v *visit) readForm() proposalForm {
	f := proposalForm{
		ID: v.r.PathValue("id"), Title: v.value("title"), Category: proposal.Category(v.value("category")),
		Problem: v.text("problem"), SuggestedFix: v.text("suggested_fix"), Priority: proposal.Priority(v.value("priority")),
		WasCategory: proposal.Category(v.value("was_category")), WasPriority: proposal.Priority(v.value("was_priority")),
	}
	if f.Priority == "" {
		f.Priority = proposal.Normal
	}
	f.TextVersion, _ = strconv.ParseInt(v.value("text_version"), 10, 64) // 0 is never a version
	return f
}

// look handles the buttons that only show something. They save nothing.
func (v *visit) look(f proposalForm) (looked bool, err error) {
	switch v.value("do") {
	case doPreview:
		f.Preview = true
	case doCheck:
		if f.Similar, err = v.similarView(f.Title, f.Problem, f.ID); err != nil {
			return true, err
		}
	default:
		return false, nil
	}
	return true, v.showForm(f, nil)
}

// submitProposal submits a proposal, as a draft or open.
func (v *visit) submitProposal() error {
	a, err := v.access(identity.SubmitProposal)
	if err != nil {
		return err
	}
	f := v.readForm()
	if looked, err := v.look(f); looked {
		return err
	}
	cmd := proposal.Submission{
		Title: f.Title, Category: f.Category, Problem: f.Problem, SuggestedFix: f.SuggestedFix, Priority: f.Priority,
		Status: proposal.Status(v.value("status")),
	}
	if cmd.Once, err = v.once(); err != nil {
		return err
	}
	out, err := v.Proposals.Submit(v.r.Context(), a, cmd)
	if err != nil {
		return v.showForm(f, err)
	}
	said := "Your proposal is open for votes."
	if out.Proposal.Status == proposal.Draft {
		said = "Your draft is saved. You and the admins of the org see it."
	}
	return v.done(v.proposalURL(out.Proposal.ID), said)
}

// editable returns a proposal that the member may edit.
func (v *visit) editable() (identity.Access, proposal.Proposal, error) {
	a, err := v.access(identity.ChangeProposal)
	if err != nil {
		return a, proposal.Proposal{}, err
	}
	cur, err := v.Proposals.Get(v.r.Context(), a, v.r.PathValue("id"))
	p := cur.Proposal
	if err == nil && !a.Has(identity.Admin) && p.SubmittedBy != v.member.Ref() {
		err = errs.New(errs.Forbidden, "proposal.not_yours",
			"only %s and admins of the org may edit this proposal", newWho(p.SubmittedBy).Name)
	}
	return a, p, err
}

// editProposalPage shows the form with the current text.
func (v *visit) editProposalPage() error {
	_, p, err := v.editable()
	if err != nil {
		return err
	}
	if !v.mayEdit(&p) {
		return errs.New(errs.Conflict, "proposal.not_editable",
			"the proposal is %s; only a draft or an open one can be edited", p.Status)
	}
	return v.showForm(formOf(&p), nil)
}

// formOf returns the form with the values of a proposal.
func formOf(p *proposal.Proposal) proposalForm {
	return proposalForm{
		ID: p.ID, Title: p.Title, Category: p.Category, Problem: p.Problem, SuggestedFix: p.SuggestedFix,
		Priority: p.Priority, WasCategory: p.Category, WasPriority: p.Priority, TextVersion: p.TextVersion,
	}
}

// editProposal saves the text, unless another user has changed it.
func (v *visit) editProposal() error {
	a, p, err := v.editable()
	if err != nil {
		return err
	}
	f := v.readForm()
	if looked, err := v.look(f); looked {
		return err
	}
	if err := v.saveEdit(a, f, &p); err != nil {
		return v.editFailed(a, f, err)
	}
	return v.done(v.proposalURL(p.ID), "Your changes are saved.")
}

// editFailed shows the form again. If the text has changed meanwhile, it shows the difference, and
// the next attempt applies to the new text.
func (v *visit) editFailed(a identity.Access, f proposalForm, problem error) error {
	if errs.KindOf(problem) != errs.Stale {
		return v.showForm(f, problem)
	}
	cur, err := v.Proposals.Get(v.r.Context(), a, f.ID)
	if err != nil {
		return err
	}
	if f.Changed, err = v.textChange(&cur.Proposal, f.TextVersion); err != nil {
		return err
	}
	f.TextVersion = cur.Proposal.TextVersion
	return v.showForm(f, errs.New(errs.Stale, "proposal.text_changed",
		"another user changed the text while you edited it, so nothing was saved; your text is below, "+
			"and saving it again replaces the other change"))
}

// saveEdit sends only the fields that were changed in the form, so that it does not undo the
// changes of others.
func (v *visit) saveEdit(a identity.Access, f proposalForm, p *proposal.Proposal) error {
	cmd := proposal.Edit{
		Title: changedText(f.Title, p.Title), Problem: changedText(f.Problem, p.Problem),
		SuggestedFix: changedText(f.SuggestedFix, p.SuggestedFix), IfTextVersion: &f.TextVersion,
	}
	if f.Category != f.WasCategory {
		cmd.Category = &f.Category
	}
	if f.Priority != f.WasPriority {
		cmd.Priority = &f.Priority
	}
	var err error
	if cmd.Once, err = v.once(); err != nil {
		return err
	}
	_, err = v.Proposals.Edit(v.r.Context(), a, p.ID, cmd)
	return err
}

// changedText returns the entered text, or nil if it differs only in line breaks.
func changedText(typed, was string) *string {
	if typed == strings.TrimSpace(strings.ReplaceAll(was, "\r\n", "\n")) {
		return nil
	}
	return &typed
}
