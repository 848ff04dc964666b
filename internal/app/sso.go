package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/sso"
	"github.com/parley-dev/parley/internal/web"
)

// loadIssuers reads which other identity providers are trusted. They are asked when
// they are first needed.
func (s *Server) loadIssuers() error {
	if s.cfg.Issuers == "" {
		return nil
	}
	list, err := sso.Load(s.cfg.Issuers)
	if err != nil {
		return fmt.Errorf("--issuers: %w", err)
	}
	s.issuers = sso.New(list, s.log, Now)
	return nil
}

// warnOfUnknownOrgs points out issuers that can let nobody in yet.
func (s *Server) warnOfUnknownOrgs(ctx context.Context) error {
	if len(s.issuers) == 0 {
		return nil
	}
	orgs, err := s.store.Identity().Orgs(ctx)
	for _, p := range s.issuers {
		if !slices.ContainsFunc(orgs, func(o identity.Org) bool { return o.ID == p.Org }) {
			s.log.Warn("an issuer is for an org that does not exist; create it, or correct --issuers", "issuer", p.Name, "org", p.Org)
		}
	}
	return err
}

// newIssuers lets their access tokens in.
func (s *Server) newIssuers() {
	if s.external = sso.NewVerifier(s.issuers, s.store.Identity(), Now); s.external != nil {
		s.auth.AcceptExternal(s.external)
	}
}

// otherIssuers are those whose tokens are taken.
func (s *Server) otherIssuers() []string {
	if s.external == nil {
		return nil
	}
	return s.external.Issuers()
}

// providers are those with which people sign in, as the pages know them.
func (s *Server) providers() []web.Provider {
	var out []web.Provider
	for _, p := range s.issuers {
		if p.SignIn != nil {
			out = append(out, provider{p})
		}
	}
	return out
}

// provider shows the pages one of ours.
type provider struct{ op *sso.Provider }

// Is implements web.Provider.
func (p provider) Is() web.ProviderName {
	return web.ProviderName{Name: p.op.Name, Title: p.op.Title, Issuer: p.op.Issuer.Issuer, Org: p.op.Org}
}

// Address implements web.Provider.
func (p provider) Address(ctx context.Context, callback, state, nonce, verifier string) (string, error) {
	return p.op.Address(ctx, callback, state, nonce, verifier)
}

// Arrived implements web.Provider.
func (p provider) Arrived(ctx context.Context, callback, code, nonce, verifier, issuer string) (account.Arrival, error) {
	return p.op.Arrived(ctx, callback, code, nonce, verifier, issuer)
}
