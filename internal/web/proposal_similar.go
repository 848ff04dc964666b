package web

import (
	"net/http"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/proposal"
)

// similarView lists likely duplicates of a text.
type similarView struct {
	Base   string
	Looked bool // a search was made, so an empty result is shown
	Busy   bool // the search timed out
	Items  []proposal.Likely
}

func (v *visit) similarView(title, problem, except string) (similarView, error) {
	items, err := v.similarTo(title, problem, except)
	if err != nil && errs.KindOf(err) == errs.Unavailable {
		return similarView{Busy: true}, nil
	}
	return similarView{Base: v.base(), Looked: true, Items: items}, err
}

// maxSimilarText limits the part of a problem that a script sends while it is typed.
const maxSimilarText = 2_000

// similarFragment serves a script that searches for likely duplicates while the user types.
func (v *visit) similarFragment() error {
	q := v.r.URL.Query()
	title, problem := clipRunes(q.Get("title"), proposal.MaxTitle), clipRunes(q.Get("problem"), maxSimilarText)
	view, err := v.similarView(title, problem, q.Get("except"))
	if err != nil {
		return err
	}
	return v.writePart(http.StatusOK, "proposal_form", "similar list", view)
}
