package store

import (
	"context"
	"fmt"

	"github.com/parley-dev/parley/internal/identity"
)

// countUpTo counts rows, but not beyond most: what a count costs must not grow with
// what a caller has stored. which is a table with conditions that an index serves.
func countUpTo(ctx context.Context, r reader, most int, which string, args ...any) (int, error) {
	n := 0
	args = append(args, most)
	_, err := one(ctx, r, []any{&n}, fmt.Sprintf(`SELECT count(*) FROM (SELECT 1 FROM %s LIMIT $%d) counted`, which, len(args)), args...)
	return n, err
}

// withinQuota refuses what goes beyond a limit. The org's row is locked, so that two at
// once do not both find room for the last.
func (t *tx) withinQuota(ctx context.Context, org string, limits []identity.Quota, count func(identity.Quota) (int, error)) error {
	locked := false
	for _, q := range limits {
		if q.Most <= 0 {
			continue
		}
		if !locked && t.d.forUpdate != "" {
			if _, err := t.exists(ctx, `SELECT 1 FROM orgs WHERE id = $1`+t.d.forUpdate, org); err != nil {
				return err
			}
			locked = true
		}
		n, err := count(q)
		if err == nil {
			err = q.Check(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keysWithinQuota counts the keys that work when k is made: those without an end, and
// those whose end is yet to come. Each is a range of an index, so that keys which
// expired or were revoked cost nothing, however many there are.
func (t *tx) keysWithinQuota(ctx context.Context, k identity.Key, limits []identity.Quota) error {
	return t.withinQuota(ctx, k.Principal.Org, limits, func(q identity.Quota) (int, error) {
		w := where{sql: `keys WHERE revoked_at = 0 AND org_id = $1`, args: []any{k.Principal.Org}}
		if q.PerPrincipal {
			w.and(`kind = ?`, string(k.Principal.Kind))
			w.and(`principal_id = ?`, k.Principal.ID)
		}
		forever, err := countUpTo(ctx, t, q.Most, w.sql+` AND expires_at = 0`, w.args...)
		if err != nil || forever >= q.Most {
			return forever, err
		}
		w.and(`expires_at > ?`, micros(k.CreatedAt))
		n, err := countUpTo(ctx, t, q.Most-forever, w.sql, w.args...)
		return forever + n, err
	})
}
