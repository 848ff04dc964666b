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
		description: "Reusable resolution notes of the org's admins, sorted by title; at most 100." + needsAdmin,
	}, a.listNotes)
	register(a, operation{
		id: "create-note", method: http.MethodPost, path: notesPath, tag: tagProposals, status: http.StatusCreated,
		summary: "Save a note", action: identity.ManageNotes, audit: proposal.NoteCreate, errors: []int{http.StatusConflict},
		description: "409 quota.notes if the org has 100 notes." + needsAdmin,
	}, a.createNote)
	register(a, operation{
		id: "delete-note", method: http.MethodDelete, path: notePath, tag: tagProposals,
		summary: "Delete a saved note", action: identity.ManageNotes, validID: proposal.ValidNoteID,
		audit: proposal.NoteDelete,
		description: "Returns the deleted note; 404 if repeated. Decisions that used the note keep its text." +
			needsAdmin,
	}, a.deleteNote)
}

// SavedNote is a reusable resolution note.
type SavedNote struct {
	ID        string `json:"id" doc:"Assigned by the service." example:"note-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Title     string `json:"title" doc:"Title in the list of notes." example:"Out of scope"`
	Text      string `json:"text" doc:"Text of the resolution note." example:"This is out of scope: it belongs into the gateway."`
	CreatedBy string `json:"created_by" doc:"Who saved it." example:"user:ada"`
	CreatedAt string `json:"created_at" format:"date-time" doc:"When it was saved."`
}

// SavedNoteList lists the saved notes of an org.
type SavedNoteList struct {
	Notes []SavedNote `json:"notes" nullable:"false" doc:"Sorted by title."`
}

// SavedNoteCreation is the body that saves a note.
type SavedNoteCreation struct {
	Title string `json:"title" doc:"Title in the list of notes, one line." example:"Out of scope"`
	Text  string `json:"text" doc:"Text of the resolution note." example:"This is out of scope: it belongs into the gateway."`
}

// TransformSchema adds the limits of the domain.
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
	Replayed string `header:"Idempotency-Replayed" doc:"true if an earlier request with the same key was carried out."`
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
