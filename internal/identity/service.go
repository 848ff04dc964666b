package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// Store keeps orgs, principals and keys. Every method that is not about the
// platform as a whole is scoped by org.
type Store interface {
	// CreateOrg refuses a taken id with Conflict.
	CreateOrg(ctx context.Context, o Org) error
	Orgs(ctx context.Context) ([]Org, error)
	// Bootstrap creates the org, the member and the key if and only if no org
	// exists yet, in one transaction, and reports whether it did.
	Bootstrap(ctx context.Context, o Org, m Member, k Key, h Hash) (bool, error)

	// CreateMember refuses a taken id with Conflict and an unknown org with NotFound.
	CreateMember(ctx context.Context, m Member) error
	// Members lists an org's principals of one kind, or of all kinds if kind is empty.
	Members(ctx context.Context, org string, kind Kind) ([]Member, error)
	// Member returns NotFound for an unknown principal.
	Member(ctx context.Context, p Principal) (Member, error)

	// CreateKey refuses a principal that does not exist with NotFound.
	CreateKey(ctx context.Context, k Key, h Hash) error
	Keys(ctx context.Context, org string) ([]Key, error)
	// KeyByHash returns NotFound for an unknown hash.
	KeyByHash(ctx context.Context, h Hash) (Key, error)
	// RevokeKey is idempotent; an unknown id is NotFound.
	RevokeKey(ctx context.Context, org, id string, at time.Time) error
	// TouchKeys records when keys were last used.
	TouchKeys(ctx context.Context, used map[string]time.Time) error

	// IdentityEpoch changes whenever a right may have been taken away, by whatever
	// process; caches of rights are emptied when it does.
	IdentityEpoch(ctx context.Context) (int64, error)
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

const maxNameLength = 200

// CreateOrg makes an org; an empty name becomes the id.
func (a *Admins) CreateOrg(ctx context.Context, id, name string) (Org, error) {
	o, err := a.newOrg(id, name)
	if err != nil {
		return Org{}, err
	}
	return o, a.store.CreateOrg(ctx, o)
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
	return m, a.store.CreateMember(ctx, m)
}

// NewMember checks a principal and makes the record of it; an empty name becomes the id.
func NewMember(p Principal, name string, admin bool, now time.Time) (Member, error) {
	if _, err := ParseRef(p.Org, p.Ref()); err != nil {
		return Member{}, err
	}
	if name == "" {
		name = p.ID
	}
	if err := checkName(name); err != nil {
		return Member{}, err
	}
	return Member{Principal: p, Name: name, Admin: admin, CreatedAt: now}, nil
}

// Members lists an org's principals of one kind, or all if kind is empty.
func (a *Admins) Members(ctx context.Context, org string, kind Kind) ([]Member, error) {
	return a.store.Members(ctx, org, kind)
}

// KeyRequest asks for a key.
type KeyRequest struct {
	Principal Principal
	Name      string
	Scopes    []string
	CreatedBy string
	ExpiresAt time.Time // zero: never
}

// CreateKey makes a key and returns its secret, which is shown this once and
// cannot be had again.
func (a *Admins) CreateKey(ctx context.Context, r KeyRequest) (Key, string, error) {
	k, secret, err := a.newKey(r)
	if err != nil {
		return Key{}, "", err
	}
	return k, secret, a.store.CreateKey(ctx, k, HashSecret(secret))
}

func (a *Admins) newKey(r KeyRequest) (Key, string, error) {
	now := a.now()
	if len(r.Scopes) == 0 {
		return Key{}, "", errs.New(errs.Invalid, "identity.no_scope", "a key needs at least one scope, for example %s", TasksRead)
	}
	if !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(now) {
		return Key{}, "", errs.New(errs.Invalid, "identity.bad_expiry", "the expiry must lie in the future")
	}
	if r.Name != "" {
		if err := checkName(r.Name); err != nil {
			return Key{}, "", err
		}
	}
	var scopes Scopes
	for _, s := range r.Scopes {
		scope, err := ParseScope(s)
		if err != nil {
			return Key{}, "", err
		}
		if !scopes.Has(scope) {
			scopes = append(scopes, scope)
		}
	}
	secret := NewSecret()
	return Key{
		ID: a.newID("key-"), Principal: r.Principal, Name: r.Name, Prefix: ShownPrefix(secret), Scopes: scopes,
		CreatedAt: now, CreatedBy: r.CreatedBy, ExpiresAt: r.ExpiresAt,
	}, secret, nil
}

// Keys lists an org's keys.
func (a *Admins) Keys(ctx context.Context, org string) ([]Key, error) { return a.store.Keys(ctx, org) }

// RevokeKey ends a key.
func (a *Admins) RevokeKey(ctx context.Context, org, id string) error {
	return a.store.RevokeKey(ctx, org, id, a.now())
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
	key, secret, err := a.newKey(KeyRequest{Principal: admin.Principal, Name: "first key", Scopes: scopes, CreatedBy: "parley serve"})
	if err != nil {
		return nil, err
	}
	created, err := a.store.Bootstrap(ctx, org, admin, key, HashSecret(secret))
	if err != nil || !created {
		return nil, err
	}
	return &First{Org: org, Admin: admin, Secret: secret}, nil
}

func checkName(name string) error {
	if n := len([]rune(name)); n == 0 || n > maxNameLength {
		return errs.New(errs.Invalid, "identity.bad_name", "a name has 1 to %d characters", maxNameLength)
	}
	for _, r := range name {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return errs.New(errs.Invalid, "identity.bad_name", "a name cannot contain the character %s", fmt.Sprintf("%U", r))
		}
	}
	return nil
}
