package identity

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/errs"
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

// Admins manages orgs, principals and keys on behalf of the operator.
type Admins struct {
	store Store
	now   func() time.Time
	newID func(prefix string) string
}

// NewAdmins makes the service. newID returns a fresh id with the given prefix.
func NewAdmins(store Store, now func() time.Time, newID func(prefix string) string) *Admins {
	return &Admins{store: store, now: now, newID: newID}
}

// CreateOrg makes an org; an empty name becomes the id.
func (a *Admins) CreateOrg(ctx context.Context, id, name string) (Org, error) {
	o, err := a.newOrg(id, name)
	if err != nil {
		return Org{}, err
	}
	return o, a.store.CreateOrg(ctx, o, NewEntry(ctx, o.CreatedAt, o.ID, OrgCreate, o.ID, ""))
}

func (a *Admins) newOrg(id, name string) (Org, error) {
	if !ValidOrgID(id) {
		return Org{}, errs.New(errs.Invalid, "identity.bad_org",
			"%q cannot be the id of an org; use 1 to 63 of a-z, 0-9 and '-', not starting with '-'", id)
	}
	if name == "" {
		name = id
	}
	if err := checkName(name); err != nil {
		return Org{}, err
	}
	return Org{ID: id, Name: name, CreatedAt: a.now()}, nil
}

// Orgs lists all orgs.
func (a *Admins) Orgs(ctx context.Context) ([]Org, error) { return a.store.Orgs(ctx) }

// CreateMember makes a user or a service. Agents are made by package agent,
// because they carry more than a name.
func (a *Admins) CreateMember(ctx context.Context, p Principal, name string, admin bool) (Member, error) {
	m, err := NewMember(p, name, admin, a.now())
	if err != nil {
		return Member{}, err
	}
	return a.store.CreateMember(ctx, m, NewEntry(ctx, m.CreatedAt, p.Org, MemberCreate, p.Ref(), m.says()))
}

// Members lists an org's principals of one kind, or all if kind is empty.
func (a *Admins) Members(ctx context.Context, org string, kind Kind) ([]Member, error) {
	return a.store.Members(ctx, org, MemberFilter{Kind: kind})
}

// Member returns one principal.
func (a *Admins) Member(ctx context.Context, p Principal) (Member, error) {
	return a.store.Member(ctx, p)
}

// SetAdmin gives a user the admin role or takes it. Taking it ends every key and grant
// of the user that carries svc:admin:admin; the outcome lists them.
func (a *Admins) SetAdmin(ctx context.Context, p Principal, admin bool) (MemberOutcome, error) {
	e := MemberEdit{Admin: &admin}
	if err := e.Validate(p.Kind); err != nil {
		return MemberOutcome{}, err
	}
	return updateMember(ctx, a.store, p, e, a.now())
}

// CreateKey makes a key and returns its secret, which is shown this once and
// cannot be had again. The operator may give any scope to any principal.
func (a *Admins) CreateKey(ctx context.Context, r KeyRequest) (Key, string, error) {
	now := a.now()
	if err := r.Validate(now); err != nil {
		return Key{}, "", err
	}
	k, secret := newKey(r, a.newID("key-"), now)
	e := NewEntry(ctx, now, r.Principal.Org, KeyCreate, k.ID, k.says())
	k, err := a.store.CreateKey(ctx, k, HashSecret(secret), Principal{}, e)
	return k, secret, err
}

// Keys lists an org's keys, newest first.
func (a *Admins) Keys(ctx context.Context, org string) ([]Key, error) {
	return a.store.Keys(ctx, org, KeyFilter{})
}

// RevokeKey ends a key.
func (a *Admins) RevokeKey(ctx context.Context, org, id string) error {
	_, err := revokeKey(ctx, a.store, org, id, a.now())
	return err
}

// First is what the first start on an empty store creates.
type First struct {
	Org    Org
	Admin  Member
	Secret string
}

// Bootstrap creates org "main", its user "admin" and a key with every scope, if
// the store holds no org yet. It returns nil if it does.
func (a *Admins) Bootstrap(ctx context.Context) (*First, error) {
	org, err := a.newOrg("main", "Main")
	if err != nil {
		return nil, err
	}
	admin, err := NewMember(Principal{Org: org.ID, Kind: User, ID: "admin"}, "Admin", true, a.now())
	if err != nil {
		return nil, err
	}
	scopes := make([]string, len(AllScopes))
	for i, s := range AllScopes {
		scopes[i] = string(s)
	}
	now := a.now()
	key, secret := newKey(KeyRequest{Principal: admin.Principal, Name: "first key", Scopes: scopes, CreatedBy: "parley serve"}, a.newID("key-"), now)
	created, err := a.store.Bootstrap(ctx, org, admin, key, HashSecret(secret), []AuditEntry{
		NewEntry(ctx, now, org.ID, OrgCreate, org.ID, ""),
		NewEntry(ctx, now, org.ID, MemberCreate, admin.Ref(), admin.says()),
		NewEntry(ctx, now, org.ID, KeyCreate, key.ID, key.says()),
	})
	if err != nil || !created {
		return nil, err
	}
	return &First{Org: org, Admin: admin, Secret: secret}, nil
}
