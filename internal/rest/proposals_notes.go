package rest

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

const (
	notesPath = "/api/v1/orgs/{org}/notes"
	notePath  = notesPath + "/{id}"
)

func (a *api) registerNotes() {
	register(a, operation{
		id: "list-notes", method: http.MethodGet, path: notesPath, tag: tagProposals,
		summary: "List saved notes", action: identity.ResolveProposal,
		description: "Reasons that admins of the org give again and again, by title; at most 100." + needsAdmin,
	}, a.listNotes)
	register(a, operation{
		id: "create-note", method: http.MethodPost, path: notesPath, tag: tagProposals, status: http.StatusCreated,
		summary: "Save a note", action: identity.ManageNotes, audit: proposal.NoteCreate, errors: []int{http.StatusConflict},
		description: "409 quota.notes: the org has 100." + needsAdmin,
	}, a.createNote)
	register(a, operation{
		id: "delete-note", method: http.MethodDelete, path: notePath, tag: tagProposals,
		summary: "Delete a saved note", action: identity.ManageNotes, validID: proposal.ValidNoteID, audit: proposal.NoteDelete,
		description: "Answers with the note as it was; again: 404. Decisions that were made with it keep its text." + needsAdmin,
	}, a.deleteNote)
}

// SavedNote is a reason that admins give again and again.
type SavedNote struct {
	ID        string `json:"id" doc:"Assigned by the service." example:"note-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Title     string `json:"title" doc:"By which it is chosen." example:"Out of scope"`
	Text      string `json:"text" doc:"The resolution note." example:"This is out of scope: it belongs into the gateway."`
	CreatedBy string `json:"created_by" doc:"Who saved it." example:"user:ada"`
	CreatedAt string `json:"created_at" format:"date-time" doc:"When it was saved." example:"2026-03-01T09:30:00.000000Z"`
}

// SavedNoteList lists the saved notes of an org.
type SavedNoteList struct {
	Notes []SavedNote `json:"notes" nullable:"false" doc:"By title."`
}

// SavedNoteCreation is the body of a new saved note.
type SavedNoteCreation struct {
	Title string `json:"title" doc:"One line by which it is chosen." example:"Out of scope"`
	Text  string `json:"text" doc:"The resolution note." example:"This is out of scope: it belongs into the gateway."`
}

// TransformSchema takes the limits from the domain.
func (SavedNoteCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "title", length(1, proposal.MaxNoteTitle), matching(titlePattern()))
	property(s, "text", length(1, proposal.MaxNote), matching(requiredPattern()))
	return s
}

func noteOf(n *proposal.SavedNote) SavedNote {
	return SavedNote{ID: n.ID, Title: n.Title, Text: n.Text, CreatedBy: n.CreatedBy, CreatedAt: stamp(n.CreatedAt)}
}

type listNotesOutput struct{ Body SavedNoteList }

func (o *listNotesOutput) weight() (n int64) {
	for i := range o.Body.Notes {
		n += int64(len(o.Body.Notes[i].Text))
	}
	return n
}

func (a *api) listNotes(ctx context.Context, c *call, _ *OrgPath) (*listNotesOutput, error) {
	list, err := a.proposals.Notes(ctx, c.Access)
	if err != nil {
		return nil, err
	}
	out := &listNotesOutput{Body: SavedNoteList{Notes: make([]SavedNote, len(list))}}
	for i := range list {
		out.Body.Notes[i] = noteOf(&list[i])
	}
	return out, nil
}

type createNoteInput struct {
	OrgPath
	OnceHeader
	Body payload[SavedNoteCreation]
}

type createNoteOutput struct {
	Replayed string `header:"Idempotency-Replayed" doc:"true, if the request had been carried out before."`
	Body     SavedNote
}

func (a *api) createNote(ctx context.Context, c *call, in *createNoteInput) (*createNoteOutput, error) {
	b := &in.Body.value
	cmd := proposal.NoteCreation{Title: b.Title, Text: b.Text}
	if err := in.Body.check(cmd.Validate()); err != nil {
		return nil, err
	}
	ctx, once, err := c.begin(ctx, b)
	if err != nil {
		return nil, err
	}
	n, err := a.proposals.CreateNote(ctx, c.Access, cmd)
	if err != nil {
		return nil, err
	}
	return &createNoteOutput{Replayed: replayed(once.Replayed()), Body: noteOf(&n)}, nil
}

type noteInput struct {
	OrgPath
	ID string `path:"id" pattern:"^note-[0-9a-z]{26}$" doc:"The note's id." example:"note-01k5xb7d2n8f4j6s0a9g3r5w1c"`
}

type noteOutput struct{ Body SavedNote }

func (a *api) deleteNote(ctx context.Context, c *call, in *noteInput) (*noteOutput, error) {
	n, err := a.proposals.DeleteNote(ctx, c.Access, in.ID)
	return &noteOutput{Body: noteOf(&n)}, err
}
