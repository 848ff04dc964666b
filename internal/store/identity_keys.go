package store

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
)

// CreateKey implements identity.KeyStore.
func (s Identity) CreateKey(
	ctx context.Context, k identity.Key, h identity.Hash, grantor identity.Principal, e identity.AuditEntry,
	limits ...identity.Quota,
) (identity.Key, error) {
	err := s.writeOnce(ctx, &k, func(t *tx) error {
		var disabled int
		known, err := one(ctx, t, []any{&disabled}, `SELECT disabled FROM principals
			WHERE org_id = $1 AND kind = $2 AND id = $3`+t.d.forUpdate,
			k.Principal.Org, string(k.Principal.Kind), k.Principal.ID)
		switch {
		case err != nil:
			return err
		case !known:
			return errs.New(errs.NotFound, "identity.no_such_principal", "org %q has no %s; create it first",
				k.Principal.Org, k.Principal.Ref())
		case disabled != 0:
			return identity.DisabledPrincipal(k.Principal)
		}
		if err := t.checkGrantor(ctx, grantor); err != nil {
			return err
		}
		if err := t.keysWithinQuota(ctx, k, limits); err != nil {
			return err
		}
		t.insertKey(k, h)
		t.audit(e)
		t.emitKey(&e, event.KeyCreated, &k)
		return nil
	})
	return k, err
}

// checkGrantor returns an error if p is not an enabled admin. The zero principal may grant
// anything.
func (t *tx) checkGrantor(ctx context.Context, p identity.Principal) error {
	if p == (identity.Principal{}) {
		return nil
	}
	admin, err := t.exists(ctx, `SELECT 1 FROM principals
		WHERE `+thatMember+` AND admin = 1 AND disabled = 0`, p.Org, string(p.Kind), p.ID)
	if err == nil && !admin {
		err = identity.NotAnAdmin(p)
	}
	return err
}

func (t *tx) insertKey(k identity.Key, h identity.Hash) {
	t.exec(`INSERT INTO keys (id, hash, org_id, kind, principal_id, name, prefix, scopes, created_at, created_by,
			expires_at, revoked_at, last_used_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, 0)`,
		k.ID, hex.EncodeToString(h[:]), k.Principal.Org, string(k.Principal.Kind), k.Principal.ID, k.Name, k.Prefix,
		k.Scopes.String(), micros(k.CreatedAt), k.CreatedBy, micros(k.ExpiresAt))
}

const (
	keyColumns = `SELECT k.id, k.org_id, k.kind, k.principal_id, k.name, k.prefix, k.scopes, k.created_at, k.created_by,
		k.expires_at, k.revoked_at, k.last_used_at, k.replaced_by, p.disabled, `
	keyTables = ` FROM keys k
		JOIN principals p ON p.org_id = k.org_id AND p.kind = k.kind AND p.id = k.principal_id WHERE `

	// replacedKey selects the key that k replaced in a rotation.
	replacedKey = `coalesce((
		SELECT min(o.id) FROM keys o WHERE o.org_id = k.org_id AND o.replaced_by = k.id AND o.replaced_by <> ''
	), '')`
)

func keysWhere(ctx context.Context, q reader, where string, args ...any) ([]identity.Key, error) {
	return keysWith(ctx, q, replacedKey, where, args...)
}

// keysWith reads keys. replaces is the SQL expression for Key.Replaces.
func keysWith(ctx context.Context, q reader, replaces, where string, args ...any) ([]identity.Key, error) {
	list := []identity.Key{}
	err := each(ctx, q, func(r rows) error {
		var k identity.Key
		var kind, scopes string
		var created, expires, revoked, used, disabled int64
		err := r.Scan(&k.ID, &k.Principal.Org, &kind, &k.Principal.ID, &k.Name, &k.Prefix, &scopes, &created, &k.CreatedBy,
			&expires, &revoked, &used, &k.ReplacedBy, &disabled, &k.Replaces)
		k.Principal.Kind, k.Scopes = identity.Kind(kind), identity.SplitScopes(scopes)
		k.CreatedAt, k.ExpiresAt = fromMicros(created), fromMicros(expires)
		k.RevokedAt, k.LastUsedAt = fromMicros(revoked), fromMicros(used)
		k.Disabled = disabled != 0
		list = append(list, k)
		return err
	}, keyColumns+replaces+keyTables+where, args...)
	return list, err
}

// Keys implements identity.KeyStore.
func (s Identity) Keys(ctx context.Context, org string, f identity.KeyFilter) ([]identity.Key, error) {
	w := where{sql: `k.org_id = $1`, args: []any{org}}
	if p := f.Principal; p.Kind != "" {
		w.and(`k.kind = ?`, string(p.Kind))
		w.and(`k.principal_id = ?`, p.ID)
	}
	switch f.State {
	case identity.KeyLive:
		w.and(`k.revoked_at = 0 AND (k.expires_at = 0 OR k.expires_at > ?)`, micros(f.Now))
	case identity.KeyExpired:
		w.and(`k.revoked_at = 0 AND k.expires_at > 0 AND k.expires_at <= ?`, micros(f.Now))
	case identity.KeyRevoked:
		w.and(`k.revoked_at > 0`)
	}
	if f.EndsWithin > 0 {
		w.and(`k.revoked_at = 0 AND k.expires_at > ? AND k.expires_at <= ?`,
			micros(f.Now), micros(f.Now.Add(f.EndsWithin)))
	}
	if f.NeverUsed {
		w.and(`k.last_used_at = 0`)
	}
	if f.Scope != "" {
		// Scopes are separated by spaces. A space at each end makes the pattern match whole scopes.
		w.and(`' ' || k.scopes || ' ' LIKE ? ESCAPE '!'`, "% "+strings.ReplaceAll(string(f.Scope), "_", "!_")+" %")
	}
	order := ` ORDER BY k.id DESC`
	if f.EndsWithin > 0 {
		// A successor expires together with the key it replaces and sorts before it, so a client
		// that rotates the keys of a page does not meet their successors on the next page.
		order = ` ORDER BY k.expires_at, k.id DESC`
	}
	switch {
	case f.Before == "":
	case f.EndsWithin > 0:
		end := micros(f.BeforeEnd)
		w.and(`(k.expires_at > ? OR k.expires_at = ? AND k.id < ?)`, end, end, f.Before)
	default:
		w.and(`k.id < ?`, f.Before)
	}
	return keysWhere(ctx, s.eng, w.sql+order+limit(f.Limit), w.args...)
}

// Key implements identity.KeyStore.
func (s Identity) Key(ctx context.Context, org, id string) (identity.Key, error) {
	return oneKey(ctx, s.eng, `k.org_id = $1 AND k.id = $2`, org, id)
}

// KeyByHash implements identity.CredentialStore.
func (s Identity) KeyByHash(ctx context.Context, h identity.Hash) (identity.Key, error) {
	// Authentication does not use Key.Replaces, so it skips that look-up.
	return onlyKey(keysWith(ctx, s.eng, `''`, `k.hash = $1`, hex.EncodeToString(h[:])))
}

func oneKey(ctx context.Context, q reader, where string, args ...any) (identity.Key, error) {
	return onlyKey(keysWhere(ctx, q, where, args...))
}

func onlyKey(found []identity.Key, err error) (identity.Key, error) {
	if err == nil && len(found) == 0 {
		err = errs.ErrNotFound
	}
	if err != nil {
		return identity.Key{}, err
	}
	return found[0], nil
}

// lockKey reads a key and locks it for a change.
func (t *tx) lockKey(ctx context.Context, org, id string) (identity.Key, error) {
	lock := ""
	if t.d.forUpdate != "" {
		lock = t.d.forUpdate + " OF k"
	}
	return oneKey(ctx, t, `k.org_id = $1 AND k.id = $2`+lock, org, id)
}

// RevokeKey implements identity.KeyStore.
func (s Identity) RevokeKey(
	ctx context.Context, org, id string, decide func(*identity.Key) ([]identity.AuditEntry, error),
) (identity.Key, error) {
	var out identity.Key
	err := s.eng.write(ctx, func(t *tx) (err error) {
		if out, err = t.lockKey(ctx, org, id); err != nil {
			return err
		}
		entries, err := decide(&out)
		if err != nil || len(entries) == 0 {
			return err
		}
		t.exec(`UPDATE keys SET revoked_at = $3 WHERE org_id = $1 AND id = $2`, org, id, micros(out.RevokedAt))
		t.newEpoch(org)
		t.audit(entries...)
		t.emitKey(&entries[0], event.KeyRevoked, &out)
		return nil
	})
	return out, err
}

// RotateKey implements identity.KeyStore.
func (s Identity) RotateKey(
	ctx context.Context, org, id string, h identity.Hash, decide func(identity.Key) (identity.Rotation, error),
) (identity.Key, error) {
	var out identity.Key
	err := s.writeOnce(ctx, &out, func(t *tx) error {
		// Lock the principal before the key, in the order of a demotion, to prevent deadlocks.
		if _, err := t.exists(ctx, `SELECT 1 FROM principals p WHERE EXISTS (
			SELECT 1 FROM keys k WHERE k.org_id = $1 AND k.id = $2
				AND k.org_id = p.org_id AND k.kind = p.kind AND k.principal_id = p.id)`+t.d.forUpdate, org, id); err != nil {
			return err
		}
		old, err := t.lockKey(ctx, org, id)
		if err != nil {
			return err
		}
		r, err := decide(old)
		if err != nil {
			return err
		}
		if err := t.checkGrantor(ctx, r.Grantor); err != nil {
			return err
		}
		if err := t.keysWithinQuota(ctx, r.New, r.Limits); err != nil {
			return err
		}
		out = r.New
		t.insertKey(r.New, h)
		t.exec(`UPDATE keys SET expires_at = $3, replaced_by = $4 WHERE org_id = $1 AND id = $2`,
			org, id, micros(r.OldExpires), r.New.ID)
		t.newEpoch(org)
		t.audit(r.Entry)
		old.ExpiresAt, old.ReplacedBy = r.OldExpires, r.New.ID
		t.emitKey(&r.Entry, event.KeyCreated, &r.New)
		t.emitKey(&r.Entry, event.KeyRotated, &old)
		return nil
	})
	return out, err
}

// TouchKeys implements identity.CredentialStore.
func (s Identity) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	if len(used) == 0 {
		return nil
	}
	return s.eng.write(ctx, func(t *tx) error {
		// Sorted by id, which prevents deadlocks between nodes.
		for _, id := range slices.Sorted(maps.Keys(used)) {
			t.exec(`UPDATE keys SET last_used_at = $2 WHERE id = $1 AND last_used_at < $2`, id, micros(used[id]))
		}
		return nil
	})
}
