package web

import (
	"slices"
	"strconv"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// decisionForm has the values of a decision.
type decisionForm struct {
	Status      proposal.Status
	Note        string
	SavedNote   string // id of a saved note, used if the note is empty
	DuplicateOf string
	TextVersion int64
	Back        string
}

// decisionView is the panel in which admins decide.
type decisionView struct {
	decisionForm        // entered values; TextVersion is that of the shown text
	Choices      []verb // if empty, there is no form, and Why has the reason
	Why          string
	Hint         string
	Saved        []proposal.SavedNote
}

func (d *decisionView) allows(s proposal.Status) bool {
	return slices.ContainsFunc(d.Choices, func(c verb) bool { return c.Status == s })
}

// NeedsNote reports whether one of the choices requires a note.
func (d decisionView) NeedsNote() bool { return d.allows(proposal.Rejected) }

// decision returns the panel with the choices that the status allows.
func (v *visit) decision(p *proposal.Proposal, typed decisionForm) (decisionView, error) {
	out := decisionView{decisionForm: typed}
	out.TextVersion = p.TextVersion
	choices := verbsOf(p.Status)
	switch {
	case len(choices) == 0:
		out.Why = "It is " + string(p.Status) + ". No further decision follows."
		return out, nil
	case !v.may(identity.ResolveProposal):
		out.Why = whyNotDecide[p.Status]
		return out, nil
	}
	out.Choices = choices
	out.Hint = decisionHint(p)
	var err error
	if out.NeedsNote() {
		out.Saved, err = v.savedNotes()
	}
	return out, err
}

// whyNotDecide explains to members who are not admins why they have no panel, by status.
var whyNotDecide = map[proposal.Status]string{
	proposal.Draft:    "Only an admin of the org can publish a draft. Until then its submitter and admins see it.",
	proposal.Open:     "Admins of the org decide. Your vote, and a comment with it, helps them.",
	proposal.Approved: "An admin of the org resolves it when the work is done.",
	proposal.Rejected: "Only an admin of the org can reopen it.",
}

func decisionHint(p *proposal.Proposal) string {
	switch {
	case p.Status == proposal.Draft:
		return "Publishing opens it for votes."
	case p.Status == proposal.Open:
		return "Approval creates a follow-up."
	case p.Resolvable():
		return "Its follow-up is done."
	case p.Status == proposal.Approved:
		return "Its follow-up is not done yet."
	default:
		return "Reopening it lets people and agents vote again."
	}
}

// decide changes the status of a proposal. The decision applies to the shown text: it fails if the
// text has changed since. Votes do not matter.
func (v *visit) decide() error {
	a, err := v.access(identity.ResolveProposal)
	if err != nil {
		return err
	}
	id := v.r.PathValue("id")
	typed := v.decisionForm()
	done, err := v.resolve(a, id, typed)
	if err != nil {
		return v.showProposal(typed, v.decisionProblem(id, err))
	}
	said := decided(&done.Proposal)
	if f := done.Proposal.FollowupID; f != "" && done.Proposal.Status == proposal.Approved {
		said = linked(said, v.followupURL(f))
	}
	return v.back(v.proposalURL(id), said)
}

// decisionForm reads the form.
func (v *visit) decisionForm() decisionForm {
	version, err := strconv.ParseInt(v.value("text_version"), 10, 64)
	if err != nil {
		version = 0 // rejected by the service
	}
	return decisionForm{
		Status: proposal.Status(v.value("status")), Note: v.text("resolution_note"), SavedNote: v.value("saved_note"),
		DuplicateOf: v.value("duplicate_of"), TextVersion: version, Back: v.value("back"),
	}
}

// resolve calls the service.
func (v *visit) resolve(a identity.Access, id string, typed decisionForm) (proposal.Outcome, error) {
	cmd := proposal.Resolution{Status: typed.Status, IfTextVersion: &typed.TextVersion}
	var err error
	if cmd.Note, err = v.noteOf("resolution_note"); err != nil {
		return proposal.Outcome{}, err
	}
	if typed.Status == proposal.Rejected {
		cmd.DuplicateOf = typed.DuplicateOf
	}
	if cmd.Once, err = v.once(); err != nil {
		return proposal.Outcome{}, err
	}
	return v.Proposals.Resolve(v.r.Context(), a, id, cmd)
}

// decisionProblem rewords an error for readers of the page.
func (v *visit) decisionProblem(id string, err error) error {
	switch {
	case errs.KindOf(err) == errs.Stale:
		return errs.New(errs.Stale, "proposal.text_changed",
			"it changed while you read, so nothing was decided; see what changed, then decide again")
	case errs.KindOf(err) == errs.Conflict:
		a, readErr := v.access(identity.ReadProposal)
		if readErr != nil {
			return err
		}
		cur, readErr := v.Proposals.Get(v.r.Context(), a, id)
		if readErr != nil {
			return err
		}
		return errs.New(errs.Conflict, "proposal.transition_not_allowed",
			"nothing was changed: the proposal is %s now", cur.Proposal.Status)
	default:
		return err
	}
}

// decided returns the message for a decision.
func decided(p *proposal.Proposal) string {
	switch p.Status {
	case proposal.Approved:
		return "Approved. The follow-up “" + p.Title + "” was created."
	case proposal.Rejected:
		return "Rejected."
	case proposal.Resolved:
		return "Resolved."
	default:
		return "The proposal is open now."
	}
}
