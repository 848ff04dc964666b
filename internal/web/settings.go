package web

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

func (p *Pages) mountSettings() {
	p.orgPages(map[string]handler{
		"GET /settings":                    (*visit).settingsPage,
		"POST /settings/friction":          (*visit).setFriction,
		"POST /settings/notes":             (*visit).createNote,
		"POST /settings/notes/{id}/delete": (*visit).deleteNote,
		"GET /settings/deliveries":         (*visit).deliveriesPage,
		"POST /settings/deliveries":        (*visit).retryDelivery,
		"GET /friction":                    (*visit).frictionPage,
		"GET /friction/{fingerprint}":      (*visit).frictionOnePage,
	})
}

// settingsView is the settings page of the org.
type settingsView struct {
	Threshold string
	Files     bool // reports file proposals
	Changed   bool // the two above are from the form
	Default   int
	Min, Max  int

	Notes    []proposal.SavedNote
	Note     proposal.NoteCreation // values of the form for a new note
	MaxTitle int
	MaxText  int
}

func (v *visit) settingsPage() error { return v.showSettings(nil, nil) }

// showSettings shows the settings, with the values of a form that was rejected.
func (v *visit) showSettings(typed *settingsView, problem error) error {
	if _, err := v.access(identity.ManageFriction); err != nil {
		return err
	}
	a, err := v.access(identity.ReadFriction)
	if err != nil {
		return err
	}
	out := settingsView{
		Default: friction.DefaultThreshold, Min: friction.MinThreshold, Max: friction.MaxThreshold,
		MaxTitle: proposal.MaxNoteTitle, MaxText: proposal.MaxNote,
	}
	n, err := v.Frictions.Threshold(v.r.Context(), a)
	if err != nil {
		return err
	}
	out.Files, out.Threshold = n != friction.Off, strconv.Itoa(n)
	if !out.Files {
		out.Threshold = strconv.Itoa(friction.DefaultThreshold)
	}
	if out.Notes, err = v.savedNotes(); err != nil {
		return err
	}
	if typed != nil {
		out.Note = typed.Note
		if typed.Changed {
			out.Files, out.Threshold = typed.Files, typed.Threshold
		}
	}
	return renderForm(v, http.StatusOK, "settings", "Settings", out, problem)
}

// setFriction sets the number of reports that file a proposal.
func (v *visit) setFriction() error {
	a, err := v.access(identity.ManageFriction)
	if err != nil {
		return v.audited(friction.ThresholdSet, "", err)
	}
	typed := settingsView{Changed: true, Files: v.value("files") != "", Threshold: v.value("threshold")}
	if _, sent := v.r.PostForm["threshold"]; !sent { // an incomplete form must not turn it off
		missing := fieldError("threshold", "is missing; send the form again")
		return v.showSettings(&typed, v.audited(friction.ThresholdSet, "", missing))
	}
	n, said := friction.Off, "Reported friction no longer files proposals."
	if typed.Files {
		if n, err = strconv.Atoi(typed.Threshold); err != nil || n == friction.Off {
			n = -1 // never a valid threshold
		}
		said = "From now on " + plural(int64(n), "report files", "reports file") + " a proposal. Earlier reports count."
	}
	if err := friction.ValidateThreshold(n); err != nil {
		err = fieldError("threshold",
			fmt.Sprintf("must be a number from %d to %d", friction.MinThreshold, friction.MaxThreshold))
		return v.showSettings(&typed, v.audited(friction.ThresholdSet, "", err))
	}
	if err := v.Frictions.SetThreshold(v.r.Context(), a, n); err != nil {
		return v.showSettings(&typed, v.audited(friction.ThresholdSet, "", err))
	}
	return v.done(v.base()+"/settings", said)
}
