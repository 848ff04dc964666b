package clilogin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/parley-dev/parley/internal/oauth"
)

const (
	// early is how long before its expiry an access token is renewed, so that it does not
	// expire during a request.
	early = 30 * time.Second
	// renewWithin bounds a renewal, because other processes wait for it.
	renewWithin = 30 * time.Second
)

// Ended is the error for a login that has ended.
type Ended struct{ Server string }

func (e *Ended) Error() string {
	return fmt.Sprintf("your login at %s has ended; sign in again with: parley login --server %s", e.Server, e.Server)
}

// Source returns the access token of a login and renews it in time.
type Source struct {
	file   *File
	server string
	http   *http.Client

	mu    sync.Mutex
	login Login
}

// Source returns the source of a server's tokens, or nil if there is no login.
func (f *File) Source(server string, c *http.Client) (*Source, error) {
	l, ok, err := f.Login(server)
	if err != nil || !ok {
		return nil, err
	}
	return &Source{file: f, server: Address(server), http: c, login: l}, nil
}

// Login returns the current login.
func (s *Source) Login() Login {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.login
}

func (l *Login) fresh() bool { return time.Until(l.ExpiresAt) > early }

// Token returns an access token that has not expired.
func (s *Source) Token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.login.fresh() {
		return s.login.AccessToken, nil
	}
	return s.renew(ctx, (*Login).fresh)
}

// Renew returns a new access token after the server refused the given one.
func (s *Source) Renew(ctx context.Context, refused string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renew(ctx, func(l *Login) bool { return l.AccessToken != refused && l.fresh() })
}

// renew uses the refresh token, unless another process has stored a good access token.
func (s *Source) renew(ctx context.Context, good func(*Login) bool) (string, error) {
	err := s.file.locked(ctx, func(t *turn) error {
		l, ok := t.logins[s.server]
		if !ok {
			return &Ended{s.server}
		}
		if !good(&l) {
			if err := t.prepare(); err != nil {
				return err
			}
			err := s.refresh(ctx, &l)
			var ended *Ended
			switch {
			case errors.As(err, &ended):
				delete(t.logins, s.server)
				return errors.Join(err, t.save())
			case err != nil:
				return err
			}
			t.logins[s.server] = l
			if err := t.save(); err != nil {
				return err
			}
		}
		s.login = l
		return nil
	})
	return s.login.AccessToken, err
}

func (s *Source) refresh(ctx context.Context, l *Login) error {
	// Do not cancel a refresh: if its response is not read, the login is lost.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewWithin)
	defer cancel()
	old := &oauth2.Token{RefreshToken: l.RefreshToken}
	tok, err := config(l.TokenURL, "").TokenSource(with(ctx, s.http), old).Token()
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.ErrorCode == "invalid_grant":
		return &Ended{s.server}
	case errors.As(err, &refused):
		return fmt.Errorf("%s did not renew the login: %s %s", s.server, refused.ErrorCode, refused.ErrorDescription)
	case err != nil:
		return fmt.Errorf("cannot renew the login at %s: %w", s.server, bare(err))
	}
	l.take(tok)
	return nil
}

// take stores the tokens of a token response.
func (l *Login) take(tok *oauth2.Token) {
	l.AccessToken, l.RefreshToken, l.ExpiresAt = tok.AccessToken, tok.RefreshToken, tok.Expiry.UTC()
	if scope, ok := tok.Extra("scope").(string); ok {
		l.Scopes = strings.Fields(scope)
	}
}

// config returns the OAuth configuration of the command line.
func config(tokenURL, redirect string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: oauth.CommandLine.ID, RedirectURL: redirect,
		// Set explicitly: trying out the style would use a refresh token twice.
		Endpoint: oauth2.Endpoint{TokenURL: tokenURL, AuthStyle: oauth2.AuthStyleInParams},
	}
}

func with(ctx context.Context, c *http.Client) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, c)
}

// bare returns an error without the URL of the request, which may contain secrets.
func bare(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

// Logout deletes a login and revokes it at the server. It reports whether there was one. It
// holds the lock until the server has responded, so that no other process renews the login.
func (f *File) Logout(ctx context.Context, server string, c *http.Client) (bool, error) {
	had := false
	err := f.locked(ctx, func(t *turn) error {
		l, ok := t.logins[Address(server)]
		if had = ok; !ok {
			return nil
		}
		revoked := Revoke(ctx, l, c)
		delete(t.logins, Address(server))
		if err := t.save(); err != nil {
			return err
		}
		if revoked != nil {
			return fmt.Errorf("the login was deleted here, but %s did not revoke it: %w; end it on the page %s/account",
				Address(server), revoked, Address(server))
		}
		return nil
	})
	return had, err
}

// Revoke ends a login at its server (RFC 7009).
func Revoke(ctx context.Context, l Login, c *http.Client) error {
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	form := url.Values{
		"token": {l.RefreshToken}, "token_type_hint": {"refresh_token"}, "client_id": {oauth.CommandLine.ID},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.RevokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := c.Do(r)
	if err != nil {
		return bare(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("it returned %s", res.Status)
	}
	return nil
}
