package web

import (
	"bytes"
	"net/http"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/proposal"
)

// similarView lists likely duplicates of a text.
type similarView struct {
	Base   string
	Looked bool // somebody has asked; without duplicates the page says so
	Items  []proposal.Item
}

func (v *visit) similarView(a identity.Access, title, problem, except string) (similarView, error) {
	items, err := v.similarTo(v.r.Context(), a, title, problem, except)
	return similarView{Base: v.base(), Looked: true, Items: items}, err
}

// maxSimilarText bounds what a script sends of a problem while it is typed.
const maxSimilarText = 2_000

// similarFragment answers a script that asks for likely duplicates while a person types.
func (v *visit) similarFragment() error {
	a, err := v.access(identity.ReadProposal)
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	title, problem := clipRunes(q.Get("title"), proposal.MaxTitle), clipRunes(q.Get("problem"), maxSimilarText)
	view, err := v.similarView(a, title, problem, q.Get("except"))
	if err != nil {
		return err
	}
	return v.fragment("proposal_form", "similar list", view)
}

// fragment shows a part of a page, for scripts.
func (v *visit) fragment(page, name string, data any) error {
	t := v.pages[page]
	if t == nil {
		return errs.New(errs.Internal, "page.unknown", "there is no page %q", page)
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	h := v.w.Header()
	pageHeaders(h, "")
	h.Set("Cache-Control", "private, no-store")
	h.Set("Vary", "Cookie")
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(b.Bytes()) // the browser went away
	return nil
}
