package client

import (
	"context"
	"iter"
	"time"
)

// OAuthClientsService manages the programs that members may allow to act for them.
type OAuthClientsService struct{ service }

// OAuthClient is a program of the org.
type OAuthClient struct {
	ID                 string    `json:"id"`
	Name               string    `json:"name"`
	RedirectURIs       []string  `json:"redirect_uris"`
	Scopes             []string  `json:"scopes"`
	Method             string    `json:"method"` // none, client_secret_basic or client_secret_post
	CreatedAt          time.Time `json:"created_at"`
	CreatedBy          string    `json:"created_by"`
	OldSecretExpiresAt time.Time `json:"old_secret_expires_at"` // zero: there is no old secret
	Secret             string    `json:"secret"`                // in responses to Create and Rotate only; empty: none
}

func (s *OAuthClientsService) list(p CursorParams) listing[OAuthClient] {
	r := read("clients")
	r.query = values(p)
	return listing[OAuthClient]{c: s.c, call: r, member: "clients"}
}

// List returns one page of clients.
func (s *OAuthClientsService) List(ctx context.Context, p CursorParams, opts ...Option) (*Page[OAuthClient], error) {
	return s.list(p).page(ctx, opts)
}

// All iterates over the clients of all pages.
func (s *OAuthClientsService) All(ctx context.Context, opts ...Option) iter.Seq2[OAuthClient, error] {
	return s.list(CursorParams{}).all(ctx, opts)
}

// OAuthClientCreation is a new client.
type OAuthClientCreation struct {
	Name         string   `json:"name"`
	RedirectURIs []string `json:"redirect_uris"`
	Scopes       []string `json:"scopes,omitempty"` // all but svc:admin:admin if empty
	Method       string   `json:"method,omitempty"` // none if empty
}

// Create registers a client.
func (s *OAuthClientsService) Create(ctx context.Context, o OAuthClientCreation, opts ...Option) (*OAuthClient, error) {
	return fetch[OAuthClient](ctx, s.c, post(o, "clients"), opts)
}

// Get returns one client.
func (s *OAuthClientsService) Get(ctx context.Context, id string, opts ...Option) (*OAuthClient, error) {
	return fetch[OAuthClient](ctx, s.c, read("clients", id), opts)
}

// OAuthClientPatch changes a client. Nil fields do not change; lists replace the old ones.
type OAuthClientPatch struct {
	Name         *string   `json:"name,omitempty"`
	RedirectURIs *[]string `json:"redirect_uris,omitempty"`
	Scopes       *[]string `json:"scopes,omitempty"`
}

// Update changes a client. The permissions that people gave it do not change.
func (s *OAuthClientsService) Update(
	ctx context.Context, id string, p OAuthClientPatch, opts ...Option,
) (*OAuthClient, error) {
	return fetch[OAuthClient](ctx, s.c, patch(p, "clients", id), opts)
}

// Delete deletes a client and all permissions that people gave it.
func (s *OAuthClientsService) Delete(ctx context.Context, id string, opts ...Option) (*OAuthClient, error) {
	return fetch[OAuthClient](ctx, s.c, remove(false, "clients", id), opts)
}

// Rotate replaces the secret of a client.
func (s *OAuthClientsService) Rotate(
	ctx context.Context, id string, r KeyRotation, opts ...Option,
) (*OAuthClient, error) {
	return fetch[OAuthClient](ctx, s.c, post(r, "clients", id, "rotate"), opts)
}
