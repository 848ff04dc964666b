package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
)

// Agents reports which agents an org can reach.
type Agents interface {
	// Reachable reports whether the agent exists and belongs to the org or is public.
	Reachable(ctx context.Context, org, id string) (bool, error)
}

// OrgAdmin manages the keys, members and invitations of an org, for its admins, and the own
// keys of every principal. Operator is for the operator of the platform.
type OrgAdmin struct {
	*Auditor
	orgs        OrgStore
	members     MemberStore
	keys        KeyStore
	invitations InvitationStore
	agents      Agents
	quotas      Quotas
	now         func() time.Time
	newID       func(prefix string) string
}

// OrgAdminOptions configure an OrgAdmin.
type OrgAdminOptions struct {
	Stores Stores
	Agents Agents
	Quotas Quotas
	Now    func() time.Time
	NewID  func(prefix string) string // returns a new id with the prefix
}

// NewOrgAdmin returns the service.
func NewOrgAdmin(o OrgAdminOptions) *OrgAdmin {
	return &OrgAdmin{
		Auditor: NewAuditor(o.Stores.Audit, o.Now),
		orgs:    o.Stores.Orgs, members: o.Stores.Members, keys: o.Stores.Keys, invitations: o.Stores.Invitations,
		agents: o.Agents, quotas: o.Quotas, now: o.Now, newID: o.NewID,
	}
}

// Self returns the member that the credential belongs to.
func (m *OrgAdmin) Self(ctx context.Context, a Access) (Member, error) {
	if err := a.For(ReadSelf); err != nil {
		return Member{}, err
	}
	return m.members.Member(ctx, a.Principal())
}

// Org returns the org that the credential belongs to.
func (m *OrgAdmin) Org(ctx context.Context, a Access) (Org, error) {
	if err := a.For(ReadSelf); err != nil {
		return Org{}, err
	}
	return m.orgs.Org(ctx, a.Org())
}

// Audit lists the org's audit log, newest first.
func (m *OrgAdmin) Audit(ctx context.Context, a Access, f AuditFilter) ([]AuditEntry, error) {
	if err := a.For(ReadAudit); err != nil {
		return nil, err
	}
	return m.log.List(ctx, a.Org(), f)
}

// Keys lists the org's keys, newest first.
func (m *OrgAdmin) Keys(ctx context.Context, a Access, f KeyFilter) ([]Key, error) {
	if err := a.For(ReadKeys); err != nil {
		return nil, err
	}
	f.Now = m.now()
	return m.keys.Keys(ctx, a.Org(), f)
}

// Key returns one key of the org.
func (m *OrgAdmin) Key(ctx context.Context, a Access, id string) (Key, error) {
	if err := a.For(ReadKeys, ManageKeys); err != nil {
		return Key{}, err
	}
	return m.keys.Key(ctx, a.Org(), id)
}

// CreateKey creates a key for an agent or a service of the org, or for the caller, and
// returns its secret, which cannot be read again. A user who is not an admin cannot create a
// key with svc:admin:admin.
func (m *OrgAdmin) CreateKey(ctx context.Context, a Access, r KeyRequest) (Key, string, error) {
	if err := a.For(ManageKeys); err != nil {
		return Key{}, "", err
	}
	if err := mayHold(a, r.Principal); err != nil {
		return Key{}, "", err
	}
	if err := r.Validate(m.now()); err != nil {
		return Key{}, "", err
	}
	return m.makeKey(ctx, a, r)
}

// makeKey creates a key for a request that was checked.
func (m *OrgAdmin) makeKey(ctx context.Context, a Access, r KeyRequest) (Key, string, error) {
	now := m.now()
	var wrong []errs.Field
	for i, s := range r.Scopes {
		if id, ok := Scope(s).agent(); ok {
			reachable, err := m.agents.Reachable(ctx, a.Org(), id)
			if err != nil {
				return Key{}, "", err
			}
			if !reachable {
				msg := fmt.Sprintf("names an agent that this org cannot reach: "+
					"%q is neither one of its own nor a public one", id)
				wrong = append(wrong, errs.Field{Path: errs.At("scopes", i), Message: msg})
			}
		}
	}
	if err := invalid(wrong); err != nil {
		return Key{}, "", err
	}
	r.CreatedBy = a.Principal().Ref()
	k, secret := newKey(r, m.newID("key-"), now)
	e := NewEntry(originFor(ctx, a), now, a.Org(), KeyCreate, k.ID, k.says())
	once := idempotency.From(ctx)
	if err := once.Seal(secret); err != nil {
		return Key{}, "", err
	}
	k, err := m.keys.CreateKey(ctx, k, HashSecret(secret), grantor(a, k.Scopes), e, m.quotas.keys()...)
	if err == nil {
		secret, err = once.Secret(secret)
	}
	if err != nil && errs.KindOf(err) == errs.NotFound {
		msg := fmt.Sprintf("%q not found in this org", r.Principal.Ref())
		err = errs.InvalidFields(errs.NewField("principal", msg))
	}
	return k, secret, err
}

// mayHold returns an error if the caller would get a key of another user: the votes and
// decisions of people must be their own.
func mayHold(a Access, p Principal) error {
	if p.Kind == User && p != a.Principal() {
		return errs.New(errs.Forbidden, "identity.key_of_another_user",
			"you cannot create a key for another user; create keys for agents, services or yourself (%s)", a.Principal().Ref())
	}
	return nil
}

// RevokeKey ends a key of the org. A key that is revoked already does not change.
func (m *OrgAdmin) RevokeKey(ctx context.Context, a Access, id string) (Key, error) {
	if err := a.For(ManageKeys); err != nil {
		return Key{}, err
	}
	return revokeKey(originFor(ctx, a), m.keys, a.Org(), id, m.now())
}

// How long a key and its successor both work. The default is for pages, where people choose
// the overlap. In REST the default is no overlap.
const (
	DefaultOverlap = 24 * time.Hour
	MaxOverlap     = 7 * 24 * time.Hour
)

// RotateKey creates a successor with the scopes and the expiry of the old key, and lets the
// old key expire after the overlap. A key can be rotated once: of two concurrent rotations
// one is refused.
func (m *OrgAdmin) RotateKey(ctx context.Context, a Access, id string, overlap time.Duration) (Key, string, error) {
	if err := a.For(ManageKeys); err != nil {
		return Key{}, "", err
	}
	return m.rotateKey(ctx, a, id, overlap, func(old *Key) error { return mayHold(a, old.Principal) })
}

// rotateKey rotates a key if may returns nil.
func (m *OrgAdmin) rotateKey(
	ctx context.Context, a Access, id string, overlap time.Duration, may func(old *Key) error,
) (Key, string, error) {
	if err := CheckOverlap(overlap); err != nil {
		return Key{}, "", err
	}
	now, secret, newID := m.now(), NewSecret(), m.newID("key-")
	once := idempotency.From(ctx)
	if err := once.Seal(secret); err != nil {
		return Key{}, "", err
	}
	k, err := m.keys.RotateKey(ctx, a.Org(), id, HashSecret(secret), func(old Key) (Rotation, error) {
		if err := may(&old); err != nil {
			return Rotation{}, err
		}
		r, err := decideRotation(old, now, overlap)
		if err != nil {
			return Rotation{}, err
		}
		r.New.ID, r.New.Prefix, r.New.CreatedBy = newID, ShownPrefix(secret), a.Principal().Ref()
		r.Grantor, r.Limits = grantor(a, old.Scopes), m.quotas.rotations()
		detail := fmt.Sprintf("replaced by %s; works until %s", newID, r.OldExpires.Format(time.RFC3339))
		r.Entry = NewEntry(originFor(ctx, a), now, a.Org(), KeyRotate, old.ID, detail)
		return r, nil
	})
	if err == nil {
		secret, err = once.Secret(secret)
	}
	return k, secret, err
}

// DisabledPrincipal returns the error for a key of a disabled principal.
func DisabledPrincipal(p Principal) error {
	return errs.New(errs.Conflict, "identity.principal_disabled", "%s is disabled; enable it first", p.Ref())
}

// revokeKey is shared with Operator.
func revokeKey(ctx context.Context, s KeyStore, org, id string, now time.Time) (Key, error) {
	return s.RevokeKey(ctx, org, id, func(k *Key) ([]AuditEntry, error) {
		if !k.RevokedAt.IsZero() {
			return nil, nil
		}
		k.RevokedAt = now
		return []AuditEntry{NewEntry(ctx, now, org, KeyRevoke, k.ID, k.says())}, nil
	})
}

// says describes the key in the audit log.
func (k *Key) says() string { return "for " + k.Principal.Ref() + ": " + k.Scopes.String() }
