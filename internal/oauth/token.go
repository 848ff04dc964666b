package oauth

import (
	"context"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// TokenScopes returns the scopes of a new token: those that were granted, are wanted now, and
// that the principal and the client may still have.
func (s *Service) TokenScopes(
	ctx context.Context, g Grant, m identity.Member, wanted identity.Scopes,
) (identity.Scopes, error) {
	out := Narrow(g.Scopes, wanted)
	if g.Principal.Kind == identity.User {
		out = Within(m, out)
		c, err := s.kept(ctx, g.ClientID)
		if err != nil {
			return nil, err
		}
		out = leftTo(c.Scopes, out)
	}
	if len(out) == 0 || m.Disabled {
		return nil, errs.New(errs.Invalid, "oauth.nothing_granted", "none of the granted scopes is available any more")
	}
	return out, nil
}

// Issue stores a new token.
func (s *Service) Issue(ctx context.Context, g Grant, t Token, h identity.Hash) error {
	t.ID = s.newID("tok-")
	return s.tokens.CreateToken(ctx, t, h, s.entry(ctx, g, TokenIssue, t.ID, t.Scopes.String()))
}

// Token returns a token with everything that Works depends on.
func (s *Service) Token(ctx context.Context, h identity.Hash) (TokenState, error) {
	return s.tokens.TokenByHash(ctx, h)
}

// RevokeToken ends one token.
func (s *Service) RevokeToken(ctx context.Context, st TokenState, h identity.Hash) error {
	return s.tokens.RevokeToken(ctx, h, s.now(), s.entry(ctx, st.Grant, TokenRevoke, st.ID, ""))
}

// CallerByToken implements identity.Tokens.
func (s *Service) CallerByToken(ctx context.Context, h identity.Hash) (*identity.Caller, error) {
	st, err := s.tokens.TokenByHash(ctx, h)
	if err != nil {
		return nil, err
	}
	if !s.Works(&st) {
		return nil, errs.ErrNotFound
	}
	ends := st.ExpiresAt
	if st.Key != nil && !st.Key.ExpiresAt.IsZero() && st.Key.ExpiresAt.Before(ends) {
		ends = st.Key.ExpiresAt
	}
	return &identity.Caller{
		Principal: st.Grant.Principal, KeyID: st.ID, Scopes: st.Scopes, ExpiresAt: ends, Audience: st.Audience,
		Delegated: st.Grant.Principal.Kind == identity.User,
	}, nil
}

// Works reports whether the token can be used: neither it nor its grant has ended, and its
// principal and its client may still have all its scopes. The scopes of a token never change.
// A token with too many scopes does not work; a refresh returns one with the remaining ones.
func (s *Service) Works(st *TokenState) bool {
	now := s.now()
	if !st.RevokedAt.IsZero() || !st.Grant.RevokedAt.IsZero() || !now.Before(st.ExpiresAt) || st.Member.Disabled {
		return false
	}
	if st.Grant.Principal.Kind == identity.User {
		rights, _ := agents(st.Scopes)
		return within(Entitled(st.Member), rights) && fits(st.ClientScopes, st.Scopes)
	}
	return st.Key != nil && st.Key.Live(now) && within(st.Key.Scopes, st.Scopes)
}
