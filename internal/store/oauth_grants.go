package store

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// CreateGrant implements oauth.GrantStore.
func (s OAuth) CreateGrant(ctx context.Context, g oauth.Grant, entries ...identity.AuditEntry) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.exec(`INSERT INTO oauth_grants (id, org_id, kind, principal_id, client_id, scopes, audience, created_at,
				revoked_at, ends_at, code_hash, code_expires_at, code_used_at, challenge, redirect_uri, refresh_hash,
				refresh_expires_at, version)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $10, $11, 0, $12, $13, $14, $15, 1)`,
			g.ID, g.Principal.Org, string(g.Principal.Kind), g.Principal.ID, g.ClientID, g.Scopes.String(), g.Audience,
			micros(g.CreatedAt), micros(g.EndsAt), hashText(g.Code), micros(g.CodeExpires), g.Challenge, g.RedirectURI,
			hashText(g.Refresh), micros(g.RefreshExpires))
		t.keepRefresh(g)
		t.exec(`UPDATE oauth_clients SET used_at = $2 WHERE id = $1`, g.ClientID, micros(g.CreatedAt))
		t.audit(entries...)
		return nil
	})
}

func (t *tx) keepRefresh(g oauth.Grant) {
	if g.Refresh != (identity.Hash{}) {
		t.exec(`INSERT INTO oauth_refresh (hash, grant_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
			hashText(g.Refresh), g.ID)
	}
}

const grantColumns = `g.id, g.org_id, g.kind, g.principal_id, g.client_id, g.scopes, g.audience, g.created_at,
	g.revoked_at, g.ends_at, g.code_hash, g.code_expires_at, g.code_used_at, g.challenge, g.redirect_uri, g.refresh_hash,
	g.refresh_expires_at, g.version`

// grantRow receives grantColumns.
type grantRow struct {
	g                                                             oauth.Grant
	kind, scopes, code, refresh                                   string
	created, revoked, ends, codeExpires, codeUsed, refreshExpires int64
}

func (r *grantRow) dest() []any {
	g := &r.g
	return []any{
		&g.ID, &g.Principal.Org, &r.kind, &g.Principal.ID, &g.ClientID, &r.scopes, &g.Audience, &r.created,
		&r.revoked, &r.ends, &r.code, &r.codeExpires, &r.codeUsed, &g.Challenge, &g.RedirectURI, &r.refresh,
		&r.refreshExpires, &g.Version,
	}
}

func (r *grantRow) grant() (oauth.Grant, error) {
	g := r.g
	g.Principal.Kind, g.Scopes = identity.Kind(r.kind), identity.SplitScopes(r.scopes)
	g.CreatedAt, g.RevokedAt, g.EndsAt = fromMicros(r.created), fromMicros(r.revoked), fromMicros(r.ends)
	g.CodeExpires, g.CodeUsedAt = fromMicros(r.codeExpires), fromMicros(r.codeUsed)
	g.RefreshExpires = fromMicros(r.refreshExpires)
	var err error
	if g.Code, err = fromHashText(r.code); err == nil {
		g.Refresh, err = fromHashText(r.refresh)
	}
	return g, err
}

func oneGrant(ctx context.Context, q reader, where string, args ...any) (oauth.Grant, error) {
	var r grantRow
	found, err := one(ctx, q, r.dest(), `SELECT `+grantColumns+` FROM oauth_grants g WHERE `+where, args...)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	if err != nil {
		return oauth.Grant{}, err
	}
	return r.grant()
}

// Grant implements oauth.GrantStore.
func (s OAuth) Grant(ctx context.Context, id string) (oauth.Grant, error) {
	return oneGrant(ctx, s.eng, `g.id = $1`, id)
}

// GrantByCode implements oauth.GrantStore.
func (s OAuth) GrantByCode(ctx context.Context, code identity.Hash) (oauth.Grant, error) {
	return oneGrant(ctx, s.eng, `g.code_hash = $1 AND g.code_hash <> ''`, hashText(code))
}

// GrantByRefresh implements oauth.GrantStore.
func (s OAuth) GrantByRefresh(ctx context.Context, refresh identity.Hash) (oauth.Grant, error) {
	return oneGrant(ctx, s.eng, `g.id = (SELECT grant_id FROM oauth_refresh WHERE hash = $1)`, hashText(refresh))
}

var errGrantMoved = errs.New(errs.Conflict, "oauth.grant_moved",
	"the code or refresh token was already used; authorize again")

// UpdateGrant implements oauth.GrantStore. The row is locked, or there is only one writer: of two
// callers that read the same version, the second finds another version.
func (s OAuth) UpdateGrant(ctx context.Context, g oauth.Grant) error {
	return s.eng.write(ctx, func(t *tx) error {
		var version, revoked int64
		found, err := one(ctx, t, []any{&version, &revoked}, `SELECT version, revoked_at FROM oauth_grants
			WHERE id = $1`+t.d.forUpdate, g.ID)
		switch {
		case err != nil:
			return err
		case !found:
			return errs.ErrNotFound
		case version != g.Version || revoked != 0:
			return errGrantMoved
		}
		t.exec(`UPDATE oauth_grants SET code_used_at = $2, refresh_hash = $3, refresh_expires_at = $4, ends_at = $5,
				version = version + 1
			WHERE id = $1`,
			g.ID, micros(g.CodeUsedAt), hashText(g.Refresh), micros(g.RefreshExpires), micros(g.EndsAt))
		t.keepRefresh(g)
		return nil
	})
}

// RevokeGrant implements oauth.GrantStore.
func (s OAuth) RevokeGrant(ctx context.Context, id string, at time.Time, e identity.AuditEntry) (bool, error) {
	did := false
	err := s.eng.write(ctx, func(t *tx) error {
		var revoked int64
		var org string
		found, err := one(ctx, t, []any{&revoked, &org}, `SELECT revoked_at, org_id FROM oauth_grants
			WHERE id = $1`+t.d.forUpdate, id)
		if did = err == nil && found && revoked == 0; !did {
			return err
		}
		t.exec(`UPDATE oauth_grants SET revoked_at = $2 WHERE id = $1`, id, micros(at))
		t.newEpoch(org)
		t.audit(e)
		return nil
	})
	return did, err
}
