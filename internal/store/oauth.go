package store

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// hashText is a hash as it is stored; the zero hash is empty.
func hashText(h identity.Hash) string {
	if h == (identity.Hash{}) {
		return ""
	}
	return hex.EncodeToString(h[:])
}

func fromHashText(s string) (h identity.Hash, err error) {
	if s == "" {
		return h, nil
	}
	if n, err := hex.Decode(h[:], []byte(s)); err != nil || n != len(h) {
		return h, fmt.Errorf("a stored hash is broken: %w", err)
	}
	return h, nil
}

// CreateOAuthClient implements oauth.Store.
func (s *Store) CreateOAuthClient(ctx context.Context, c oauth.Client, secret identity.Hash, e identity.AuditEntry) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.insertClient(c, secret)
		t.audit(e)
		return nil
	})
}

func (t *tx) insertClient(c oauth.Client, secret identity.Hash) {
	t.exec(`INSERT INTO oauth_clients (id, secret_hash, name, method, redirect_uris, scopes, created_at, used_at, org_id, created_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9)`,
		c.ID, hashText(secret), c.Name, string(c.Method), strings.Join(c.RedirectURIs, "\n"), c.Scopes.String(), micros(c.CreatedAt),
		c.Org, c.CreatedBy)
}

// PutDescribedClient implements oauth.Store.
func (s *Store) PutDescribedClient(ctx context.Context, c oauth.Client, e identity.AuditEntry) error {
	return s.eng.write(ctx, func(t *tx) error {
		uris, scopes := strings.Join(c.RedirectURIs, "\n"), c.Scopes.String()
		var r clientRow
		known, err := one(ctx, t, r.dest(), `SELECT `+clientColumns+` FROM oauth_clients WHERE id = $1`+t.d.forUpdate, c.ID)
		if err != nil || known && r.c.Name == c.Name && r.uris == uris && r.scopes == scopes {
			return err
		}
		if known && r.scopes != scopes {
			t.newEpoch("") // as in UpdateOrgClient
		}
		t.exec(`INSERT INTO oauth_clients (id, secret_hash, name, method, redirect_uris, scopes, created_at, used_at, org_id, created_by)
			VALUES ($1, '', $2, $3, $4, $5, $6, 0, '', '')
			ON CONFLICT (id) DO UPDATE SET name = excluded.name, redirect_uris = excluded.redirect_uris, scopes = excluded.scopes,
				version = oauth_clients.version + 1`,
			c.ID, c.Name, string(c.Method), uris, scopes, micros(c.CreatedAt))
		t.audit(e)
		return nil
	})
}

const clientColumns = `id, name, method, redirect_uris, scopes, created_at, org_id, created_by, old_secret_expires_at, version`

// clientRow receives the columns above.
type clientRow struct {
	c                    oauth.Client
	method, uris, scopes string
	created, old         int64
}

func (r *clientRow) dest() []any {
	return []any{
		&r.c.ID, &r.c.Name, &r.method, &r.uris, &r.scopes, &r.created, &r.c.Org, &r.c.CreatedBy, &r.old, &r.c.Version,
	}
}

func (r *clientRow) client() oauth.Client {
	c := r.c
	c.Method, c.RedirectURIs, c.Scopes, c.CreatedAt = oauth.Method(r.method), strings.Split(r.uris, "\n"), identity.SplitScopes(r.scopes), fromMicros(r.created)
	c.OldSecretExpires = fromMicros(r.old)
	return c
}

// OAuthClient implements oauth.Store.
func (s *Store) OAuthClient(ctx context.Context, id string) (oauth.Client, identity.Hash, error) {
	var r clientRow
	var secret, old string
	found, err := one(ctx, s.eng, append(r.dest(), &secret, &old),
		`SELECT `+clientColumns+`, secret_hash, old_secret_hash FROM oauth_clients WHERE id = $1`, id)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	if err != nil {
		return oauth.Client{}, identity.Hash{}, err
	}
	c := r.client()
	h, err := fromHashText(secret)
	if err == nil {
		c.OldSecret, err = fromHashText(old)
	}
	return c, h, err
}

// KeyClient implements oauth.Store.
func (s *Store) KeyClient(ctx context.Context, id string) (identity.Key, identity.Hash, error) {
	k, err := oneKey(ctx, s.eng, `k.id = $1`, id)
	if err != nil {
		return k, identity.Hash{}, err
	}
	var text string
	found, err := one(ctx, s.eng, []any{&text}, `SELECT hash FROM keys WHERE id = $1`, id)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	if err != nil {
		return k, identity.Hash{}, err
	}
	h, err := fromHashText(text)
	return k, h, err
}

// CreateGrant implements oauth.Store.
func (s *Store) CreateGrant(ctx context.Context, g oauth.Grant, entries ...identity.AuditEntry) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.exec(`INSERT INTO oauth_grants (id, org_id, kind, principal_id, client_id, scopes, audience, created_at, revoked_at, ends_at,
				code_hash, code_expires_at, code_used_at, challenge, redirect_uri, refresh_hash, refresh_expires_at, version)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $10, $11, 0, $12, $13, $14, $15, 1)`,
			g.ID, g.Principal.Org, string(g.Principal.Kind), g.Principal.ID, g.ClientID, g.Scopes.String(), g.Audience, micros(g.CreatedAt),
			micros(g.EndsAt), hashText(g.Code), micros(g.CodeExpires), g.Challenge, g.RedirectURI, hashText(g.Refresh), micros(g.RefreshExpires))
		t.keepRefresh(g)
		t.exec(`UPDATE oauth_clients SET used_at = $2 WHERE id = $1`, g.ClientID, micros(g.CreatedAt))
		t.audit(entries...)
		return nil
	})
}

func (t *tx) keepRefresh(g oauth.Grant) {
	if g.Refresh != (identity.Hash{}) {
		t.exec(`INSERT INTO oauth_refresh (hash, grant_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, hashText(g.Refresh), g.ID)
	}
}

const grantColumns = `g.id, g.org_id, g.kind, g.principal_id, g.client_id, g.scopes, g.audience, g.created_at, g.revoked_at, g.ends_at,
	g.code_hash, g.code_expires_at, g.code_used_at, g.challenge, g.redirect_uri, g.refresh_hash, g.refresh_expires_at, g.version`

// grantRow receives the columns above.
type grantRow struct {
	g                                                             oauth.Grant
	kind, scopes, code, refresh                                   string
	created, revoked, ends, codeExpires, codeUsed, refreshExpires int64
}

func (r *grantRow) dest() []any {
	g := &r.g
	return []any{
		&g.ID, &g.Principal.Org, &r.kind, &g.Principal.ID, &g.ClientID, &r.scopes, &g.Audience, &r.created, &r.revoked, &r.ends,
		&r.code, &r.codeExpires, &r.codeUsed, &g.Challenge, &g.RedirectURI, &r.refresh, &r.refreshExpires, &g.Version,
	}
}

func (r *grantRow) grant() (oauth.Grant, error) {
	g := r.g
	g.Principal.Kind, g.Scopes = identity.Kind(r.kind), identity.SplitScopes(r.scopes)
	g.CreatedAt, g.RevokedAt, g.EndsAt = fromMicros(r.created), fromMicros(r.revoked), fromMicros(r.ends)
	g.CodeExpires, g.CodeUsedAt, g.RefreshExpires = fromMicros(r.codeExpires), fromMicros(r.codeUsed), fromMicros(r.refreshExpires)
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

// Grant implements oauth.Store.
func (s *Store) Grant(ctx context.Context, id string) (oauth.Grant, error) {
	return oneGrant(ctx, s.eng, `g.id = $1`, id)
}

// GrantByCode implements oauth.Store.
func (s *Store) GrantByCode(ctx context.Context, code identity.Hash) (oauth.Grant, error) {
	return oneGrant(ctx, s.eng, `g.code_hash = $1 AND g.code_hash <> ''`, hashText(code))
}

// GrantByRefresh implements oauth.Store.
func (s *Store) GrantByRefresh(ctx context.Context, refresh identity.Hash) (oauth.Grant, error) {
	return oneGrant(ctx, s.eng, `g.id = (SELECT grant_id FROM oauth_refresh WHERE hash = $1)`, hashText(refresh))
}

var errGrantMoved = errs.New(errs.Conflict, "oauth.grant_moved", "the code or the refresh token was used a moment ago")

// UpdateGrant implements oauth.Store. The row is locked, or there is one writer, so
// of two that read the same version the second finds another.
func (s *Store) UpdateGrant(ctx context.Context, g oauth.Grant) error {
	return s.eng.write(ctx, func(t *tx) error {
		var version, revoked int64
		found, err := one(ctx, t, []any{&version, &revoked}, `SELECT version, revoked_at FROM oauth_grants WHERE id = $1`+t.d.forUpdate, g.ID)
		switch {
		case err != nil:
			return err
		case !found:
			return errs.ErrNotFound
		case version != g.Version || revoked != 0:
			return errGrantMoved
		}
		t.exec(`UPDATE oauth_grants SET code_used_at = $2, refresh_hash = $3, refresh_expires_at = $4, ends_at = $5, version = version + 1 WHERE id = $1`,
			g.ID, micros(g.CodeUsedAt), hashText(g.Refresh), micros(g.RefreshExpires), micros(g.EndsAt))
		t.keepRefresh(g)
		return nil
	})
}

// RevokeGrant implements oauth.Store.
func (s *Store) RevokeGrant(ctx context.Context, id string, at time.Time, e identity.AuditEntry) (bool, error) {
	did := false
	err := s.eng.write(ctx, func(t *tx) error {
		var revoked int64
		var org string
		found, err := one(ctx, t, []any{&revoked, &org}, `SELECT revoked_at, org_id FROM oauth_grants WHERE id = $1`+t.d.forUpdate, id)
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

// CreateToken implements oauth.Store.
func (s *Store) CreateToken(ctx context.Context, k oauth.Token, h identity.Hash, e identity.AuditEntry) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.exec(`INSERT INTO oauth_tokens (hash, id, grant_id, scopes, audience, created_at, expires_at, revoked_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, 0)`,
			hashText(h), k.ID, k.GrantID, k.Scopes.String(), k.Audience, micros(k.CreatedAt), micros(k.ExpiresAt))
		t.audit(e)
		return nil
	})
}

// TokenByHash implements oauth.Store.
func (s *Store) TokenByHash(ctx context.Context, h identity.Hash) (oauth.TokenState, error) {
	var st oauth.TokenState
	var r grantRow
	var scopes, keyID, keyScopes, clientScopes string
	var created, expires, revoked, admin, disabled, keyExpires, keyRevoked int64
	dest := append([]any{
		&st.ID, &scopes, &st.Audience, &created, &expires, &revoked, &st.Member.Name, &admin, &disabled, &keyID, &keyScopes, &keyExpires, &keyRevoked,
		&clientScopes,
	}, r.dest()...)
	found, err := one(ctx, s.eng, dest, `SELECT t.id, t.scopes, t.audience, t.created_at, t.expires_at, t.revoked_at, p.name, p.admin, p.disabled,
			coalesce(k.id, ''), coalesce(k.scopes, ''), coalesce(k.expires_at, 0), coalesce(k.revoked_at, 0), coalesce(c.scopes, ''),
			`+grantColumns+`
		FROM oauth_tokens t JOIN oauth_grants g ON g.id = t.grant_id
			JOIN principals p ON p.org_id = g.org_id AND p.kind = g.kind AND p.id = g.principal_id
			LEFT JOIN oauth_clients c ON c.id = g.client_id
			LEFT JOIN keys k ON k.id = g.client_id AND k.org_id = g.org_id AND k.kind = g.kind AND k.principal_id = g.principal_id
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

// RevokeToken implements oauth.Store.
func (s *Store) RevokeToken(ctx context.Context, h identity.Hash, at time.Time, e identity.AuditEntry) error {
	return s.eng.write(ctx, func(t *tx) error {
		live, err := t.exists(ctx, `SELECT 1 FROM oauth_tokens WHERE hash = $1 AND revoked_at = 0`+t.d.forUpdate, hashText(h))
		if err != nil || !live {
			return err
		}
		t.exec(`UPDATE oauth_tokens SET revoked_at = $2 WHERE hash = $1`, hashText(h), micros(at))
		t.newEpoch(e.Org) // the org of the grant, whose token it is
		t.audit(e)
		return nil
	})
}

// PutRequest implements oauth.Store.
func (s *Store) PutRequest(ctx context.Context, id identity.Hash, data []byte, expires time.Time) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.exec(`INSERT INTO oauth_requests (hash, data, expires_at) VALUES ($1, $2, $3)
			ON CONFLICT (hash) DO UPDATE SET data = excluded.data, expires_at = excluded.expires_at`,
			hashText(id), base64.StdEncoding.EncodeToString(data), micros(expires))
		return nil
	})
}

// Request implements oauth.Store.
func (s *Store) Request(ctx context.Context, id identity.Hash, now time.Time) ([]byte, error) {
	var text string
	found, err := one(ctx, s.eng, []any{&text}, `SELECT data FROM oauth_requests WHERE hash = $1 AND expires_at > $2`, hashText(id), micros(now))
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

// EndRequest implements oauth.Store.
func (s *Store) EndRequest(ctx context.Context, id identity.Hash) error {
	return s.eng.write(ctx, func(t *tx) error {
		there, err := t.exists(ctx, `SELECT 1 FROM oauth_requests WHERE hash = $1`+t.d.forUpdate, hashText(id))
		if err == nil && !there {
			err = errs.ErrNotFound
		}
		if err != nil {
			return err
		}
		t.exec(`DELETE FROM oauth_requests WHERE hash = $1`, hashText(id))
		return nil
	})
}
