package store

import (
	"context"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// OAuth stores clients, grants, tokens and authorization requests.
type OAuth struct{ *db }

// OAuth returns the implementation of the stores of package oauth and of authserver.Requests.
func (s *Store) OAuth() OAuth { return OAuth{s.db} }

// CreateClient implements oauth.ClientStore. The client belongs to no org, so no log of events
// reports it; nor does PutDescribedClient.
func (s OAuth) CreateClient(ctx context.Context, c oauth.Client, secret identity.Hash, e identity.AuditEntry) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.insertClient(c, secret)
		t.audit(e)
		return nil
	})
}

func (t *tx) insertClient(c oauth.Client, secret identity.Hash) {
	t.exec(`INSERT INTO oauth_clients (id, secret_hash, name, method, redirect_uris, scopes, created_at, used_at, org_id,
			created_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9)`,
		c.ID, hashText(secret), c.Name, string(c.Method), strings.Join(c.RedirectURIs, "\n"), c.Scopes.String(),
		micros(c.CreatedAt), c.Org, c.CreatedBy)
}

// PutDescribedClient implements oauth.ClientStore.
func (s OAuth) PutDescribedClient(ctx context.Context, c oauth.Client, e identity.AuditEntry) error {
	return s.eng.write(ctx, func(t *tx) error {
		uris, scopes := strings.Join(c.RedirectURIs, "\n"), c.Scopes.String()
		var r clientRow
		known, err := one(ctx, t, r.dest(), `SELECT `+clientColumns+` FROM oauth_clients
			WHERE id = $1`+t.d.forUpdate, c.ID)
		if err != nil || known && r.c.Name == c.Name && r.uris == uris && r.scopes == scopes {
			return err
		}
		if known && r.scopes != scopes {
			t.newEpoch("") // as in UpdateOrgClient
		}
		t.exec(`INSERT INTO oauth_clients (id, secret_hash, name, method, redirect_uris, scopes, created_at, used_at, org_id,
				created_by)
			VALUES ($1, '', $2, $3, $4, $5, $6, 0, '', '')
				ON CONFLICT (id) DO UPDATE SET name = excluded.name, redirect_uris = excluded.redirect_uris,
					scopes = excluded.scopes, version = oauth_clients.version + 1`,
			c.ID, c.Name, string(c.Method), uris, scopes, micros(c.CreatedAt))
		t.audit(e)
		return nil
	})
}

const clientColumns = `id, name, method, redirect_uris, scopes, created_at, org_id, created_by, old_secret_expires_at,
	version`

// clientRow receives clientColumns.
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
	c.Method, c.RedirectURIs = oauth.Method(r.method), strings.Split(r.uris, "\n")
	c.Scopes, c.CreatedAt = identity.SplitScopes(r.scopes), fromMicros(r.created)
	c.OldSecretExpires = fromMicros(r.old)
	return c
}

// Client implements oauth.ClientStore.
func (s OAuth) Client(ctx context.Context, id string) (oauth.Client, identity.Hash, error) {
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

// KeyClient implements oauth.ClientStore.
func (s OAuth) KeyClient(ctx context.Context, id string) (identity.Key, identity.Hash, error) {
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
