package web

import (
	"net/http"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Confirm checks that the person at the browser is the one who signed in as m.
func (p *Pages) Confirm(r *http.Request, m *identity.Member, password string) error {
	return p.guess(r, m.Org, m.ID, func() (wrong bool, err error) {
		_, err = p.Accounts.Login(r.Context(), m.Org, m.ID, password)
		return err != nil && errs.KindOf(err) == errs.Unauthenticated, err
	})
}
