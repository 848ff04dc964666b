package web

import (
	"net/http"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/proposal"
)

// similarView lists likely duplicates of a text.
type similarView struct {
	Base   string
	Looked bool // somebody has asked; without duplicates the page says so
	Busy   bool // the search had no time
	Items  []proposal.Likely
}

func (v *visit) similarView(title, problem, except string) (similarView, error) {
	items, err := v.similarTo(title, problem, except)
	if err != nil && errs.KindOf(err) == errs.Unavailable {
		return similarView{Busy: true}, nil
	}
	return similarView{Base: v.base(), Looked: true, Items: items}, err
}

// maxSimilarText bounds what a script sends of a problem while it is typed.
const maxSimilarText = 2_000

// similarFragment answers a script that asks for likely duplicates while a person types.
func (v *visit) similarFragment() error {
	q := v.r.URL.Query()
	title, problem := clipRunes(q.Get("title"), proposal.MaxTitle), clipRunes(q.Get("problem"), maxSimilarText)
	view, err := v.similarView(title, problem, q.Get("except"))
	if err != nil {
		return err
	}
	return v.writePart(http.StatusOK, "proposal_form", "similar list", view)
}
