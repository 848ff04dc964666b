package web

import (
	"net/http"

	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
)

// frictionView is the page of reported friction, last reported first.
type frictionView struct {
	Threshold int
	Rows      []friction.Friction
	Pager     cursorLinks
}

func (v *visit) frictionPage() error {
	a, err := v.access(identity.ReadFriction)
	if err != nil {
		return err
	}
	ctx := v.r.Context()
	page, err := v.Frictions.List(ctx, a, v.r.URL.Query().Get("cursor"), adminPerPage)
	if err != nil {
		return err
	}
	out := frictionView{Rows: page.Frictions, Pager: v.cursorPager(page.Next)}
	if out.Threshold, err = v.Frictions.Threshold(ctx, a); err != nil {
		return err
	}
	return render(v, http.StatusOK, "friction", "Reported friction", out)
}

// frictionOne is the page of one friction with its evidence.
type frictionOne struct {
	friction.Friction
	Threshold int
	Evidence  []friction.Evidence
}

func (v *visit) frictionOnePage() error {
	a, err := v.access(identity.ReadFriction)
	if err != nil {
		return err
	}
	ctx := v.r.Context()
	var out frictionOne
	if out.Friction, out.Evidence, err = v.Frictions.Get(ctx, a, v.r.PathValue("fingerprint")); err != nil {
		return err
	}
	if out.Threshold, err = v.Frictions.Threshold(ctx, a); err != nil {
		return err
	}
	return render(v, http.StatusOK, "friction_one", out.Title, out)
}
