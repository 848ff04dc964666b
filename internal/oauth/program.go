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
	UsedAt time.Time // when it last got a token, or the grant was made

	ClientScopes identity.Scopes // what the client may ask for now; empty: it is not kept here
}

// MaxPrograms bounds the list of a person's programs.
const MaxPrograms = 100

// Programs lists what may act for the caller, newest first: MaxPrograms at most, and
// whether there are more. What its client may not have any more is not among a
// program's scopes.
func (s *Service) Programs(ctx context.Context, a identity.Access) (list []Program, more bool, err error) {
	if err := a.For(identity.ManageOwnCredentials); err != nil {
		return nil, false, err
	}
	now := s.now()
	if list, err = s.store.Programs(ctx, a.Principal(), now, MaxPrograms+1); err != nil {
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
		// A refresh token lives as long from each use anew. If the setting was changed since,
		// this can be off, but not before the grant nor after now.
		g.UsedAt = g.CreatedAt
		if at := g.RefreshExpires.Add(-s.o.Refresh); at.After(g.CreatedAt) && !at.After(now) {
			g.UsedAt = at
		}
	}
	return list, more, nil
}

// EndProgram takes a grant back that the caller made; another's is NotFound, and so is
// one that is over.
func (s *Service) EndProgram(ctx context.Context, a identity.Access, id string) error {
	if err := a.For(identity.ManageOwnCredentials); err != nil {
		return err
	}
	if !strings.HasPrefix(id, grantPrefix) || len(id) > 64 {
		return errs.ErrNotFound
	}
	g, err := s.store.GrantOf(ctx, a.Principal(), id)
	if err != nil {
		return err
	}
	ended, err := s.store.RevokeGrant(ctx, g.ID, s.now(), s.entry(ctx, g, GrantRevoke, g.ID, "by the user, on the account page"))
	if err == nil && !ended {
		err = errs.ErrNotFound
	}
	return err
}
