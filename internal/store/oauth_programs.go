package store

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// GrantOf implements oauth.GrantStore.
func (s OAuth) GrantOf(ctx context.Context, p identity.Principal, id string) (oauth.Grant, error) {
	return oneGrant(ctx, s.eng, `g.id = $1 AND g.org_id = $2 AND g.kind = $3 AND g.principal_id = $4`,
		id, p.Org, string(p.Kind), p.ID)
}

// HasGrant implements oauth.GrantStore.
func (s OAuth) HasGrant(ctx context.Context, p identity.Principal, clientID string, now time.Time) (bool, error) {
	var n int
	return one(ctx, s.eng, []any{&n}, `SELECT 1 FROM oauth_grants
		WHERE org_id = $1 AND kind = $2 AND principal_id = $3 AND client_id = $4
			AND revoked_at = 0 AND ends_at > $5 LIMIT 1`, p.Org, string(p.Kind), p.ID, clientID, micros(now))
}

const programsOf = `SELECT ` + grantColumns + `, coalesce(c.name, ''), coalesce(c.scopes, '')
	FROM oauth_grants g LEFT JOIN oauth_clients c ON c.id = g.client_id
	WHERE g.org_id = $1 AND g.kind = $2 AND g.principal_id = $3 AND g.revoked_at = 0 AND g.ends_at > $4
		AND (g.code_used_at > 0 OR g.code_expires_at > $4)
	ORDER BY g.id DESC`

// Programs implements oauth.GrantStore.
func (s OAuth) Programs(ctx context.Context, p identity.Principal, now time.Time, most int) ([]oauth.Program, error) {
	list := []oauth.Program{}
	err := each(ctx, s.eng, func(r rows) error {
		var row grantRow
		var out oauth.Program
		var scopes string
		err := r.Scan(append(row.dest(), &out.Name, &scopes)...)
		if err == nil {
			out.ClientScopes = identity.SplitScopes(scopes)
			out.Grant, err = row.grant()
		}
		list = append(list, out)
		return err
	}, programsOf+limit(most), p.Org, string(p.Kind), p.ID, micros(now))
	return list, err
}
