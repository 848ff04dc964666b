package oauth

import (
	"context"
	"slices"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// kept returns a client that the store has; any other is empty. What a client may ask
// for can be narrowed, so a grant is looked at together with its client.
func (s *Service) kept(ctx context.Context, id string) (Client, error) {
	c, _, err := s.store.Client(ctx, id)
	if err != nil && errs.KindOf(err) == errs.NotFound {
		return Client{}, nil
	}
	return c, err
}

// fits reports whether a client that may ask for these scopes may have the others. One
// without scopes is not kept here, and nothing is known against it. A restriction to
// agents matters only to rights that are about agents.
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

// leftTo is what of the scopes a client still may have.
func leftTo(client, scopes identity.Scopes) identity.Scopes {
	if fits(client, scopes) {
		return scopes
	}
	return Narrow(client, scopes)
}
