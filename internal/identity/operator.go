package identity

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Operator is what the operator does to any org, with the data at hand: orgs, principals
// and keys. Nothing of it is served to a client, so it asks for no Access. What the admins
// of an org do is OrgAdmin.
type Operator struct {
	store Store
	now   func() time.Time
	newID func(prefix string) string
}

// NewOperator makes the service. newID returns a fresh id with the given prefix.
func NewOperator(store Store, now func() time.Time, newID func(prefix string) string) *Operator {
	return &Operator{store: store, now: now, newID: newID}
}

// CreateOrg makes an org; an empty name becomes the id.
func (o *Operator) CreateOrg(ctx context.Context, id, name string) (Org, error) {
	org, err := o.newOrg(id, name)
	if err != nil {
		return Org{}, err
	}
	return org, o.store.CreateOrg(ctx, org, NewEntry(ctx, org.CreatedAt, org.ID, OrgCreate, org.ID, ""))
}

func (o *Operator) newOrg(id, name string) (Org, error) {
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
	return Org{ID: id, Name: name, CreatedAt: o.now()}, nil
}

// Orgs lists all orgs.
func (o *Operator) Orgs(ctx context.Context) ([]Org, error) { return o.store.Orgs(ctx) }

// CreateMember makes a user or a service. Agents are made by package agent,
// because they carry more than a name.
func (o *Operator) CreateMember(ctx context.Context, p Principal, name string, admin bool) (Member, error) {
	m, err := NewMember(p, name, admin, o.now())
	if err != nil {
		return Member{}, err
	}
	return o.store.CreateMember(ctx, m, NewEntry(ctx, m.CreatedAt, p.Org, MemberCreate, p.Ref(), m.says()))
}

// Members lists an org's principals of one kind, or all if kind is empty.
func (o *Operator) Members(ctx context.Context, org string, kind Kind) ([]Member, error) {
	return o.store.Members(ctx, org, MemberFilter{Kind: kind})
}

// Member returns one principal.
func (o *Operator) Member(ctx context.Context, p Principal) (Member, error) {
	return o.store.Member(ctx, p)
}

// SetAdmin gives a user the admin role or takes it. Taking it ends every key and grant
// of the user that carries svc:admin:admin; the outcome lists them.
func (o *Operator) SetAdmin(ctx context.Context, p Principal, admin bool) (MemberOutcome, error) {
	e := MemberEdit{Admin: &admin}
	if err := e.Validate(p.Kind); err != nil {
		return MemberOutcome{}, err
	}
	return updateMember(ctx, o.store, p, e, o.now())
}

// CreateKey makes a key and returns its secret, which is shown this once and
// cannot be had again. The operator may give any scope to any principal.
func (o *Operator) CreateKey(ctx context.Context, r KeyRequest) (Key, string, error) {
	now := o.now()
	if err := r.Validate(now); err != nil {
		return Key{}, "", err
	}
	k, secret := newKey(r, o.newID("key-"), now)
	e := NewEntry(ctx, now, r.Principal.Org, KeyCreate, k.ID, k.says())
	k, err := o.store.CreateKey(ctx, k, HashSecret(secret), Principal{}, e)
	return k, secret, err
}

// Keys lists an org's keys, newest first.
func (o *Operator) Keys(ctx context.Context, org string) ([]Key, error) {
	return o.store.Keys(ctx, org, KeyFilter{})
}

// RevokeKey ends a key.
func (o *Operator) RevokeKey(ctx context.Context, org, id string) error {
	_, err := revokeKey(ctx, o.store, org, id, o.now())
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
func (o *Operator) Bootstrap(ctx context.Context) (*First, error) {
	org, err := o.newOrg("main", "Main")
	if err != nil {
		return nil, err
	}
	admin, err := NewMember(Principal{Org: org.ID, Kind: User, ID: "admin"}, "Admin", true, o.now())
	if err != nil {
		return nil, err
	}
	scopes := make([]string, len(AllScopes))
	for i, s := range AllScopes {
		scopes[i] = string(s)
	}
	now := o.now()
	key, secret := newKey(KeyRequest{Principal: admin.Principal, Name: "first key", Scopes: scopes, CreatedBy: "parley serve"}, o.newID("key-"), now)
	created, err := o.store.Bootstrap(ctx, org, admin, key, HashSecret(secret), []AuditEntry{
		NewEntry(ctx, now, org.ID, OrgCreate, org.ID, ""),
		NewEntry(ctx, now, org.ID, MemberCreate, admin.Ref(), admin.says()),
		NewEntry(ctx, now, org.ID, KeyCreate, key.ID, key.says()),
	})
	if err != nil || !created {
		return nil, err
	}
	return &First{Org: org, Admin: admin, Secret: secret}, nil
}
