package identity

import (
	"context"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// GrantRevoke and GrantNarrow are the audit actions of an OAuth grant that ends, and of
// one that loses a scope. They are defined here because a demotion does both.
const (
	GrantRevoke AuditAction = "oauth.grant.revoke"
	GrantNarrow AuditAction = "oauth.grant.narrow"
)

// AdminRights are the live credentials of one user that carry svc:admin:admin. They
// must end in the transaction that takes the admin role from the user: with any of
// them the user could take the role back.
type AdminRights struct {
	Keys   []Key
	Grants []AdminGrant
}

// AdminGrant is an OAuth grant that carries svc:admin:admin. A key ends with the role,
// while a grant only loses the scope: the program goes on with what is left, which is
// what it would get by a refresh. Its tokens that carry the scope end.
type AdminGrant struct {
	ID   string
	Left Scopes // without svc:admin:admin; empty: the grant ends
}

// NewAdminGrant returns the grant if its scopes carry svc:admin:admin.
func NewAdminGrant(id string, scopes Scopes) (g AdminGrant, ok bool) {
	if !scopes.Has(Admin) {
		return AdminGrant{}, false
	}
	g.ID = id
	rights := 0
	for _, s := range scopes {
		if s == Admin {
			continue
		}
		g.Left = append(g.Left, s)
		if !strings.HasPrefix(string(s), agentScopePrefix) {
			rights++
		}
	}
	if rights == 0 {
		g.Left = nil // a restriction to agents is no right
	}
	return g, true
}

// End returns the audit entries of ending the rights, one for each key and grant.
func (r AdminRights) End(ctx context.Context, p Principal, now time.Time) []AuditEntry {
	var out []AuditEntry
	why := p.Ref() + " is no longer an admin"
	for i := range r.Keys {
		k := &r.Keys[i]
		out = append(out, NewEntry(ctx, now, p.Org, KeyRevoke, k.ID, k.says()+"; "+why))
	}
	for _, g := range r.Grants {
		action, detail := GrantNarrow, "to "+g.Left.String()+"; "+why
		if len(g.Left) == 0 {
			action, detail = GrantRevoke, why
		}
		out = append(out, NewEntry(ctx, now, p.Org, action, g.ID, detail))
	}
	return out
}

// MemberScene is what the change of a member is decided on.
type MemberScene struct {
	Member      Member
	OtherAdmins int         // enabled admin users of the org beside the member
	Rights      AdminRights // of the member; only read for users
}

// MemberOutcome is what becomes of a member. Without entries nothing is written.
type MemberOutcome struct {
	Member  Member
	End     AdminRights // credentials that end with the change
	Entries []AuditEntry
}

// grantor returns who must be an admin for the key to be made: a user who hands out
// svc:admin:admin. The zero Principal means that nobody must be; agents and services
// are admins by the scopes of their keys alone.
func grantor(a Access, scopes Scopes) Principal {
	if a.Principal().Kind == User && scopes.Has(Admin) {
		return a.Principal()
	}
	return Principal{}
}

// NotAnAdmin is the refusal of a key with svc:admin:admin that a user who is not an
// admin asks for.
func NotAnAdmin(p Principal) error {
	return errs.New(errs.Forbidden, "identity.not_an_admin",
		"%s is not an admin of the org, and cannot make or rotate a key with the scope %s; ask an admin", p.Ref(), Admin)
}
