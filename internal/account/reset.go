package account

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// CheckLifetime returns an error if the lifetime of a link is out of bounds.
func CheckLifetime(d time.Duration) error {
	if d < time.Second || d > MaxLinkLifetime {
		return errs.InvalidFields(errs.NewField("expires_in",
			fmt.Sprintf("must be an integer between 1 and %d", int(MaxLinkLifetime/time.Second))))
	}
	return nil
}

// ResetLink creates a link with which a user of the org sets a new password, and returns its
// token, which cannot be read again. It replaces earlier links of the user. Using the link
// ends the user's sessions and unlinks the membership from those in other orgs.
func (a *Accounts) ResetLink(
	ctx context.Context, by identity.Access, p identity.Principal, lifetime time.Duration,
) (token string, _ Link, _ error) {
	if err := by.For(identity.ManageMembers); err != nil {
		return "", Link{}, err
	}
	if p.Org != by.Org() {
		return "", Link{}, errs.ErrNotFound
	}
	if p.Kind != identity.User {
		return "", Link{}, conflict("account.not_a_user",
			"%s cannot sign in: only users have passwords; make a key for it instead", p.Ref())
	}
	if p == by.Principal() && by.Caller().IsSession() {
		// Otherwise anyone at an unattended browser could set the password without knowing it.
		return "", Link{}, conflict("account.own_link",
			"change your own password on the page of your account, or ask another admin for a link")
	}
	if err := CheckLifetime(lifetime); err != nil {
		return "", Link{}, err
	}
	o := identity.OriginOf(ctx)
	o.Actor, o.KeyID = by.Principal().Ref(), by.Caller().KeyID
	token, l, err := newLink(identity.WithOrigin(ctx, o), a.store, p, a.now(), lifetime)
	if err != nil && errs.KindOf(err) == errs.NotFound {
		err = errs.ErrNotFound
	}
	return token, l, err
}
