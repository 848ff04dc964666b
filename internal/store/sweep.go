package store

import (
	"context"
	"time"
)

// Sweep deletes expired rows of all domains except tasks, a limited number per call, and returns
// how many it deleted.
func (s *Store) Sweep(ctx context.Context, now time.Time) (int, error) {
	n, err := s.sweepOutcomes(ctx, now)
	if err != nil {
		return n, err
	}
	m, err := s.sweepLogins(ctx, now)
	return n + m, err
}

// sweepOutcomes deletes expired outcomes of idempotency keys.
func (s *Store) sweepOutcomes(ctx context.Context, now time.Time) (int, error) {
	const most = 1000
	n := 0
	err := s.eng.write(ctx, func(t *tx) error {
		n = 0
		return each(ctx, t, func(r rows) error {
			var org, principal, operation, key string
			if err := r.Scan(&org, &principal, &operation, &key); err != nil {
				return err
			}
			n++
			t.exec(`DELETE FROM idempotency WHERE org_id = $1 AND principal = $2 AND operation = $3 AND key = $4`,
				org, principal, operation, key)
			return nil
		}, `SELECT org_id, principal, operation, key FROM idempotency
				WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`, micros(now), most)
	})
	return n, err
}

// unusedClient is how long a client without any grant is kept.
const unusedClient = 7 * 24 * time.Hour

// sweepLogins deletes expired sessions, links, requests, tokens and grants, and clients that
// registered themselves and were never used.
func (s *Store) sweepLogins(ctx context.Context, now time.Time) (int, error) {
	const most = 500
	n := 0
	err := s.eng.write(ctx, func(t *tx) error {
		n = 0
		for _, c := range []struct {
			find    string
			before  time.Time
			deletes []string
		}{
			{
				`SELECT hash FROM sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`, now,
				[]string{`DELETE FROM sessions WHERE hash = $1`},
			},
			{
				`SELECT hash FROM login_links WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`, now,
				[]string{`DELETE FROM login_links WHERE hash = $1`},
			},
			{
				`SELECT hash FROM oauth_requests WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`, now,
				[]string{`DELETE FROM oauth_requests WHERE hash = $1`},
			},
			{
				`SELECT hash FROM oauth_tokens WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`, now,
				[]string{`DELETE FROM oauth_tokens WHERE hash = $1`},
			},
			{
				`SELECT id FROM oauth_grants WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2`, now,
				[]string{
					`DELETE FROM oauth_refresh WHERE grant_id = $1`,
					`DELETE FROM oauth_tokens WHERE grant_id = $1`,
					`DELETE FROM oauth_grants WHERE id = $1`,
				},
			},
			{
				`SELECT id FROM oauth_clients WHERE used_at = 0 AND created_at <= $1 AND org_id = ''
							ORDER BY created_at LIMIT $2`, now.Add(-unusedClient),
				[]string{`DELETE FROM oauth_clients WHERE id = $1 AND used_at = 0`},
			},
		} {
			err := each(ctx, t, func(r rows) error {
				var key string
				if err := r.Scan(&key); err != nil {
					return err
				}
				n++
				for _, sql := range c.deletes {
					t.exec(sql, key)
				}
				return nil
			}, c.find, micros(c.before), most)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}
