package identity

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Operator manages the orgs, principals and keys of the platform, with direct access to the
// data. No transport serves it, so it takes no Access. OrgAdmin is for the admins of an org.
type Operator struct {
	orgs    OrgStore
	members MemberStore
	keys    KeyStore
	now     func() time.Time
	newID   func(prefix string) string
}

// NewOperator returns the service. newID returns a new id with the prefix.
func NewOperator(s Stores, now func() time.Time, newID func(prefix string) string) *Operator {
	return &Operator{orgs: s.Orgs, members: s.Members, keys: s.Keys, now: now, newID: newID}
}

// CreateOrg creates an org. An empty name becomes the id.
func (o *Operator) CreateOrg(ctx context.Context, id, name string) (Org, error) {
	org, err := o.newOrg(id, name)
	if err != nil {
		return Org{}, err
	}
	return org, o.orgs.CreateOrg(ctx, org, NewEntry(ctx, org.CreatedAt, org.ID, OrgCreate, org.ID, ""))
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
func (o *Operator) Orgs(ctx context.Context) ([]Org, error) { return o.orgs.Orgs(ctx) }

// CreateMember creates a user or a service. Package agent creates agents, because they have
// more than a name.
func (o *Operator) CreateMember(ctx context.Context, p Principal, name string, admin bool) (Member, error) {
	m, err := NewMember(p, name, admin, o.now())
	if err != nil {
		return Member{}, err
	}
	return o.members.CreateMember(ctx, m, NewEntry(ctx, m.CreatedAt, p.Org, MemberCreate, p.Ref(), m.says()))
}

// Members lists an org's principals of one kind, or of all kinds if kind is empty.
func (o *Operator) Members(ctx context.Context, org string, kind Kind) ([]Member, error) {
	return o.members.Members(ctx, org, MemberFilter{Kind: kind})
}

// Member returns one principal.
func (o *Operator) Member(ctx context.Context, p Principal) (Member, error) {
	return o.members.Member(ctx, p)
}

// SetAdmin gives a user the admin role or takes it away. Taking it away ends every key and
// grant of the user that carries svc:admin:admin; the outcome lists them.
func (o *Operator) SetAdmin(ctx context.Context, p Principal, admin bool) (MemberOutcome, error) {
	e := MemberEdit{Admin: &admin}
	if err := e.Validate(p.Kind); err != nil {
		return MemberOutcome{}, err
	}
	return updateMember(ctx, o.members, p, e, o.now())
}

// CreateKey creates a key and returns its secret, which cannot be read again. The operator
// may give any scope to any principal.
func (o *Operator) CreateKey(ctx context.Context, r KeyRequest) (Key, string, error) {
	now := o.now()
	if err := r.Validate(now); err != nil {
		return Key{}, "", err
	}
	k, secret := newKey(r, o.newID("key-"), now)
	e := NewEntry(ctx, now, r.Principal.Org, KeyCreate, k.ID, k.says())
	k, err := o.keys.CreateKey(ctx, k, HashSecret(secret), Principal{}, e)
	return k, secret, err
}

// Keys lists an org's keys, newest first.
func (o *Operator) Keys(ctx context.Context, org string) ([]Key, error) {
	return o.keys.Keys(ctx, org, KeyFilter{})
}

// RevokeKey ends a key.
func (o *Operator) RevokeKey(ctx context.Context, org, id string) error {
	_, err := revokeKey(ctx, o.keys, org, id, o.now())
	return err
}

// First holds what the first start on an empty store created.
type First struct {
	Org    Org
	Admin  Member
	Secret string
}

// Founding names the first org and its first admin.
type Founding struct {
	Org, OrgName     string
	Admin, AdminName string
}

// Bootstrap creates the org "main", its user "admin" and a key with every scope, if the
// store has no org yet. Otherwise it returns nil.
func (o *Operator) Bootstrap(ctx context.Context) (*First, error) {
	return o.Found(ctx, Founding{Org: "main", OrgName: "Main", Admin: "admin", AdminName: "Admin"})
}

// Found is Bootstrap with other names.
func (o *Operator) Found(ctx context.Context, f Founding) (*First, error) {
	org, err := o.newOrg(f.Org, f.OrgName)
	if err != nil {
		return nil, err
	}
	admin, err := NewMember(Principal{Org: org.ID, Kind: User, ID: f.Admin}, f.AdminName, true, o.now())
	if err != nil {
		return nil, err
	}
	scopes := make([]string, len(AllScopes))
	for i, s := range AllScopes {
		scopes[i] = string(s)
	}
	now := o.now()
	request := KeyRequest{Principal: admin.Principal, Name: "first key", Scopes: scopes, CreatedBy: "parley serve"}
	key, secret := newKey(request, o.newID("key-"), now)
	created, err := o.orgs.Bootstrap(ctx, org, admin, key, HashSecret(secret), []AuditEntry{
		NewEntry(ctx, now, org.ID, OrgCreate, org.ID, ""),
		NewEntry(ctx, now, org.ID, MemberCreate, admin.Ref(), admin.says()),
		NewEntry(ctx, now, org.ID, KeyCreate, key.ID, key.says()),
	})
	if err != nil || !created {
		return nil, err
	}
	return &First{Org: org, Admin: admin, Secret: secret}, nil
}
