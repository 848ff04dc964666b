package web

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// proposalForm is the form that submits a proposal or edits one, with what was typed.
type proposalForm struct {
	ID           string // empty: a new proposal
	Action       string
	Cancel       string // where the link beside the buttons leads
	Title        string
	Category     proposal.Category
	Problem      string
	SuggestedFix string
	Priority     proposal.Priority

	// Of an edit: what the form was opened with.
	WasCategory proposal.Category
	WasPriority proposal.Priority
	TextVersion int64

	Categories []explained
	Priorities []explained
	Preview    bool
	Similar    similarView
	Changed    *changedView // the text changed while it was edited
}

// explained is a value of a field with the line that explains it.
type explained struct{ Value, Text string }

// categories explain what a proposal can be about.
var categories = []explained{
	{string(proposal.Reliability), "Something fails, or has to be repeated by hand."},
	{string(proposal.Performance), "Something is slow, or costs more than it should."},
	{string(proposal.Security), "Secrets, rights or data could get into wrong hands."},
	{string(proposal.Process), "How people and agents work together."},
	{string(proposal.Feature), "Something new that would help."},
	{string(proposal.Documentation), "Something is missing in the docs, unclear or wrong."},
}

// priorities explain how soon a proposal should be reviewed.
var priorities = []explained{
	{string(proposal.High), "It hurts every day, or risks damage: review it first."},
	{string(proposal.Normal), "It can wait for its turn."},
	{string(proposal.Low), "Nice to have."},
}

// What a button of the form asks for, beside the status of a new proposal.
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

// showForm shows the form with what was typed, and what was wrong with it.
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

// readForm reads what was typed.
func (v *visit) readForm() proposalForm {
	f := proposalForm{
		ID: v.r.PathValue("id"), Title: v.value("title"), Category: proposal.Category(v.value("category")),
		Problem: v.text("problem"), SuggestedFix: v.text("suggested_fix"), Priority: proposal.Priority(v.value("priority")),
		WasCategory: proposal.Category(v.value("was_category")), WasPriority: proposal.Priority(v.value("was_priority")),
	}
	if f.Priority == "" {
		f.Priority = proposal.Normal
	}
	f.TextVersion, _ = strconv.ParseInt(v.value("text_version"), 10, 64) // 0 is no version of a text
	return f
}

// look carries out the buttons that only show something; nothing is saved.
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

// submitProposal files a proposal, as a draft or open.
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

// editable reads a proposal that the member may edit.
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

// editProposalPage shows the form with the text as it is.
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

// formOf is the form of a proposal as it is.
func formOf(p *proposal.Proposal) proposalForm {
	return proposalForm{
		ID: p.ID, Title: p.Title, Category: p.Category, Problem: p.Problem, SuggestedFix: p.SuggestedFix,
		Priority: p.Priority, WasCategory: p.Category, WasPriority: p.Priority, TextVersion: p.TextVersion,
	}
}

// editProposal saves the text, unless it was changed by somebody else meanwhile.
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

// editFailed shows the form again. If the text has changed meanwhile it says how, and the next
// try is made on the new text.
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
		"somebody changed the text while you edited it, so nothing was saved; what you typed is below, "+
			"and saving it again replaces the other change"))
}

// saveEdit sends what was changed in the form. What was not touched is left out, so that it
// undoes no change of another person.
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

// changedText is what was typed, nil if it is the text as it was: browsers change line breaks.
func changedText(typed, was string) *string {
	if typed == strings.TrimSpace(strings.ReplaceAll(was, "\r\n", "\n")) {
		return nil
	}
	return &typed
}
