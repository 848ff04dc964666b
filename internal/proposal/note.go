package proposal

import (
	"context"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// Limits of saved notes.
const (
	MaxNotes     = 100 // per org
	MaxNoteTitle = 100 // characters
)

// Actions in the audit log.
const (
	NoteCreate identity.AuditAction = "note.create"
	NoteDelete identity.AuditAction = "note.delete"
)

// SavedNote is a resolution note that the admins of an org use often.
type SavedNote struct {
	Org       string
	ID        string
	Title     string
	Text      string // of the resolution note
	CreatedBy string // a ref
	CreatedAt time.Time
}

// NoteCreation creates a saved note.
type NoteCreation struct{ Title, Text string }

// Validate reports every field that breaks a rule.
func (n *NoteCreation) Validate() error {
	var c check
	c.text("title", n.Title, text.Rule{Form: text.Line, Max: MaxNoteTitle})
	c.text("text", n.Text, text.Rule{Max: MaxNote, Required: true})
	return c.err()
}

var noteQuota = identity.Quota{
	Most: MaxNotes, Code: "quota.notes",
	Message: "the org has %d saved notes, which is the limit; delete some that are not used",
}

const notePrefix = "note-"

// ValidNoteID reports whether s has the form of a note's id.
func ValidNoteID(s string) bool {
	rest, ok := strings.CutPrefix(s, notePrefix)
	return ok && validSuffix(rest)
}

// Notes lists the saved notes of the org by title, for callers who may resolve proposals.
func (s *Proposals) Notes(ctx context.Context, a identity.Access) ([]SavedNote, error) {
	if err := a.For(identity.ResolveProposal); err != nil {
		return nil, err
	}
	return s.store.Notes(ctx, a.Org())
}

// CreateNote saves a note.
func (s *Proposals) CreateNote(ctx context.Context, a identity.Access, cmd NoteCreation) (SavedNote, error) {
	if err := a.For(identity.ManageNotes); err != nil {
		return SavedNote{}, err
	}
	if err := cmd.Validate(); err != nil {
		return SavedNote{}, err
	}
	n := SavedNote{
		Org: a.Org(), ID: s.newID(notePrefix), Title: cmd.Title, Text: cmd.Text,
		CreatedBy: a.Principal().Ref(), CreatedAt: s.now(),
	}
	return s.store.CreateNote(ctx, n, identity.NewEntry(ctx, n.CreatedAt, n.Org, NoteCreate, n.ID, n.Title), noteQuota)
}

// DeleteNote deletes a saved note and returns it. Proposals that were decided with it keep its
// text.
func (s *Proposals) DeleteNote(ctx context.Context, a identity.Access, id string) (SavedNote, error) {
	if err := a.For(identity.ManageNotes); err != nil {
		return SavedNote{}, err
	}
	if !ValidNoteID(id) {
		return SavedNote{}, errs.ErrNotFound
	}
	return s.store.DeleteNote(ctx, a.Org(), id, func(n SavedNote) identity.AuditEntry {
		return identity.NewEntry(ctx, s.now(), n.Org, NoteDelete, n.ID, n.Title)
	})
}
