package oauth

import (
	"context"
	"slices"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// kept returns a stored client. For a client that is not stored it returns the zero Client.
// The scopes of a client may have been narrowed after the grant.
func (s *Service) kept(ctx context.Context, id string) (Client, error) {
	c, _, err := s.clients.Client(ctx, id)
	if err != nil && errs.KindOf(err) == errs.NotFound {
		return Client{}, nil
	}
	return c, err
}

// fits reports whether a client with the given scopes may have scopes. A client without
// scopes is not stored, so it may have all. A restriction to agents matters only for the
// scopes in forAgents.
func fits(client, scopes identity.Scopes) bool {
	if len(client) == 0 {
		return true
	}
	can, within := agents(client)
	rights, only := agents(scopes)
	if slices.ContainsFunc(rights, func(s identity.Scope) bool { return !can.Has(s) }) {
		return false
	}
	if len(within) == 0 || within.Has("agent:*") || !slices.ContainsFunc(rights, forAgents.Has) {
		return true
	}
	return len(only) > 0 && !slices.ContainsFunc(only, func(s identity.Scope) bool { return !within.Has(s) })
}

// leftTo returns the scopes that a client may still have.
func leftTo(client, scopes identity.Scopes) identity.Scopes {
	if fits(client, scopes) {
		return scopes
	}
	return Narrow(client, scopes)
}
