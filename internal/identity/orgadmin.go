package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/idempotency"
)

// Agents knows which agents an org can reach.
type Agents interface {
	// Reachable reports whether the agent exists and belongs to the org or is public.
	Reachable(ctx context.Context, org, id string) (bool, error)
}

// OrgAdmin is what the admins of an org do there: keys, members and invitations; and what
// every principal does to its own keys. What the operator does to any org is Operator.
type OrgAdmin struct {
	*Auditor
	store  Store
	agents Agents
	now    func() time.Time
	newID  func(prefix string) string

	Quotas Quotas // to be set before use
}

// NewOrgAdmin makes the service. newID returns a fresh id with the given prefix.
func NewOrgAdmin(store Store, log AuditStore, agents Agents, now func() time.Time, newID func(prefix string) string) *OrgAdmin {
	return &OrgAdmin{Auditor: NewAuditor(log, now), store: store, agents: agents, now: now, newID: newID}
}

// Self returns whom a credential speaks for.
func (m *OrgAdmin) Self(ctx context.Context, a Access) (Member, error) {
	if err := a.For(ReadSelf); err != nil {
		return Member{}, err
	}
	return m.store.Member(ctx, a.Principal())
}

// Org returns the org that a credential belongs to.
func (m *OrgAdmin) Org(ctx context.Context, a Access) (Org, error) {
	if err := a.For(ReadSelf); err != nil {
		return Org{}, err
	}
	return m.store.Org(ctx, a.Org())
}

// Audit lists the org's log, newest first.
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
	return m.store.Keys(ctx, a.Org(), f)
}

// Key returns one key of the org.
func (m *OrgAdmin) Key(ctx context.Context, a Access, id string) (Key, error) {
	if err := a.For(ReadKeys, ManageKeys); err != nil {
		return Key{}, err
	}
	return m.store.Key(ctx, a.Org(), id)
}

// CreateKey makes a key and returns its secret, which is shown this once. It can be
// for an agent or a service of the org, or for whoever asks. A user who is not an admin
// cannot make one with svc:admin:admin, for anybody.
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

// makeKey is CreateKey after its checks.
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
				wrong = append(wrong, errs.Field{Path: errs.At("scopes", i), Message: fmt.Sprintf(
					"names an agent that this org cannot reach: %q is neither one of its own nor a public one", id)})
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
	k, err := m.store.CreateKey(ctx, k, HashSecret(secret), grantor(a, k.Scopes), e, m.Quotas.keys()...)
	if err == nil {
		secret, err = once.Secret(secret)
	}
	if err != nil && errs.KindOf(err) == errs.NotFound {
		err = invalid([]errs.Field{field("principal", fmt.Sprintf("is no principal of this org: there is no %s", r.Principal.Ref()))})
	}
	return k, secret, err
}

// mayHold refuses to give the caller a key that speaks for another person: votes
// and decisions of people must be their own.
func mayHold(a Access, p Principal) error {
	if p.Kind == User && p != a.Principal() {
		return errs.New(errs.Forbidden, "identity.key_of_another_user",
			"nobody can have a key that speaks for another user; make keys for agents, for services and for yourself (%s)", a.Principal().Ref())
	}
	return nil
}

// RevokeKey ends a key of the org; one that is revoked already stays as it is.
func (m *OrgAdmin) RevokeKey(ctx context.Context, a Access, id string) (Key, error) {
	if err := a.For(ManageKeys); err != nil {
		return Key{}, err
	}
	return revokeKey(originFor(ctx, a), m.store, a.Org(), id, m.now())
}

// How long a key works beside the one that replaces it. The default is for pages, where
// people choose it; REST rotates without an overlap unless it is told otherwise.
const (
	DefaultOverlap = 24 * time.Hour
	MaxOverlap     = 7 * 24 * time.Hour
)

// RotateKey makes a key that can do what the old one can, for as long as that one
// could, and lets the old one expire after the overlap. A key is rotated once: of two
// rotations at the same time one is refused, whatever their clocks say.
func (m *OrgAdmin) RotateKey(ctx context.Context, a Access, id string, overlap time.Duration) (Key, string, error) {
	if err := a.For(ManageKeys); err != nil {
		return Key{}, "", err
	}
	return m.rotateKey(ctx, a, id, overlap, func(old *Key) error { return mayHold(a, old.Principal) })
}

// rotateKey rotates a key that may lets pass.
func (m *OrgAdmin) rotateKey(ctx context.Context, a Access, id string, overlap time.Duration, may func(old *Key) error) (Key, string, error) {
	if err := CheckOverlap(overlap); err != nil {
		return Key{}, "", err
	}
	now, secret, newID := m.now(), NewSecret(), m.newID("key-")
	once := idempotency.From(ctx)
	if err := once.Seal(secret); err != nil {
		return Key{}, "", err
	}
	k, err := m.store.RotateKey(ctx, a.Org(), id, HashSecret(secret), func(old Key) (Rotation, error) {
		if err := may(&old); err != nil {
			return Rotation{}, err
		}
		r, err := decideRotation(old, now, overlap)
		if err != nil {
			return Rotation{}, err
		}
		r.New.ID, r.New.Prefix, r.New.CreatedBy = newID, ShownPrefix(secret), a.Principal().Ref()
		r.Grantor, r.Limits = grantor(a, old.Scopes), m.Quotas.rotations()
		detail := fmt.Sprintf("replaced by %s; works until %s", newID, r.OldExpires.Format(time.RFC3339))
		r.Entry = NewEntry(originFor(ctx, a), now, a.Org(), KeyRotate, old.ID, detail)
		return r, nil
	})
	if err == nil {
		secret, err = once.Secret(secret)
	}
	return k, secret, err
}

// DisabledPrincipal is the refusal of a key for a principal that is disabled.
func DisabledPrincipal(p Principal) error {
	return errs.New(errs.Conflict, "identity.principal_disabled", "%s is disabled; enable it first", p.Ref())
}

// revokeKey is shared with the operator.
func revokeKey(ctx context.Context, s Store, org, id string, now time.Time) (Key, error) {
	return s.RevokeKey(ctx, org, id, func(k *Key) ([]AuditEntry, error) {
		if !k.RevokedAt.IsZero() {
			return nil, nil
		}
		k.RevokedAt = now
		return []AuditEntry{NewEntry(ctx, now, org, KeyRevoke, k.ID, k.says())}, nil
	})
}

// says describes a key in the log.
func (k *Key) says() string { return "for " + k.Principal.Ref() + ": " + k.Scopes.String() }
