package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
// The caller repeats it until nothing is left to delete. A kind that cannot be swept does not keep the
// others.
func (s *Store) Sweep(ctx context.Context, now time.Time, keep Retention) (Deleted, error) {
	out := Deleted{}
	err := errors.Join(
		s.sweepOutcomes(ctx, now, out),
		s.sweepLogins(ctx, now, keep.Sessions, out),
		s.sweepAudit(ctx, now, keep.Audit, out),
		s.sweepFriction(ctx, now, keep.Friction, out),
	)
	maps.DeleteFunc(out, func(_ string, n int) bool { return n == 0 })
	return out, err
}

// auditDeleted records in the audit log of an org that records were deleted because of their age. There
// is one entry for each kind and day, whose number grows: a sweep takes many transactions, also of
// several nodes.
func (t *tx) auditDeleted(ctx context.Context, org, kind string, n int, now, before time.Time) {
	if n == 0 || org == "" {
		return
	}
	since := " from before " + before.UTC().Format(time.RFC3339)
	e := identity.NewEntry(ctx, now.UTC().Truncate(24*time.Hour), org, identity.RetentionDelete, kind, fmt.Sprint(n, since))
	e.ID = "audit-retention-" + strings.ReplaceAll(kind, " ", "-")
	t.exec(`INSERT INTO audit (org_id, at, id, actor, key_id, action, target, detail, outcome, code, request_id, address)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (org_id, at, id) DO UPDATE SET
			detail = CAST(`+t.d.leading("audit.detail")+` + `+t.d.leading("excluded.detail")+` AS TEXT) || $13`,
		e.Org, micros(e.At), e.ID, e.Actor, e.KeyID, string(e.Action), e.Target, e.Detail, string(e.Outcome), e.Code,
		e.RequestID, e.Address, since)
}

// auditAll is auditDeleted for several orgs.
func (t *tx) auditAll(ctx context.Context, orgs map[string]int, kind string, now, before time.Time) {
	for _, org := range slices.Sorted(maps.Keys(orgs)) { // all nodes lock the entries in this order
		t.auditDeleted(ctx, org, kind, orgs[org], now, before)
	}
}

// sweepOutcomes deletes expired outcomes of idempotency keys.
func (s *Store) sweepOutcomes(ctx context.Context, now time.Time, out Deleted) error {
	const most = 1000
	orgs := map[string]int{}
	err := s.eng.write(ctx, func(t *tx) error {
		clear(orgs)
		err := each(ctx, t, func(r rows) error {
			var org, principal, operation, key string
			if err := r.Scan(&org, &principal, &operation, &key); err != nil {
				return err
			}
			orgs[org]++
			t.exec(`DELETE FROM idempotency WHERE org_id = $1 AND principal = $2 AND operation = $3 AND key = $4`,
				org, principal, operation, key)
			return nil
		}, `SELECT org_id, principal, operation, key FROM idempotency
				WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2`+t.d.skipLocked, micros(now), most)
		t.auditAll(ctx, orgs, sweptOutcomes, now, now)
		return err
	})
	if err != nil {
		return err
	}
	for _, n := range orgs {
		out[sweptOutcomes] += n
	}
	return nil
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
			err := each(ctx, t, func(r rows) error {
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
			}, l.find+t.d.skipLocked, micros(l.before), most)
			t.auditAll(ctx, orgs, l.kind, now, l.before)
			return err
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
			n, err = sweep(t, org)
			t.auditDeleted(ctx, org, kind, n, now, before)
			return err
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
			}, `SELECT at, id FROM audit WHERE org_id = $1 AND at < $2 ORDER BY at, id LIMIT $3`+t.d.skipLocked,
				org, micros(before), most)
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
				ORDER BY f.last_at, f.fingerprint LIMIT $3`+t.d.skipLocked, micros(before), org, most)
			if errors.Is(err, errEnough) {
				err = nil
			}
			return n, err
		})
}
