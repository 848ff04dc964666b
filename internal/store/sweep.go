package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/identity"
)

// Retention is how long records are kept that no other rule ends.
type Retention struct {
	Audit    time.Duration // entries of the audit log; 0: for ever
	Friction time.Duration // reports of friction, after the last one; 0: for ever
	Sessions time.Duration // sessions and grants, after their end
}

// Deleted has the number of deleted rows for each kind of record.
type Deleted map[string]int

// The kinds of records that are deleted by age, as targets in the audit log.
const (
	sweptTasks    = "tasks"
	sweptEvents   = "events"
	sweptAudit    = "audit entries"
	sweptFriction = "friction"
	sweptOutcomes = "idempotency keys"
	sweptSessions = "sessions"
	sweptGrants   = "grants"
	sweptLogins   = "links and tokens"
	sweptClients  = "unused clients"
)

// Sweep deletes expired rows of all domains except tasks and events, a limited number of each kind.
// The caller repeats it until nothing is left to delete.
func (s *Store) Sweep(ctx context.Context, now time.Time, keep Retention) (Deleted, error) {
	out := Deleted{}
	for _, sweep := range []func() error{
		func() error { return s.sweepOutcomes(ctx, now, out) },
		func() error { return s.sweepLogins(ctx, now, keep.Sessions, out) },
		func() error { return s.sweepAudit(ctx, now, keep.Audit, out) },
		func() error { return s.sweepFriction(ctx, now, keep.Friction, out) },
	} {
		if err := sweep(); err != nil {
			return out, err
		}
	}
	maps.DeleteFunc(out, func(_ string, n int) bool { return n == 0 })
	return out, nil
}

// auditDeleted records in the audit log of an org that records were deleted because of their age. There
// is one entry for each kind and day, whose number grows: a sweep takes many transactions.
func (t *tx) auditDeleted(ctx context.Context, org, kind string, n int, now, before time.Time) error {
	if n == 0 || org == "" {
		return nil
	}
	var id, detail string
	var at int64
	found, err := one(ctx, t, []any{&at, &id, &detail}, `SELECT at, id, detail FROM audit
		WHERE org_id = $1 AND action = $2 AND at >= $3 AND target = $4 ORDER BY at DESC, id DESC LIMIT 1`+t.d.forUpdate,
		org, string(identity.RetentionDelete), micros(now.UTC().Truncate(24*time.Hour)), kind)
	if err != nil {
		return err
	}
	total := 0
	if _, err := fmt.Sscanf(detail, "%d ", &total); err != nil {
		found, total = false, 0
	}
	detail = fmt.Sprintf("%d from before %s", total+n, before.UTC().Format(time.RFC3339))
	if found {
		t.exec(`UPDATE audit SET detail = $4 WHERE org_id = $1 AND at = $2 AND id = $3`, org, at, id, detail)
		return nil
	}
	t.audit(identity.NewEntry(ctx, now, org, identity.RetentionDelete, kind, detail))
	return nil
}

// auditAll is auditDeleted for several orgs.
func (t *tx) auditAll(ctx context.Context, orgs map[string]int, kind string, now, before time.Time) error {
	for _, org := range slices.Sorted(maps.Keys(orgs)) {
		if err := t.auditDeleted(ctx, org, kind, orgs[org], now, before); err != nil {
			return err
		}
	}
	return nil
}

// sweepOutcomes deletes expired outcomes of idempotency keys.
func (s *Store) sweepOutcomes(ctx context.Context, now time.Time, out Deleted) error {
	const most = 1000
	orgs := map[string]int{}
	err := s.eng.write(ctx, func(t *tx) error {
		clear(orgs)
		if err := each(ctx, t, func(r rows) error {
			var org, principal, operation, key string
			if err := r.Scan(&org, &principal, &operation, &key); err != nil {
				return err
			}
			orgs[org]++
			t.exec(`DELETE FROM idempotency WHERE org_id = $1 AND principal = $2 AND operation = $3 AND key = $4`,
				org, principal, operation, key)
			return nil
		}, `SELECT org_id, principal, operation, key FROM idempotency
				WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`, micros(now), most); err != nil {
			return err
		}
		return t.auditAll(ctx, orgs, sweptOutcomes, now, now)
	})
	for _, n := range orgs {
		out[sweptOutcomes] += n
	}
	return err
}

// unusedClient is how long a client without any grant is kept.
const unusedClient = 7 * 24 * time.Hour

// login is a kind of records of signing in that end by themselves.
type login struct {
	kind    string
	find    string // key and org of the rows that ended before $1, at most $2 of them
	before  time.Time
	deletes []string // by key
}

func logins(now time.Time, keep time.Duration) []login {
	ended := now.Add(-keep)
	return []login{
		{
			sweptSessions, `SELECT hash, '' FROM sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`, ended,
			[]string{`DELETE FROM sessions WHERE hash = $1`},
		},
		{
			sweptLogins, `SELECT hash, '' FROM login_links WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`, now,
			[]string{`DELETE FROM login_links WHERE hash = $1`},
		},
		{
			sweptLogins, `SELECT hash, '' FROM oauth_requests WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`, now,
			[]string{`DELETE FROM oauth_requests WHERE hash = $1`},
		},
		{
			sweptLogins, `SELECT hash, '' FROM oauth_tokens WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`, now,
			[]string{`DELETE FROM oauth_tokens WHERE hash = $1`},
		},
		{
			sweptGrants, `SELECT id, org_id FROM oauth_grants WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2`, ended,
			[]string{
				`DELETE FROM oauth_refresh WHERE grant_id = $1`,
				`DELETE FROM oauth_tokens WHERE grant_id = $1`,
				`DELETE FROM oauth_grants WHERE id = $1`,
			},
		},
		{
			sweptClients, `SELECT id, '' FROM oauth_clients WHERE used_at = 0 AND created_at <= $1 AND org_id = ''
				ORDER BY created_at LIMIT $2`, now.Add(-unusedClient),
			[]string{`DELETE FROM oauth_clients WHERE id = $1 AND used_at = 0`},
		},
	}
}

// sweepLogins deletes expired sessions, links, requests, tokens and grants, and clients that
// registered themselves and were never used.
func (s *Store) sweepLogins(ctx context.Context, now time.Time, keep time.Duration, out Deleted) error {
	const most = 500
	for _, l := range logins(now, keep) {
		n := 0
		if err := s.eng.write(ctx, func(t *tx) error {
			n = 0
			orgs := map[string]int{}
			if err := each(ctx, t, func(r rows) error {
				var key, org string
				if err := r.Scan(&key, &org); err != nil {
					return err
				}
				n++
				orgs[org]++
				for _, sql := range l.deletes {
					t.exec(sql, key)
				}
				return nil
			}, l.find, micros(l.before), most); err != nil {
				return err
			}
			return t.auditAll(ctx, orgs, l.kind, now, l.before)
		}); err != nil {
			return err
		}
		out[l.kind] += n
	}
	return nil
}

// sweepOrgs calls sweep for each of the orgs that a query for those with rows before a time yields, in a
// transaction of its own.
func (s *Store) sweepOrgs(
	ctx context.Context, kind, orgs string, now, before time.Time, out Deleted,
	sweep func(t *tx, org string) (int, error),
) error {
	list, err := strs(ctx, s.eng, orgs, micros(before))
	if err != nil {
		return err
	}
	for _, org := range list {
		n := 0
		if err := s.eng.write(ctx, func(t *tx) (err error) {
			if n, err = sweep(t, org); err != nil {
				return err
			}
			return t.auditDeleted(ctx, org, kind, n, now, before)
		}); err != nil {
			return err
		}
		out[kind] += n
	}
	return nil
}

// sweepAudit deletes old entries of the audit log.
func (s *Store) sweepAudit(ctx context.Context, now time.Time, keep time.Duration, out Deleted) error {
	if keep <= 0 {
		return nil
	}
	const most = 500
	before := now.Add(-keep)
	return s.sweepOrgs(ctx, sweptAudit, `SELECT id FROM orgs o WHERE EXISTS (
			SELECT 1 FROM audit a WHERE a.org_id = o.id AND a.at < $1) ORDER BY id`, now, before, out,
		func(t *tx, org string) (n int, err error) {
			err = each(ctx, t, func(r rows) error {
				var at int64
				var id string
				if err := r.Scan(&at, &id); err != nil {
					return err
				}
				n++
				t.exec(`DELETE FROM audit WHERE org_id = $1 AND at = $2 AND id = $3`, org, at, id)
				return nil
			}, `SELECT at, id FROM audit WHERE org_id = $1 AND at < $2 ORDER BY at, id LIMIT $3`, org, micros(before), most)
			return n, err
		})
}

// oldFriction is the condition on rows f of friction that can be deleted: no report since $1, and no
// proposal that is still to be decided or done. Without the row a new report would file it again.
const oldFriction = `f.last_at < $1 AND NOT EXISTS (SELECT 1 FROM proposals p WHERE p.org_id = f.org_id
	AND p.id = f.proposal_id AND f.proposal_id <> '' AND p.status IN ('draft', 'open', 'approved'))`

// sweepFriction deletes reports of friction that does not happen any more.
func (s *Store) sweepFriction(ctx context.Context, now time.Time, keep time.Duration, out Deleted) error {
	if keep <= 0 {
		return nil
	}
	const most = 500 // rows of reports, unless the first friction has more
	before := now.Add(-keep)
	return s.sweepOrgs(ctx, sweptFriction, `SELECT id FROM orgs o WHERE EXISTS (
			SELECT 1 FROM friction f WHERE f.org_id = o.id AND `+oldFriction+`) ORDER BY id`, now, before, out,
		func(t *tx, org string) (n int, err error) {
			reports := int64(0)
			err = each(ctx, t, func(r rows) error {
				var fingerprint string
				var count int64
				if err := r.Scan(&fingerprint, &count); err != nil {
					return err
				}
				if reports += min(count, friction.KeepOccurrences); n > 0 && reports > most {
					return errEnough
				}
				n++
				t.exec(`DELETE FROM friction_reports WHERE org_id = $1 AND fingerprint = $2`, org, fingerprint)
				t.exec(`DELETE FROM friction WHERE org_id = $1 AND fingerprint = $2`, org, fingerprint)
				return nil
			}, `SELECT fingerprint, reports FROM friction f WHERE f.org_id = $2 AND `+oldFriction+`
				ORDER BY f.last_at, f.fingerprint LIMIT $3`+t.d.forUpdate, micros(before), org, most)
			if errors.Is(err, errEnough) {
				err = nil
			}
			return n, err
		})
}
