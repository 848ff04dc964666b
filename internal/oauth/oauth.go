// Package oauth holds the rules of the authorization server: who may be granted
// what, which redirect addresses match, and what ends a grant.
//
// A grant is what a person allowed a client, or what a key of an agent or a service
// allows by itself. Access tokens, codes and refresh tokens belong to one grant and
// are kept as hashes only. The package knows no HTTP and no SQL, and nothing of the
// library that speaks the protocol; package authserver puts the two together.
package oauth

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// The actions that go to the audit log.
const (
	ClientRegister identity.AuditAction = "oauth.client.register"
	ClientCreate   identity.AuditAction = "oauth.client.create"
	ClientUpdate   identity.AuditAction = "oauth.client.update"
	ClientRotate   identity.AuditAction = "oauth.client.rotate"
	ClientDelete   identity.AuditAction = "oauth.client.delete"
	Consented      identity.AuditAction = "oauth.consent"
	TokenIssue     identity.AuditAction = "oauth.token.issue"
	TokenRevoke    identity.AuditAction = "oauth.token.revoke"
	GrantRevoke                         = identity.GrantRevoke
	GrantNarrow                         = identity.GrantNarrow
	GrantReplay    identity.AuditAction = "oauth.grant.replay"
)

// Method is how a client proves who it is.
type Method string

// The methods. A client without a secret is public: PKCE alone ties its code to it.
const (
	Public      Method = "none"
	SecretBasic Method = "client_secret_basic"
	SecretPost  Method = "client_secret_post"
)

// Methods lists them.
var Methods = []Method{Public, SecretBasic, SecretPost}

// Client is a program that acts for people. One without an org registered itself, so
// nothing of what it says about itself is known to be true.
type Client struct {
	ID           string
	Org          string // whose admin registered it, and whose members alone can allow it anything; empty: none
	CreatedBy    string // that admin's ref
	BuiltIn      bool   // it is part of Parley
	Name         string
	Method       Method
	RedirectURIs []string
	Scopes       identity.Scopes // it may ask for these at most
	CreatedAt    time.Time

	// OldSecret is what was the secret before the last rotation, and works until then;
	// only OAuthClient reads it.
	OldSecret        identity.Hash
	OldSecretExpires time.Time // zero: there is none

	Version int64 // of the row; an edit may ask for it
}

// Grant is what one principal allows one client.
type Grant struct {
	ID        string
	Principal identity.Principal
	ClientID  string // a client's, or the key's that speaks for itself
	Scopes    identity.Scopes
	Audience  string // a path; empty: the whole service
	CreatedAt time.Time
	RevokedAt time.Time // zero: not revoked
	EndsAt    time.Time // nothing of it can work any more after this

	Code        identity.Hash // zero: there is none
	CodeExpires time.Time
	CodeUsedAt  time.Time // zero: not yet
	Challenge   string    // of PKCE, S256
	RedirectURI string    // that the code was sent to

	Refresh        identity.Hash // the one that works; zero: none
	RefreshExpires time.Time     // zero: the grant has no refresh tokens

	Version int64 // of the row; a change of any other than the newest is refused
}

// Token is an access token.
type Token struct {
	ID        string
	GrantID   string
	ClientID  string
	Scopes    identity.Scopes
	Audience  string
	CreatedAt time.Time
	ExpiresAt time.Time
	RevokedAt time.Time // zero: not revoked
}

// TokenState is a token with everything that decides whether it works.
type TokenState struct {
	Token
	Grant  Grant
	Member identity.Member
	Key    *identity.Key // of a grant that a key made for itself

	ClientScopes identity.Scopes // what the client may ask for now; empty: it is not kept here
}

// Store keeps clients, grants and tokens.
type Store interface {
	CreateClient(ctx context.Context, c Client, secret identity.Hash, e identity.AuditEntry) error
	// Client returns a client with its secrets, and NotFound for an unknown id.
	Client(ctx context.Context, id string) (Client, identity.Hash, error)
	// PutDescribedClient keeps a client by its document, whose id is taken over and over.
	// The entry is written if it is new or has changed.
	PutDescribedClient(ctx context.Context, c Client, e identity.AuditEntry) error
	// CreateOrgClient is Conflict if the org has as many clients as it may.
	CreateOrgClient(ctx context.Context, c Client, secret identity.Hash, most int, e identity.AuditEntry) (Client, error)
	OrgClient(ctx context.Context, org, id string) (Client, error)
	// OrgClients lists the clients of the org, newest first.
	OrgClients(ctx context.Context, org string, f ClientFilter) ([]Client, error)
	// UpdateOrgClient locks the client, runs edit on it and writes the result. Without an
	// entry nothing has changed. edit may run more than once and must be pure. Nodes that
	// remember tokens look again if the scopes are others.
	UpdateOrgClient(ctx context.Context, id string, by identity.Principal, once *idempotency.Key,
		edit func(Client) (Client, []identity.AuditEntry, error)) (ClientOutcome, error)
	// RotateOrgClient gives the client a new secret. The old one works until decide says;
	// zero: no more. One that was older ends.
	RotateOrgClient(ctx context.Context, org, id string, secret identity.Hash,
		decide func(Client) (time.Time, identity.AuditEntry, error)) (Client, error)
	// DeleteOrgClient deletes a client and ends all its grants, on all nodes.
	DeleteOrgClient(ctx context.Context, org, id string, at time.Time, entry func(Client) identity.AuditEntry) (Client, error)
	// KeyClient returns a key by its id alone, of whatever org.
	KeyClient(ctx context.Context, id string) (identity.Key, identity.Hash, error)

	CreateGrant(ctx context.Context, g Grant, entries ...identity.AuditEntry) error
	Grant(ctx context.Context, id string) (Grant, error)
	// GrantOf is Grant for a grant of this principal; any other is NotFound.
	GrantOf(ctx context.Context, p identity.Principal, id string) (Grant, error)
	// HasGrant reports whether the principal allows the client something at the moment.
	HasGrant(ctx context.Context, p identity.Principal, clientID string, now time.Time) (bool, error)
	// Programs lists the grants of a principal that are alive, newest first, with the
	// names of their clients. A code that nobody came for in time is none.
	Programs(ctx context.Context, p identity.Principal, now time.Time, limit int) ([]Program, error)
	GrantByCode(ctx context.Context, code identity.Hash) (Grant, error)
	// GrantByRefresh finds the grant of any refresh token that it ever had.
	GrantByRefresh(ctx context.Context, refresh identity.Hash) (Grant, error)
	// UpdateGrant writes the use of the code and the refresh token of a grant. Unless
	// its version is the newest, and it is not revoked, nothing is written and the
	// error is Conflict: of several at once, one succeeds.
	UpdateGrant(ctx context.Context, g Grant) error
	// RevokeGrant ends a grant with all its tokens, on all nodes. It reports whether
	// it was not ended before; only then the entry is written.
	RevokeGrant(ctx context.Context, id string, at time.Time, e identity.AuditEntry) (bool, error)

	CreateToken(ctx context.Context, t Token, h identity.Hash, e identity.AuditEntry) error
	TokenByHash(ctx context.Context, h identity.Hash) (TokenState, error)
	RevokeToken(ctx context.Context, h identity.Hash, at time.Time, e identity.AuditEntry) error
}
