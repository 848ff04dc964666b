// Package oauth holds the rules of the authorization server: which scopes a client may be
// granted, which redirect URIs match, and what ends a grant.
//
// A grant is the consent of a person to a client, or the use of a key of an agent or a
// service as a client. Access tokens, codes and refresh tokens belong to one grant and are
// stored as hashes only. The package must not know HTTP, SQL or the OAuth library; package
// authserver connects it with the library.
package oauth

import (
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// Audit actions.
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

// Method is how a client authenticates at the token endpoint.
type Method string

// The methods. A client without a secret is public: only PKCE binds a code to it.
const (
	Public      Method = "none"
	SecretBasic Method = "client_secret_basic"
	SecretPost  Method = "client_secret_post"
)

// Methods lists all methods.
var Methods = []Method{Public, SecretBasic, SecretPost}

// Client is a program that acts for people. A client without an org registered itself, so
// its name and other metadata are not verified.
type Client struct {
	ID           string
	Org          string // the org that registered it; only its members can consent; empty: none
	CreatedBy    string // ref of the admin who registered it
	BuiltIn      bool   // part of Parley
	Name         string
	Method       Method
	RedirectURIs []string
	Scopes       identity.Scopes // the scopes that it may request
	CreatedAt    time.Time

	// OldSecret is the secret before the last rotation. Only ClientStore.Client sets it.
	OldSecret        identity.Hash
	OldSecretExpires time.Time // zero: there is none

	Version int64 // of the row, for conditional edits
}

// Grant is the consent of one principal to one client.
type Grant struct {
	ID        string
	Principal identity.Principal
	ClientID  string // id of a client, or of a key that is its own client
	Scopes    identity.Scopes
	Audience  string // a path; empty: the whole service
	CreatedAt time.Time
	RevokedAt time.Time // zero: not revoked
	EndsAt    time.Time // when its last token or code expires

	Code        identity.Hash // zero: there is none
	CodeExpires time.Time
	CodeUsedAt  time.Time // zero: not yet
	Challenge   string    // PKCE challenge, S256
	RedirectURI string    // that the code was sent to

	Refresh        identity.Hash // the valid refresh token; zero: none
	RefreshExpires time.Time     // zero: the grant has no refresh tokens

	Version int64 // of the row; an update of an older version is refused
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

// TokenState is a token with everything that Service.Works depends on.
type TokenState struct {
	Token
	Grant  Grant
	Member identity.Member
	Key    *identity.Key // set if a key is its own client

	ClientScopes identity.Scopes // the scopes that the client may request now; empty: not stored
}
