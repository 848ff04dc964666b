package web

import (
	"net/http"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// confirmFor is how long a sign-in counts as a confirmation for users without a password.
const confirmFor = 10 * time.Minute

var errSignInAgain = errs.New(errs.Forbidden, "account.sign_in_again",
	"you have no password to confirm this, and you signed in more than ten minutes ago; sign in again first")

// Confirm checks that the user at the browser is the one who signed in as m, before an
// irreversible action such as creating a key with svc:admin:admin. A membership that another one
// opened is confirmed with the password of that one. Without any password, a sign-in within the
// last ten minutes counts. Attempts are rate limited like sign-ins. A wrong password is an
// errs.Invalid with the code account.WrongPassword.
func (p *Pages) Confirm(r *http.Request, m *identity.Member, password string) error {
	list := p.entries(r.Context())
	i := inOrg(list, m.Org)
	if i < 0 || list[i].User != m.ID {
		return identity.ErrMissing
	}
	who, e := m.Principal, &list[i]
	has, err := p.Accounts.HasPassword(r.Context(), who)
	if err == nil && !has && e.Via != nil {
		who = identity.Principal{Org: e.Via.Org, Kind: identity.User, ID: e.Via.User}
		has, err = p.Accounts.HasPassword(r.Context(), who)
	}
	switch {
	case err != nil:
		return err
	case has:
	case p.Now().Sub(time.Unix(e.At, 0)) <= confirmFor:
		return nil
	default:
		return errSignInAgain
	}
	if err := p.byAddress.Take(p.router.ClientAddr(r).String()); err != nil {
		return err
	}
	return p.guess(r, who.Org, who.ID, func() (wrong bool, err error) {
		err = p.Accounts.CheckOwnPassword(r.Context(), who, password)
		return errs.As(err).Code == account.WrongPassword, err
	})
}
