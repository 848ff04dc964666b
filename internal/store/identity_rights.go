package store

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
)

// adminRights reads and locks the live credentials of a user that carry svc:admin:admin. The
// caller must have locked the user: CreateKey and RotateKey lock it too, so no key can be
// added before the commit.
func (t *tx) adminRights(ctx context.Context, p identity.Principal, at time.Time) (identity.AdminRights, error) {
	var out identity.AdminRights
	if p.Kind != identity.User {
		return out, nil
	}
	lock := ""
	if t.d.forUpdate != "" {
		lock = t.d.forUpdate + " OF k"
	}
	keys, err := keysWhere(ctx, t, `k.org_id = $1 AND k.kind = $2 AND k.principal_id = $3 AND k.revoked_at = 0
		AND (k.expires_at = 0 OR k.expires_at > $4) ORDER BY k.id`+lock, p.Org, string(p.Kind), p.ID, micros(at))
	if err != nil {
		return out, err
	}
	for _, k := range keys {
		if k.Scopes.Has(identity.Admin) {
			out.Keys = append(out.Keys, k)
		}
	}
	err = each(ctx, t, func(r rows) error {
		var id, scopes string
		err := r.Scan(&id, &scopes)
		if g, ok := identity.NewAdminGrant(id, identity.SplitScopes(scopes)); ok {
			out.Grants = append(out.Grants, g)
		}
		return err
	}, `SELECT id, scopes FROM oauth_grants WHERE org_id = $1 AND kind = $2 AND principal_id = $3 AND revoked_at = 0
		AND ends_at > $4 ORDER BY id`+t.d.forUpdate, p.Org, string(p.Kind), p.ID, micros(at))
	return out, err
}

// endAdminRights ends the rights that adminRights returned, because of the change of the member
// that the audit entry records.
func (t *tx) endAdminRights(e *identity.AuditEntry, m *identity.Member, r identity.AdminRights, at time.Time) {
	for _, k := range r.Keys {
		t.exec(`UPDATE keys SET revoked_at = $3 WHERE org_id = $1 AND id = $2 AND revoked_at = 0`,
			m.Org, k.ID, micros(at))
		k.RevokedAt, k.Disabled = at, m.Disabled
		t.emitKey(e, event.KeyRevoked, &k)
	}
	for _, g := range r.Grants {
		if len(g.Left) == 0 {
			t.exec(`UPDATE oauth_grants SET revoked_at = $2 WHERE id = $1 AND revoked_at = 0`, g.ID, micros(at))
			continue
		}
		t.exec(`UPDATE oauth_grants SET scopes = $2 WHERE id = $1`, g.ID, g.Left.String())
		// Scopes are separated by spaces. A space at each end makes the pattern match whole scopes.
		t.exec(`UPDATE oauth_tokens SET revoked_at = $2
			WHERE grant_id = $1 AND revoked_at = 0 AND ' ' || scopes || ' ' LIKE $3`,
			g.ID, micros(at), "% "+string(identity.Admin)+" %")
	}
}
