package oauth

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// Stores are what the Service reads and writes, one interface per kind of record.
type Stores struct {
	Clients    ClientStore
	OrgClients OrgClientStore
	Grants     GrantStore
	Tokens     TokenStore
}

// ClientStore finds clients of any origin, and keeps those that no org registered.
type ClientStore interface {
	CreateClient(ctx context.Context, c Client, secret identity.Hash, e identity.AuditEntry) error
	// Client returns a client with the hash of its secret, and NotFound for an unknown id.
	Client(ctx context.Context, id string) (Client, identity.Hash, error)
	// PutDescribedClient creates or replaces a client that its document describes. The
	// audit entry is written if the client is new or has changed.
	PutDescribedClient(ctx context.Context, c Client, e identity.AuditEntry) error
	// KeyClient returns a key by its id, whatever its org, with the hash of its secret.
	KeyClient(ctx context.Context, id string) (identity.Key, identity.Hash, error)
}

// OrgClientStore keeps the clients that admins registered for their org.
type OrgClientStore interface {
	// CreateOrgClient returns Conflict if the org has limit clients already.
	CreateOrgClient(
		ctx context.Context, c Client, secret identity.Hash, limit int, e identity.AuditEntry,
	) (Client, error)
	OrgClient(ctx context.Context, org, id string) (Client, error)
	// OrgClients lists the clients of the org, newest first.
	OrgClients(ctx context.Context, org string, f ClientFilter) ([]Client, error)
	// UpdateOrgClient locks the client, calls edit and writes the result. If edit returns
	// no audit entries, nothing is written. edit may run more than once and must be pure.
	// If the scopes change, all nodes drop the tokens that they have cached.
	UpdateOrgClient(ctx context.Context, id string, by identity.Principal, once *idempotency.Key,
		edit func(Client) (Client, []identity.AuditEntry, error)) (ClientOutcome, error)
	// RotateOrgClient gives the client a new secret. The old secret works until the time
	// that decide returns; zero ends it at once. A still older secret ends.
	RotateOrgClient(ctx context.Context, org, id string, secret identity.Hash,
		decide func(Client) (time.Time, identity.AuditEntry, error)) (Client, error)
	// DeleteOrgClient deletes a client and ends all its grants, on all nodes.
	DeleteOrgClient(
		ctx context.Context, org, id string, at time.Time, entry func(Client) identity.AuditEntry,
	) (Client, error)
}

// GrantStore keeps grants with their codes and refresh tokens.
type GrantStore interface {
	CreateGrant(ctx context.Context, g Grant, entries ...identity.AuditEntry) error
	Grant(ctx context.Context, id string) (Grant, error)
	// GrantOf returns a grant of this principal. The grant of another one is NotFound.
	GrantOf(ctx context.Context, p identity.Principal, id string) (Grant, error)
	// HasGrant reports whether the principal has a live grant for the client.
	HasGrant(ctx context.Context, p identity.Principal, clientID string, now time.Time) (bool, error)
	// Programs lists the live grants of a principal, newest first, with the names of their
	// clients. Expired, unredeemed codes are omitted.
	Programs(ctx context.Context, p identity.Principal, now time.Time, limit int) ([]Program, error)
	GrantByCode(ctx context.Context, code identity.Hash) (Grant, error)
	// GrantByRefresh finds a grant by any refresh token that it ever had.
	GrantByRefresh(ctx context.Context, refresh identity.Hash) (Grant, error)
	// UpdateGrant records the use of the grant's code or refresh token. It returns Conflict
	// and writes nothing if the grant is revoked or its version is not the newest: of
	// several concurrent uses, one succeeds.
	UpdateGrant(ctx context.Context, g Grant) error
	// RevokeGrant ends a grant with all its tokens, on all nodes. It reports whether this
	// call ended it; only then the audit entry is written.
	RevokeGrant(ctx context.Context, id string, at time.Time, e identity.AuditEntry) (bool, error)
}

// TokenStore keeps access tokens.
type TokenStore interface {
	CreateToken(ctx context.Context, t Token, h identity.Hash, e identity.AuditEntry) error
	TokenByHash(ctx context.Context, h identity.Hash) (TokenState, error)
	RevokeToken(ctx context.Context, h identity.Hash, at time.Time, e identity.AuditEntry) error
}
