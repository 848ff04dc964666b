package identity

import (
	"context"
	"time"
)

// Store keeps orgs, principals, keys and invitations. Every method that is not about
// the platform as a whole is scoped by org. What changes something writes its audit
// entries in the same transaction. What makes or changes a record returns it: if the
// context has an idempotency key that was used before, as the first command left it.
type Store interface {
	// CreateOrg refuses a taken id with Conflict.
	CreateOrg(ctx context.Context, o Org, e AuditEntry) error
	Orgs(ctx context.Context) ([]Org, error)
	// Org returns NotFound for an unknown id.
	Org(ctx context.Context, id string) (Org, error)
	// Bootstrap creates the org, the member and the key if and only if no org
	// exists yet, in one transaction, and reports whether it did.
	Bootstrap(ctx context.Context, o Org, m Member, k Key, h Hash, entries []AuditEntry) (bool, error)

	// CreateMember refuses a taken id with Conflict and an unknown org with NotFound.
	CreateMember(ctx context.Context, m Member, e AuditEntry) (Member, error)
	Members(ctx context.Context, org string, f MemberFilter) ([]Member, error)
	// Member returns NotFound for an unknown principal.
	Member(ctx context.Context, p Principal) (Member, error)
	// UpdateMember locks the member and the org's enabled admin users, runs decide with
	// the number of the latter beside the member, and writes what it returns unless
	// there is nothing to say about it. An agent's own record is kept in step.
	UpdateMember(ctx context.Context, p Principal, at time.Time, decide func(MemberScene) (MemberOutcome, error)) (MemberOutcome, error)

	// CreateKey refuses a principal that does not exist with NotFound and a disabled
	// one with Conflict. It locks the principal, so that a demotion either sees the key
	// or comes first. Unless grantor is zero it must be an enabled admin: NotAnAdmin.
	// The limits count keys that work.
	CreateKey(ctx context.Context, k Key, h Hash, grantor Principal, e AuditEntry, limits ...Quota) (Key, error)
	Keys(ctx context.Context, org string, f KeyFilter) ([]Key, error)
	// Key returns NotFound for an unknown id.
	Key(ctx context.Context, org, id string) (Key, error)
	// RevokeKey locks the key, runs decide on it and writes what it made of it, unless
	// there is nothing to say about it. An unknown id is NotFound.
	RevokeKey(ctx context.Context, org, id string, decide func(*Key) ([]AuditEntry, error)) (Key, error)
	// RotateKey locks the principal and the key, runs decide on it, and writes the new
	// one and the old one's end. It returns the new one. Rotation.Grantor is checked as
	// in CreateKey.
	RotateKey(ctx context.Context, org, id string, h Hash, decide func(old Key) (Rotation, error)) (Key, error)

	// CreateInvitation refuses a user that exists already with Conflict. The limits count
	// pending invitations.
	CreateInvitation(ctx context.Context, i Invitation, h Hash, e AuditEntry, limits ...Quota) (Invitation, error)
	// Invitations lists, newest first, those before the id, or all if it is empty.
	Invitations(ctx context.Context, org, before string, limit int) ([]Invitation, error)
	InvitationByHash(ctx context.Context, h Hash) (Invitation, error)
	// ChangeInvitation is RevokeKey for an invitation.
	ChangeInvitation(ctx context.Context, org, id string, decide func(*Invitation) ([]AuditEntry, error)) (Invitation, error)
	// AcceptInvitation locks the invitation, runs decide on it, marks it accepted and
	// makes the member, which is refused with Conflict if it exists.
	// With the hash of a password, the member has it from the start.
	AcceptInvitation(ctx context.Context, h Hash, password string, decide func(Invitation) (Member, AuditEntry, error)) (Member, error)
}
