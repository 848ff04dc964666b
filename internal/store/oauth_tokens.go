package store

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// CreateToken implements oauth.TokenStore.
func (s OAuth) CreateToken(ctx context.Context, k oauth.Token, h identity.Hash, e identity.AuditEntry) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.exec(`INSERT INTO oauth_tokens (hash, id, grant_id, scopes, audience, created_at, expires_at, revoked_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, 0)`,
			hashText(h), k.ID, k.GrantID, k.Scopes.String(), k.Audience, micros(k.CreatedAt), micros(k.ExpiresAt))
		t.audit(e)
		return nil
	})
}

// TokenByHash implements oauth.TokenStore.
func (s OAuth) TokenByHash(ctx context.Context, h identity.Hash) (oauth.TokenState, error) {
	var st oauth.TokenState
	var r grantRow
	var scopes, keyID, keyScopes, clientScopes string
	var created, expires, revoked, admin, disabled, keyExpires, keyRevoked int64
	dest := append([]any{
		&st.ID, &scopes, &st.Audience, &created, &expires, &revoked, &st.Member.Name, &admin, &disabled,
		&keyID, &keyScopes, &keyExpires, &keyRevoked, &clientScopes,
	}, r.dest()...)
	found, err := one(ctx, s.eng, dest, `SELECT t.id, t.scopes, t.audience, t.created_at, t.expires_at, t.revoked_at,
			p.name, p.admin, p.disabled,
			coalesce(k.id, ''), coalesce(k.scopes, ''), coalesce(k.expires_at, 0), coalesce(k.revoked_at, 0),
			coalesce(c.scopes, ''), `+grantColumns+`
		FROM oauth_tokens t JOIN oauth_grants g ON g.id = t.grant_id
			JOIN principals p ON p.org_id = g.org_id AND p.kind = g.kind AND p.id = g.principal_id
			LEFT JOIN oauth_clients c ON c.id = g.client_id
					LEFT JOIN keys k ON k.id = g.client_id AND k.org_id = g.org_id AND k.kind = g.kind
						AND k.principal_id = g.principal_id
		WHERE t.hash = $1`, hashText(h))
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	if err != nil {
		return oauth.TokenState{}, err
	}
	if st.Grant, err = r.grant(); err != nil {
		return oauth.TokenState{}, err
	}
	st.GrantID, st.ClientID, st.Scopes = st.Grant.ID, st.Grant.ClientID, identity.SplitScopes(scopes)
	st.ClientScopes = identity.SplitScopes(clientScopes)
	st.CreatedAt, st.ExpiresAt, st.RevokedAt = fromMicros(created), fromMicros(expires), fromMicros(revoked)
	st.Member.Principal, st.Member.Admin, st.Member.Disabled = st.Grant.Principal, admin != 0, disabled != 0
	if keyID != "" {
		st.Key = &identity.Key{
			ID: keyID, Principal: st.Grant.Principal, Scopes: identity.SplitScopes(keyScopes),
			ExpiresAt: fromMicros(keyExpires), RevokedAt: fromMicros(keyRevoked), Disabled: disabled != 0,
		}
	}
	return st, nil
}

// RevokeToken implements oauth.TokenStore.
func (s OAuth) RevokeToken(ctx context.Context, h identity.Hash, at time.Time, e identity.AuditEntry) error {
	return s.eng.write(ctx, func(t *tx) error {
		live, err := t.exists(ctx, `SELECT 1 FROM oauth_tokens
			WHERE hash = $1 AND revoked_at = 0`+t.d.forUpdate, hashText(h))
		if err != nil || !live {
			return err
		}
		t.exec(`UPDATE oauth_tokens SET revoked_at = $2 WHERE hash = $1`, hashText(h), micros(at))
		t.newEpoch(e.Org) // the org of the token's grant
		t.audit(e)
		return nil
	})
}
