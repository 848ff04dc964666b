package oauth

import (
	"context"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Program is a client that may act for a person, by one grant.
type Program struct {
	Grant
	Name   string
	UsedAt time.Time // when it last got a token, or when the grant was created

	ClientScopes identity.Scopes // the scopes that the client may request now; empty: not stored
}

// MaxPrograms is the maximum length of the list of a person's programs.
const MaxPrograms = 100

// Programs lists the programs that may act for the caller, newest first, and reports whether
// there are more than MaxPrograms. Scopes that the client may no longer have are omitted.
func (s *Service) Programs(ctx context.Context, a identity.Access) (list []Program, more bool, err error) {
	if err := a.For(identity.ManageOwnCredentials); err != nil {
		return nil, false, err
	}
	now := s.now()
	if list, err = s.grants.Programs(ctx, a.Principal(), now, MaxPrograms+1); err != nil {
		return nil, false, err
	}
	if more = len(list) > MaxPrograms; more {
		list = list[:MaxPrograms]
	}
	for i := range list {
		g := &list[i]
		if g.ClientID == CommandLine.ID {
			g.Name = CommandLine.Name
		}
		g.Scopes = leftTo(g.ClientScopes, g.Scopes)
		// Each use of a refresh token starts its lifetime again, so the last use follows from
		// the expiry. It is wrong if the lifetime setting changed, but stays between the
		// creation of the grant and now.
		g.UsedAt = g.CreatedAt
		if at := g.RefreshExpires.Add(-s.lifetimes.Refresh); at.After(g.CreatedAt) && !at.After(now) {
			g.UsedAt = at
		}
	}
	return list, more, nil
}

// EndProgram revokes a grant of the caller. A grant of someone else or one that has ended is
// NotFound.
func (s *Service) EndProgram(ctx context.Context, a identity.Access, id string) error {
	if err := a.For(identity.ManageOwnCredentials); err != nil {
		return err
	}
	if !strings.HasPrefix(id, grantPrefix) || len(id) > 64 {
		return errs.ErrNotFound
	}
	g, err := s.grants.GrantOf(ctx, a.Principal(), id)
	if err != nil {
		return err
	}
	e := s.entry(ctx, g, GrantRevoke, g.ID, "by the user, on the account page")
	ended, err := s.grants.RevokeGrant(ctx, g.ID, s.now(), e)
	if err == nil && !ended {
		err = errs.ErrNotFound
	}
	return err
}
