package account

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// Operator is what the operator does to the accounts of any org, with direct access to the
// data. No transport serves it, so it takes no Access. What people do to their own accounts
// is Accounts.
type Operator struct {
	links LinkCreator
	now   func() time.Time
}

// NewOperator returns the service.
func NewOperator(links LinkCreator, now func() time.Time) *Operator {
	return &Operator{links: links, now: now}
}

// NewLink makes a link for a user that exists, and returns its token. The server also uses
// it at its first start. Admins of an org use Accounts.ResetLink.
func (o *Operator) NewLink(ctx context.Context, p identity.Principal) (token string, _ Link, _ error) {
	return newLink(ctx, o.links, p, o.now(), LinkLifetime)
}
