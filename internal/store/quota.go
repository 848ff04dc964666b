package store

import (
	"context"
	"fmt"

	"github.com/parley-dev/parley/internal/identity"
)

// countUpTo counts rows, but stops at most: the cost of a count must not grow with the rows that
// a caller has stored. which is a table with conditions that an index serves.
func countUpTo(ctx context.Context, r reader, most int, which string, args ...any) (int, error) {
	n := 0
	args = append(args, most)
	query := fmt.Sprintf(`SELECT count(*) FROM (SELECT 1 FROM %s LIMIT $%d) counted`, which, len(args))
	_, err := one(ctx, r, []any{&n}, query, args...)
	return n, err
}

// withinQuota returns an error if a limit is reached. It locks the org's row, so that two
// concurrent calls do not both find room for the last item.
func (t *tx) withinQuota(
	ctx context.Context, org string, limits []identity.Quota, count func(identity.Quota) (int, error),
) error {
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

// keysWithinQuota counts the keys that are valid when k is created: those that never expire, and
// those that expire later. Each group is a range of an index, so expired and revoked keys cost
// nothing, however many there are.
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
