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

// loadIssuers reads the trusted identity providers from the configured file. A provider is
// contacted when it is first needed.
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

// warnOfUnknownOrgs logs a warning for issuers whose org does not exist.
func (s *Server) warnOfUnknownOrgs(ctx context.Context) error {
	if len(s.issuers) == 0 {
		return nil
	}
	orgs, err := s.store.Identity().Orgs(ctx)
	for _, p := range s.issuers {
		if !slices.ContainsFunc(orgs, func(o identity.Org) bool { return o.ID == p.Org }) {
			s.log.Warn("the org of an issuer does not exist; create it, or correct --issuers",
				"issuer", p.Name, "org", p.Org)
		}
	}
	return err
}

// newIssuers makes the server accept access tokens of the issuers.
func (s *Server) newIssuers() {
	if s.external = sso.NewVerifier(s.issuers, s.store.Identity(), Now); s.external != nil {
		s.auth.AcceptExternal(s.external)
	}
}

// otherIssuers returns the issuers whose tokens are accepted.
func (s *Server) otherIssuers() []string {
	if s.external == nil {
		return nil
	}
	return s.external.Issuers()
}

// providers returns the issuers that people can sign in with.
func (s *Server) providers() []web.Provider {
	var out []web.Provider
	for _, p := range s.issuers {
		if p.SignIn != nil {
			out = append(out, provider{p})
		}
	}
	return out
}

// provider adapts an issuer to the interface of the pages.
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
func (p provider) Arrived(
	ctx context.Context, callback, code, nonce, verifier, issuer string,
) (account.Arrival, error) {
	return p.op.Arrived(ctx, callback, code, nonce, verifier, issuer)
}
