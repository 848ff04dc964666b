package sso

import (
	"context"
	"crypto/subtle"
	"errors"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/text"
)

// Bounds of the claims of a person.
const (
	maxSubject = 255 // OpenID Connect, 2
	maxLabel   = 200
)

// Address returns the URL of the provider where the person signs in. The provider redirects
// back to callback. The verifier is the PKCE secret for Arrived.
func (p *Provider) Address(ctx context.Context, callback, state, nonce, verifier string) (string, error) {
	d, err := p.document.get(ctx)
	if err != nil {
		return "", p.away(err)
	}
	return p.oauthClient(d, callback).AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), nil
}

func (p *Provider) oauthClient(d *document, callback string) *oauth2.Config {
	endpoint := d.Endpoint()
	endpoint.AuthStyle = d.style
	if p.SignIn.secret == "" {
		endpoint.AuthStyle = oauth2.AuthStyleInParams // a public client sends its id only
	}
	return &oauth2.Config{
		ClientID: p.SignIn.ClientID, ClientSecret: p.SignIn.secret, Endpoint: endpoint,
		RedirectURL: callback, Scopes: p.SignIn.Scopes,
	}
}

func refused(code, msg string) error { return errs.New(errs.Forbidden, code, "%s", msg) }

// Arrived exchanges the code of the redirect for tokens and returns the federated login.
// issuer is the iss parameter of the redirect, if it had one.
func (p *Provider) Arrived(
	ctx context.Context, callback, code, nonce, verifier, issuer string,
) (account.Arrival, error) {
	var none account.Arrival
	d, err := p.document.get(ctx)
	if err != nil {
		return none, p.away(err)
	}
	if issuer != p.Issuer.Issuer && (issuer != "" || d.sendIs) {
		return none, refused("auth.other_issuer", "the response is from a different provider; start again")
	}
	ctx = oidc.ClientContext(ctx, p.client)
	tokens, err := p.oauthClient(d, callback).Exchange(ctx, code, oauth2.VerifierOption(verifier))
	var said *oauth2.RetrieveError
	switch {
	case errors.As(err, &said) && said.Response.StatusCode < 500:
		p.log.WarnContext(ctx, "an identity provider refused a code",
			"issuer", p.Name, "status", said.Response.StatusCode, "code", said.ErrorCode)
		return none, refused("auth.code_refused", p.Title+" did not confirm that you signed in there; start again")
	case err != nil:
		p.log.WarnContext(ctx, "cannot exchange a code at an identity provider", "issuer", p.Name, "error", err)
		return none, p.away(err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	keys := &keySet{p: p, insist: true}
	id, err := oidc.NewVerifier(p.Issuer.Issuer, keys, &oidc.Config{
		ClientID: p.SignIn.ClientID, SupportedSigningAlgs: algorithms, Now: p.lenient,
	}).Verify(ctx, raw)
	if err != nil {
		p.log.WarnContext(ctx, "cannot verify an ID token", "issuer", p.Name, "error", err)
		if keys.away != nil {
			return none, p.away(keys.away)
		}
		return none, refused("auth.bad_id_token", "the ID token from "+p.Title+" cannot be verified; "+
			"start again, and tell the operator of this server if it happens again")
	}
	var c claims
	if err := id.Claims(&c); err != nil {
		return none, refused("auth.bad_id_token", "the ID token from "+p.Title+" is malformed")
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1:
		return none, refused("auth.bad_nonce", "the ID token from "+p.Title+" is for a different sign-in; start again")
	case len(id.Audience) > 1 && c.text("azp") != p.SignIn.ClientID:
		return none, refused("auth.bad_id_token", "the ID token from "+p.Title+" is for a different client")
	case id.Subject == "" || len(id.Subject) > maxSubject || !plainText(id.Subject, maxSubject):
		return none, refused("auth.bad_id_token", "the ID token from "+p.Title+" has no usable subject")
	}
	if err := p.askMore(ctx, d, tokens, id.Subject, c); err != nil {
		return none, err
	}
	return p.arrival(id.Subject, c), nil
}

// askMore adds the claims of the userinfo endpoint, if a needed claim is missing. The claims of
// the ID token take precedence.
func (p *Provider) askMore(ctx context.Context, d *document, tokens *oauth2.Token, subject string, c claims) error {
	missing := false
	for _, claim := range p.SignIn.needs() {
		_, ok := c.find(claim)
		missing = missing || !ok
	}
	if !missing || d.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := d.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		p.log.WarnContext(ctx, "cannot read the userinfo of an identity provider", "issuer", p.Name, "error", err)
		return p.away(err)
	}
	if info.Subject != subject {
		return refused("auth.bad_id_token", "the userinfo from "+p.Title+" is for a different user")
	}
	var more claims
	if err := info.Claims(&more); err != nil {
		return refused("auth.bad_id_token", "the userinfo from "+p.Title+" is malformed")
	}
	for k, v := range more {
		if _, ok := c[k]; !ok {
			c[k] = v
		}
	}
	return nil
}

// needs returns the claims that are needed for decisions.
func (s *SignIn) needs() []string {
	out := []string{s.UserClaim}
	if s.UserClaim == "email" {
		out = append(out, "email_verified")
	}
	for _, m := range []*Match{s.Require, s.Admin} {
		if m != nil {
			out = append(out, m.Claim)
		}
	}
	return out
}

func (p *Provider) arrival(subject string, c claims) account.Arrival {
	a := account.Arrival{
		Org: p.Org, Issuer: p.Issuer.Issuer, Subject: subject, Provider: p.Title,
		Create: p.SignIn.CreateUsers, Name: display(c.text("name")),
	}
	a.User, a.NoUser = p.SignIn.userName(c, p.Title)
	if m := p.SignIn.Require; m != nil && !c.matches(m.Claim, m.Value) {
		a.Barred = p.Title + " knows you, but not as one of those who may sign in here; ask the operator of this server"
	}
	for _, claim := range []string{"email", "preferred_username", p.SignIn.UserClaim} {
		if a.Label = display(c.text(claim)); a.Label != "" {
			break
		}
	}
	if m := p.SignIn.Admin; m != nil {
		is := c.matches(m.Claim, m.Value)
		a.Admin = &is
	}
	return a
}

// display returns the name of a person for display.
func display(s string) string {
	s = text.CleanName(s)
	if r := []rune(s); len(r) > maxLabel {
		s = string(r[:maxLabel])
	}
	return s
}
