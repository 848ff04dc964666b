package store

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// CreateOrg implements identity.Store.
func (s *Store) CreateOrg(ctx context.Context, o identity.Org) error {
	return s.eng.write(ctx, func(t *tx) error {
		taken, err := t.exists(ctx, `SELECT 1 FROM orgs WHERE id = $1`, o.ID)
		if err != nil {
			return err
		}
		if taken {
			return errs.New(errs.Conflict, "identity.org_exists", "there is an org %q already", o.ID)
		}
		t.insertOrg(o)
		return nil
	})
}

func (t *tx) insertOrg(o identity.Org) {
	t.exec(`INSERT INTO orgs (id, name, created_at) VALUES ($1, $2, $3)`, o.ID, o.Name, micros(o.CreatedAt))
}

func (t *tx) exists(ctx context.Context, sql string, args ...any) (bool, error) {
	var n int
	return one(ctx, t, []any{&n}, sql, args...)
}

// Orgs implements identity.Store.
func (s *Store) Orgs(ctx context.Context) ([]identity.Org, error) {
	list := []identity.Org{}
	err := each(ctx, s.eng, func(r rows) error {
		var o identity.Org
		var at int64
		err := r.Scan(&o.ID, &o.Name, &at)
		o.CreatedAt = fromMicros(at)
		list = append(list, o)
		return err
	}, `SELECT id, name, created_at FROM orgs ORDER BY id`)
	return list, err
}

// Bootstrap implements identity.Store.
func (s *Store) Bootstrap(ctx context.Context, o identity.Org, m identity.Member, k identity.Key, h identity.Hash) (bool, error) {
	created := false
	err := s.eng.write(ctx, func(t *tx) error {
		some, err := t.exists(ctx, `SELECT 1 FROM orgs LIMIT 1`)
		if created = err == nil && !some; !created {
			return err
		}
		t.insertOrg(o)
		t.insertMember(m)
		t.insertKey(k, h)
		return nil
	})
	if err == errTaken { // another node was quicker
		return false, nil
	}
	return created, err
}

// CreateMember implements identity.Store.
func (s *Store) CreateMember(ctx context.Context, m identity.Member) error {
	return s.eng.write(ctx, func(t *tx) error { return t.createMember(ctx, m) })
}

func (t *tx) createMember(ctx context.Context, m identity.Member) error {
	known, err := t.exists(ctx, `SELECT 1 FROM orgs WHERE id = $1`, m.Org)
	if err != nil {
		return err
	}
	if !known {
		return errs.New(errs.NotFound, "identity.no_such_org", "there is no org %q; create it first", m.Org)
	}
	taken, err := t.exists(ctx, `SELECT 1 FROM principals WHERE org_id = $1 AND kind = $2 AND id = $3`,
		m.Org, string(m.Kind), m.ID)
	if err != nil {
		return err
	}
	if taken {
		return errs.New(errs.Conflict, "identity.principal_exists", "org %q has a %s already", m.Org, m.Ref())
	}
	t.insertMember(m)
	return nil
}

func (t *tx) insertMember(m identity.Member) {
	t.exec(`INSERT INTO principals (org_id, kind, id, name, admin, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		m.Org, string(m.Kind), m.ID, m.Name, flag(m.Admin), micros(m.CreatedAt))
}

const memberColumns = `SELECT org_id, kind, id, name, admin, created_at FROM principals`

func scanMember(r rows) (identity.Member, error) {
	var m identity.Member
	var kind string
	var admin, at int64
	err := r.Scan(&m.Org, &kind, &m.ID, &m.Name, &admin, &at)
	m.Kind, m.Admin, m.CreatedAt = identity.Kind(kind), admin != 0, fromMicros(at)
	return m, err
}

// Members implements identity.Store.
func (s *Store) Members(ctx context.Context, org string, kind identity.Kind) ([]identity.Member, error) {
	sql, args := memberColumns+` WHERE org_id = $1`, []any{org}
	if kind != "" {
		sql, args = sql+` AND kind = $2`, append(args, string(kind))
	}
	list := []identity.Member{}
	err := each(ctx, s.eng, func(r rows) error {
		m, err := scanMember(r)
		list = append(list, m)
		return err
	}, sql+` ORDER BY kind, id`, args...)
	return list, err
}

// Member implements identity.Store.
func (s *Store) Member(ctx context.Context, p identity.Principal) (m identity.Member, err error) {
	found := false
	err = each(ctx, s.eng, func(r rows) (err error) {
		found = true
		m, err = scanMember(r)
		return err
	}, memberColumns+` WHERE org_id = $1 AND kind = $2 AND id = $3`, p.Org, string(p.Kind), p.ID)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return m, err
}

// IdentityEpoch implements identity.Store.
func (s *Store) IdentityEpoch(ctx context.Context) (int64, error) {
	var n int64
	_, err := one(ctx, s.eng, []any{&n}, `SELECT epoch FROM identity_epoch WHERE id = 1`)
	return n, err
}

// CreateKey implements identity.Store.
func (s *Store) CreateKey(ctx context.Context, k identity.Key, h identity.Hash) error {
	return s.eng.write(ctx, func(t *tx) error {
		known, err := t.exists(ctx, `SELECT 1 FROM principals WHERE org_id = $1 AND kind = $2 AND id = $3`,
			k.Principal.Org, string(k.Principal.Kind), k.Principal.ID)
		if err != nil {
			return err
		}
		if !known {
			return errs.New(errs.NotFound, "identity.no_such_principal", "org %q has no %s; create it first",
				k.Principal.Org, k.Principal.Ref())
		}
		t.insertKey(k, h)
		return nil
	})
}

func (t *tx) insertKey(k identity.Key, h identity.Hash) {
	t.exec(`INSERT INTO keys (id, hash, org_id, kind, principal_id, name, prefix, scopes, created_at, created_by, expires_at,
			revoked_at, last_used_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, 0)`,
		k.ID, hex.EncodeToString(h[:]), k.Principal.Org, string(k.Principal.Kind), k.Principal.ID, k.Name, k.Prefix,
		k.Scopes.String(), micros(k.CreatedAt), k.CreatedBy, micros(k.ExpiresAt))
}

const keyColumns = `SELECT id, org_id, kind, principal_id, name, prefix, scopes, created_at, created_by, expires_at,
	revoked_at, last_used_at FROM keys`

func scanKey(r rows) (identity.Key, error) {
	var k identity.Key
	var kind, scopes string
	var created, expires, revoked, used int64
	err := r.Scan(&k.ID, &k.Principal.Org, &kind, &k.Principal.ID, &k.Name, &k.Prefix, &scopes, &created, &k.CreatedBy,
		&expires, &revoked, &used)
	k.Principal.Kind, k.Scopes = identity.Kind(kind), identity.SplitScopes(scopes)
	k.CreatedAt, k.ExpiresAt, k.RevokedAt, k.LastUsedAt = fromMicros(created), fromMicros(expires), fromMicros(revoked), fromMicros(used)
	return k, err
}

// Keys implements identity.Store.
func (s *Store) Keys(ctx context.Context, org string) ([]identity.Key, error) {
	list := []identity.Key{}
	err := each(ctx, s.eng, func(r rows) error {
		k, err := scanKey(r)
		list = append(list, k)
		return err
	}, keyColumns+` WHERE org_id = $1 ORDER BY id`, org)
	return list, err
}

// KeyByHash implements identity.Store.
func (s *Store) KeyByHash(ctx context.Context, h identity.Hash) (k identity.Key, err error) {
	found := false
	err = each(ctx, s.eng, func(r rows) (err error) {
		found = true
		k, err = scanKey(r)
		return err
	}, keyColumns+` WHERE hash = $1`, hex.EncodeToString(h[:]))
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return k, err
}

// RevokeKey implements identity.Store.
func (s *Store) RevokeKey(ctx context.Context, org, id string, at time.Time) error {
	return s.eng.write(ctx, func(t *tx) error {
		known, err := t.exists(ctx, `SELECT 1 FROM keys WHERE org_id = $1 AND id = $2`, org, id)
		if err != nil {
			return err
		}
		if !known {
			return errs.New(errs.NotFound, "identity.no_such_key", "org %q has no key %q", org, id)
		}
		t.exec(`UPDATE keys SET revoked_at = $3 WHERE org_id = $1 AND id = $2 AND revoked_at = 0`, org, id, micros(at))
		t.exec(`UPDATE identity_epoch SET epoch = epoch + 1 WHERE id = 1`)
		return nil
	})
}

// TouchKeys implements identity.Store.
func (s *Store) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	return s.eng.write(ctx, func(t *tx) error {
		// In order of id, so that two nodes never wait for each other in a circle.
		for _, id := range slices.Sorted(maps.Keys(used)) {
			t.exec(`UPDATE keys SET last_used_at = $2 WHERE id = $1 AND last_used_at < $2`, id, micros(used[id]))
		}
		return nil
	})
}
