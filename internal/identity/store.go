package identity

import (
	"context"
	"time"
)

// Stores are what OrgAdmin and Operator read and write, one interface per kind of record.
//
// Every method except those of OrgStore is scoped by org. A method that changes something
// writes its audit entries in the same transaction. A method that creates or changes a
// record returns it. If the context carries an idempotency key that was used before, the
// returned record is the one that the first command wrote.
type Stores struct {
	Orgs        OrgStore
	Members     MemberStore
	Keys        KeyStore
	Invitations InvitationStore
	Audit       AuditStore
}

// OrgStore keeps orgs.
type OrgStore interface {
	// CreateOrg returns Conflict if the id is taken.
	CreateOrg(ctx context.Context, o Org, e AuditEntry) error
	Orgs(ctx context.Context) ([]Org, error)
	// Org returns NotFound for an unknown id.
	Org(ctx context.Context, id string) (Org, error)
	// Bootstrap creates the org, the member and the key in one transaction, but only if
	// no org exists yet. It reports whether it did.
	Bootstrap(ctx context.Context, o Org, m Member, k Key, h Hash, entries []AuditEntry) (bool, error)
}

// MemberStore keeps the principals of an org.
type MemberStore interface {
	// CreateMember returns Conflict if the id is taken, and NotFound for an unknown org.
	CreateMember(ctx context.Context, m Member, e AuditEntry) (Member, error)
	Members(ctx context.Context, org string, f MemberFilter) ([]Member, error)
	// Member returns NotFound for an unknown principal.
	Member(ctx context.Context, p Principal) (Member, error)
	// UpdateMember locks the member and the org's enabled admin users, calls decide and
	// writes the outcome, unless the outcome has no audit entries. The record of an agent
	// changes with its member.
	UpdateMember(
		ctx context.Context, p Principal, at time.Time, decide func(MemberScene) (MemberOutcome, error),
	) (MemberOutcome, error)
	// EraseMember locks as UpdateMember does, calls decide and replaces the user. It returns when
	// the user is named nowhere any more. If that was interrupted, it continues:
	// for the user, and for the member that replaces the user.
	EraseMember(ctx context.Context, p Principal, decide func(MemberScene) (Erasure, error)) (Member, error)
}

// KeyStore keeps API keys.
type KeyStore interface {
	// CreateKey returns NotFound for an unknown principal and Conflict for a disabled one.
	// It locks the principal, so that a concurrent demotion either runs first or revokes
	// the new key. Unless grantor is zero, it must be an enabled admin; otherwise the
	// error is NotAnAdmin. The limits count live keys.
	CreateKey(ctx context.Context, k Key, h Hash, grantor Principal, e AuditEntry, limits ...Quota) (Key, error)
	Keys(ctx context.Context, org string, f KeyFilter) ([]Key, error)
	// Key returns NotFound for an unknown id.
	Key(ctx context.Context, org, id string) (Key, error)
	// RevokeKey locks the key, calls decide and writes the key as decide left it, unless
	// decide returns no audit entries. An unknown id is NotFound.
	RevokeKey(ctx context.Context, org, id string, decide func(*Key) ([]AuditEntry, error)) (Key, error)
	// RotateKey locks the principal and the key, calls decide, and writes the new key and
	// the expiry of the old one. It returns the new key. Rotation.Grantor is checked as in
	// CreateKey.
	RotateKey(ctx context.Context, org, id string, h Hash, decide func(old Key) (Rotation, error)) (Key, error)
}

// InvitationStore keeps invitations.
type InvitationStore interface {
	// CreateInvitation returns Conflict if the user exists. The limits count pending
	// invitations.
	CreateInvitation(ctx context.Context, i Invitation, h Hash, e AuditEntry, limits ...Quota) (Invitation, error)
	// Invitations lists invitations, newest first, starting after the id before. An empty
	// id starts with the newest.
	Invitations(ctx context.Context, org, before string, limit int) ([]Invitation, error)
	InvitationByHash(ctx context.Context, h Hash) (Invitation, error)
	// ChangeInvitation locks the invitation, calls decide and writes the invitation as
	// decide left it, unless decide returns no audit entries. An unknown id is NotFound.
	ChangeInvitation(
		ctx context.Context, org, id string, decide func(*Invitation) ([]AuditEntry, error),
	) (Invitation, error)
	// AcceptInvitation locks the invitation, calls decide, marks the invitation as accepted
	// and creates the member. It returns Conflict if the member exists. password is the
	// hash of the member's password, or empty.
	AcceptInvitation(
		ctx context.Context, h Hash, password string, decide func(Invitation) (Member, AuditEntry, error),
	) (Member, error)
}
