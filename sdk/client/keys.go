package client

import (
	"context"
	"iter"
	"time"
)

// KeysService manages the keys of the org's principals.
type KeysService struct{ service }

// Key is an API key without its secret.
type Key struct {
	ID                string    `json:"id"`
	Prefix            string    `json:"prefix"`
	Principal         string    `json:"principal"`
	PrincipalDisabled bool      `json:"principal_disabled"`
	Name              string    `json:"name"`
	Scopes            []string  `json:"scopes"`
	State             string    `json:"state"` // live, revoked or expired
	CreatedAt         time.Time `json:"created_at"`
	CreatedBy         string    `json:"created_by"`
	ExpiresAt         time.Time `json:"expires_at"`   // zero: never
	RevokedAt         time.Time `json:"revoked_at"`   // zero: not revoked
	LastUsedAt        time.Time `json:"last_used_at"` // zero: never
	Replaces          string    `json:"replaces"`     // empty: none
	ReplacedBy        string    `json:"replaced_by"`  // empty: none
}

// KeyWithSecret is a new key. The secret is not shown again.
type KeyWithSecret struct {
	Key
	Secret string `json:"secret"`
}

// KeyListParams filters a list of keys. Zero fields do not filter.
type KeyListParams struct {
	Principal  string `url:"principal"`
	State      string `url:"state"`       // live, revoked, expired or all
	EndsWithin int    `url:"ends_within"` // days
	NeverUsed  bool   `url:"never_used"`
	Scope      string `url:"scope"`
	Cursor     string `url:"cursor"`
	Limit      int    `url:"limit"`
}

func (s *KeysService) list(p KeyListParams) listing[Key] {
	r := read("keys")
	r.query = values(p)
	return listing[Key]{c: s.c, call: r, member: "keys"}
}

// List returns one page of keys.
func (s *KeysService) List(ctx context.Context, p KeyListParams, opts ...Option) (*Page[Key], error) {
	return s.list(p).page(ctx, opts)
}

// All iterates over the keys of all pages.
func (s *KeysService) All(ctx context.Context, p KeyListParams, opts ...Option) iter.Seq2[Key, error] {
	return s.list(p).all(ctx, opts)
}

// KeyCreation is a new key.
type KeyCreation struct {
	Principal string     `json:"principal"`
	Scopes    []string   `json:"scopes"`
	Name      string     `json:"name,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"` // nil: never
}

// Create makes a key for an agent, a service or the caller.
func (s *KeysService) Create(ctx context.Context, k KeyCreation, opts ...Option) (*KeyWithSecret, error) {
	return fetch[KeyWithSecret](ctx, s.c, post(k, "keys"), opts)
}

// Get returns one key.
func (s *KeysService) Get(ctx context.Context, id string, opts ...Option) (*Key, error) {
	return fetch[Key](ctx, s.c, read("keys", id), opts)
}

// Revoke revokes a key. It stops working within seconds.
func (s *KeysService) Revoke(ctx context.Context, id string, opts ...Option) (*Key, error) {
	return fetch[Key](ctx, s.c, remove(true, "keys", id), opts)
}

// KeyRotation configures the replacement of a key.
type KeyRotation struct {
	OverlapSeconds int `json:"overlap_seconds"` // how long the old key still works
}

// Rotate replaces a key by one with the same principal, scopes, name and expiry.
func (s *KeysService) Rotate(ctx context.Context, id string, r KeyRotation, opts ...Option) (*KeyWithSecret, error) {
	return fetch[KeyWithSecret](ctx, s.c, post(r, "keys", id, "rotate"), opts)
}

// OwnKeysService manages the keys of the client's own principal.
type OwnKeysService struct{ service }

// OwnKeyListParams filters a list of own keys. Zero fields do not filter.
type OwnKeyListParams struct {
	State      string `url:"state"`       // live, revoked, expired or all
	EndsWithin int    `url:"ends_within"` // days
	NeverUsed  bool   `url:"never_used"`
	Scope      string `url:"scope"`
	Cursor     string `url:"cursor"`
	Limit      int    `url:"limit"`
}

// OwnKeyCreation is a new key of the caller.
type OwnKeyCreation struct {
	Scopes    []string   `json:"scopes"`
	Name      string     `json:"name,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"` // nil: never
}

// own turns a call below the org into one on the caller's own keys.
func own(r call) call {
	r.path, r.inOrg = "/api/v1/me"+r.path, false
	return r
}

func (s *OwnKeysService) list(p OwnKeyListParams) listing[Key] {
	r := own(read("keys"))
	r.query = values(p)
	return listing[Key]{c: s.c, call: r, member: "keys"}
}

// List returns one page of own keys.
func (s *OwnKeysService) List(ctx context.Context, p OwnKeyListParams, opts ...Option) (*Page[Key], error) {
	return s.list(p).page(ctx, opts)
}

// All iterates over all own keys.
func (s *OwnKeysService) All(ctx context.Context, p OwnKeyListParams, opts ...Option) iter.Seq2[Key, error] {
	return s.list(p).all(ctx, opts)
}

// Create makes a key with no more permissions than the client's own.
func (s *OwnKeysService) Create(ctx context.Context, k OwnKeyCreation, opts ...Option) (*KeyWithSecret, error) {
	return fetch[KeyWithSecret](ctx, s.c, own(post(k, "keys")), opts)
}

// Get returns one own key.
func (s *OwnKeysService) Get(ctx context.Context, id string, opts ...Option) (*Key, error) {
	return fetch[Key](ctx, s.c, own(read("keys", id)), opts)
}

// Revoke revokes an own key.
func (s *OwnKeysService) Revoke(ctx context.Context, id string, opts ...Option) (*Key, error) {
	return fetch[Key](ctx, s.c, own(remove(true, "keys", id)), opts)
}

// Rotate replaces an own key.
func (s *OwnKeysService) Rotate(ctx context.Context, id string, r KeyRotation, opts ...Option) (*KeyWithSecret, error) {
	return fetch[KeyWithSecret](ctx, s.c, own(post(r, "keys", id, "rotate")), opts)
}
