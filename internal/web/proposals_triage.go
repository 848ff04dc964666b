package web

import (
	"net/http"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// groupRow is a group of proposals.
type groupRow struct {
	ID   string // of the row
	Who  string // ref of the submitter, if grouped by submitter
	Name string
	Href string // list of the group
	proposal.Group
}

// proposalGroups shows groups instead of rows. A group links to its rows.
func (v *visit) proposalGroups(a identity.Access, view proposalsView) error {
	groups, err := v.Proposals.Groups(v.r.Context(), a, view.Query, proposal.GroupBy(view.Group))
	if err != nil {
		return v.badList(view, err)
	}
	for _, g := range groups {
		row := groupRow{ID: "g-" + g.Key, Group: g}
		q := v.r.URL.Query()
		q.Del("group")
		q.Del("cursor")
		if view.Group == string(proposal.BySubmitter) {
			row.Who = g.Key
			row.Href = v.listWith(q, "submitted_by", g.Key)
		} else {
			row.Name = g.Key
			row.Href = v.listWith(q, "fingerprint", g.Key)
		}
		view.Groups = append(view.Groups, row)
	}
	return render(v, http.StatusOK, "proposals", "Proposals", view)
}

// savedNotes returns the saved resolution notes of the org.
func (v *visit) savedNotes() ([]proposal.SavedNote, error) {
	a, err := v.access(identity.ResolveProposal)
	if err != nil {
		return nil, err
	}
	return v.Proposals.Notes(v.r.Context(), a)
}

// noteOf returns the note of a form: the entered text, otherwise the chosen saved note.
func (v *visit) noteOf(field string) (string, error) {
	text, id := v.text(field), v.value("saved_note")
	if text != "" || id == "" {
		return text, nil
	}
	notes, err := v.savedNotes()
	if err != nil {
		return "", err
	}
	for _, n := range notes {
		if n.ID == id {
			return n.Text, nil
		}
	}
	return "", errs.InvalidFields(errs.Field{
		Path: errs.At("saved_note"), Message: "was deleted meanwhile; choose another one or write the note",
	})
}

// saveNote saves the note for reuse, if the form has a title for it.
func (v *visit) saveNote(note string) error {
	title := v.value("save_as")
	if title == "" {
		return nil
	}
	if note == "" {
		return errs.InvalidFields(errs.Field{Path: errs.At("resolution_note"), Message: "is required to be saved"})
	}
	a, err := v.access(identity.ManageNotes)
	if err != nil {
		return err
	}
	notes, err := v.savedNotes()
	if err != nil {
		return err
	}
	for _, n := range notes {
		if n.Title == title && n.Text == note {
			return nil // the form was sent twice
		}
	}
	_, err = v.Proposals.CreateNote(v.r.Context(), a, proposal.NoteCreation{Title: title, Text: note})
	if e := errs.As(err); err != nil && e.Kind == errs.Invalid {
		return errs.InvalidFields(errs.Field{Path: errs.At("save_as"), Message: e.Fields[0].Message})
	}
	return err
}

// notDone is a proposal whose decision failed.
type notDone struct{ ID, Reason string }

// decideAll decides the proposals, and returns those that failed.
func (v *visit) decideAll(a identity.Access, picks []pick, to proposal.Status, note string) ([]notDone, error) {
	once, err := v.once()
	if err != nil {
		return nil, err
	}
	cmd := proposal.Bulk{Status: to, Note: note, Once: once}
	for _, p := range picks {
		cmd.Items = append(cmd.Items, proposal.BulkItem{ID: p.ID, TextVersion: p.TextVersion})
	}
	if err := cmd.Validate(); err != nil {
		return nil, err
	}
	if err := v.saveNote(note); err != nil {
		return nil, err
	}
	results, err := v.Proposals.ResolveAll(v.r.Context(), a, cmd)
	if err != nil {
		return nil, err
	}
	var failed []notDone
	for _, r := range results {
		if r.Err == nil {
			continue
		}
		if status := errs.KindOf(r.Err); status == errs.Internal || status == errs.Unavailable {
			v.Logger.WarnContext(v.r.Context(), "deciding a proposal failed", "id", r.ID, "error", r.Err)
		}
		failed = append(failed, notDone{r.ID, reasonOf(r.Err)})
	}
	return failed, nil
}
