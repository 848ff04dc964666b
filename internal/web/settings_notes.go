package web

import (
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// createNote saves a reusable resolution note.
func (v *visit) createNote() error {
	typed := proposal.NoteCreation{Title: v.value("title"), Text: v.text("text")}
	a, err := v.access(identity.ManageNotes)
	if err != nil {
		return v.audited(proposal.NoteCreate, "", err)
	}
	ctx, _, err := v.begin()
	if err == nil {
		_, err = v.Proposals.CreateNote(ctx, a, typed)
	}
	if err != nil {
		return v.showSettings(&settingsView{Note: typed}, v.audited(proposal.NoteCreate, "", err))
	}
	return v.done(v.base()+"/settings#notes", "The note was saved.")
}

// deleteNote deletes a saved note. Proposals that were decided with it keep its text.
func (v *visit) deleteNote() error {
	id := v.r.PathValue("id")
	a, err := v.access(identity.ManageNotes)
	if err != nil {
		return v.audited(proposal.NoteDelete, id, err)
	}
	n, err := v.Proposals.DeleteNote(v.r.Context(), a, id)
	switch {
	case err != nil && errs.KindOf(err) == errs.NotFound:
		return v.done(v.base()+"/settings#notes", refusal("This note no longer exists."))
	case err != nil:
		return v.showSettings(nil, v.audited(proposal.NoteDelete, id, err))
	}
	return v.done(v.base()+"/settings#notes", "The note “"+n.Title+"” was deleted.")
}
