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

// AdminRights are the live credentials of one user that carry svc:admin:admin. The
// transaction that takes the admin role from the user must end them: with one of them the
// user could take the role back.
type AdminRights struct {
	Keys   []Key
	Grants []AdminGrant
}

// AdminGrant is an OAuth grant that carries svc:admin:admin. When its user loses the role,
// the grant loses the scope and keeps the others, as it would at the next refresh. Its
// tokens that carry the scope are revoked.
type AdminGrant struct {
	ID   string
	Left Scopes // without svc:admin:admin; empty: the grant ends
}

// NewAdminGrant returns an AdminGrant, if the scopes include svc:admin:admin.
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
		g.Left = nil // a restriction to agents alone grants nothing
	}
	return g, true
}

// End returns the audit entries for ending the rights, one for each key and grant.
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

// MemberScene is the state that the change of a member depends on.
type MemberScene struct {
	Member      Member
	OtherAdmins int         // number of other enabled admin users of the org
	Rights      AdminRights // of the member; only set for users
}

// MemberOutcome is the result of the change of a member. Without entries, nothing is
// written.
type MemberOutcome struct {
	Member  Member
	End     AdminRights // credentials that end with the change
	Entries []AuditEntry
}

// grantor returns the user who must be an admin for the key to be created: a user who
// grants svc:admin:admin. For agents and services it is the zero Principal: the scopes of
// their key suffice.
func grantor(a Access, scopes Scopes) Principal {
	if a.Principal().Kind == User && scopes.Has(Admin) {
		return a.Principal()
	}
	return Principal{}
}

// NotAnAdmin returns the error for a user who asks for a key with svc:admin:admin and is not
// an admin.
func NotAnAdmin(p Principal) error {
	return errs.New(errs.Forbidden, "identity.not_an_admin",
		"%s is not an admin of the org, and cannot make or rotate a key with the scope %s; ask an admin",
		p.Ref(), Admin)
}
