package app

import (
	"context"
	"slices"
	"strings"

	"github.com/parley-dev/parley/internal/a2a"
	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/authserver"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/mcp"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/outbound"
	"github.com/parley-dev/parley/internal/web"
)

// base returns the URL that browsers and clients use: the public one, or else the one that
// the server listens on. It is never taken from a request.
func (s *Server) base() string {
	if s.cfg.PublicURL != "" {
		return strings.TrimRight(s.cfg.PublicURL, "/")
	}
	return s.URL()
}

// newLogin makes the services for sign-in and OAuth.
func (s *Server) newLogin(ids *ids) {
	s.accounts = account.New(s.store.Accounts(), s.store.Audit(), web.NewArgon2id(s.cost), Now)
	s.oauth = oauth.New(oauth.Options{
		Stores: s.store.OAuthStores(), Agents: s.directory, Now: s.now, NewID: ids.next,
		Lifetimes:  oauth.Lifetimes{Token: s.cfg.TokenLifetime, Refresh: s.cfg.RefreshLifetime},
		MaxClients: s.cfg.MaxClients,
	})
	s.auth.AcceptTokens(s.oauth)
	s.newIssuers()
}

// mountPages adds the pages and the authorization server.
func (s *Server) mountPages(router *httpx.Router, o web.Options) error {
	pages, err := web.New(router, o)
	if err != nil {
		return err
	}
	pages.Mount()
	router.AcceptSessions(pages)
	documents, err := s.clientDocuments()
	if err != nil {
		return err
	}
	return authserver.Mount(router, authserver.Options{
		Service: s.oauth, Requests: s.store.OAuth(), Members: s.store.Identity(), Pages: pages, Issuer: s.base(),
		Only: []string{mcp.Path}, Others: s.otherIssuers(), Documents: documents, Logger: s.log, Now: Now,
	})
}

// oauthURLs returns the URLs where clients of agents get access tokens.
func (s *Server) oauthURLs() *a2a.OAuthURLs {
	at := s.base()
	return &a2a.OAuthURLs{
		Authorize: at + authserver.AuthorizePath,
		Token:     at + authserver.TokenPath,
		Metadata:  at + authserver.ServerMetadata,
	}
}

// clientDocuments returns the HTTP guard for client documents, or nil if they are turned off.
func (s *Server) clientDocuments() (*outbound.Guard, error) {
	if !s.cfg.ClientDocuments {
		return nil, nil
	}
	return outbound.New(outbound.Options{
		Allow: slices.Concat(s.cfg.OutboundAllow, s.cfg.ClientDocumentsAllow), Flag: outboundFlag,
	})
}

// newFirstLink makes the link with which the first admin sets a password.
func (s *Server) newFirstLink(ctx context.Context) error {
	if s.first == nil {
		return nil
	}
	token, _, err := account.NewOperator(s.store.Accounts(), Now).NewLink(ctx, s.first.Admin.Principal)
	if err != nil {
		return err
	}
	s.link = s.base() + "/setup/" + token
	return nil
}

// Link returns the URL where the first admin sets a password. It is empty unless the store
// was empty.
func (s *Server) Link() string { return s.link }
