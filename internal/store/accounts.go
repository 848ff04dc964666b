package store

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// Accounts stores passwords, password links, identities at external providers and linked memberships.
type Accounts struct{ *db }

// Accounts returns the implementation of account.Store.
func (s *Store) Accounts() Accounts { return Accounts{s.db} }

// Credentials implements account.Store.
func (s Accounts) Credentials(ctx context.Context, p identity.Principal) (account.Credentials, error) {
	return credentials(ctx, s.eng, p)
}

func credentials(ctx context.Context, q reader, p identity.Principal) (account.Credentials, error) {
	c := account.Credentials{Member: identity.Member{Principal: p}}
	var admin, disabled, created int64
	found, err := one(ctx, q, []any{&c.Member.Name, &admin, &disabled, &created, &c.Hash, &c.Generation},
		`SELECT p.name, p.admin, p.disabled, p.created_at, coalesce(w.hash, ''), coalesce(w.generation, 0)
		FROM principals p LEFT JOIN passwords w ON w.org_id = p.org_id AND w.user_id = p.id
		WHERE p.org_id = $1 AND p.kind = 'user' AND p.id = $2`, p.Org, p.ID)
	if err == nil && (!found || p.Kind != identity.User) {
		err = errs.ErrNotFound
	}
	if err != nil {
		return account.Credentials{}, err
	}
	c.Member.Admin, c.Member.Disabled, c.Member.CreatedAt = admin != 0, disabled != 0, fromMicros(created)
	return c, nil
}

// SetPassword implements account.Store.
func (s Accounts) SetPassword(
	ctx context.Context, p identity.Principal, hash string, at time.Time, e identity.AuditEntry,
) (int64, error) {
	var n int64
	err := s.eng.write(ctx, func(t *tx) (err error) {
		n, err = t.setPassword(ctx, p, hash, at)
		t.closeLinked(p)
		t.audit(e)
		return err
	})
	return n, err
}

// setPassword locks the user row, because the password row may not exist yet.
func (t *tx) setPassword(ctx context.Context, p identity.Principal, hash string, at time.Time) (int64, error) {
	known, err := t.exists(ctx, `SELECT 1 FROM principals
		WHERE org_id = $1 AND kind = 'user' AND id = $2`+t.d.forUpdate, p.Org, p.ID)
	if err == nil && (!known || p.Kind != identity.User) {
		err = errs.New(errs.NotFound, "identity.no_such_principal", "org %q has no %s; create it first", p.Org, p.Ref())
	}
	if err != nil {
		return 0, err
	}
	var generation int64
	if _, err := one(ctx, t, []any{&generation}, `SELECT generation FROM passwords
		WHERE org_id = $1 AND user_id = $2`, p.Org, p.ID); err != nil {
		return 0, err
	}
	t.exec(`INSERT INTO passwords (org_id, user_id, hash, generation, changed_at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (org_id, user_id) DO UPDATE
			SET hash = excluded.hash, generation = excluded.generation, changed_at = excluded.changed_at`,
		p.Org, p.ID, hash, generation+1, micros(at))
	// An older link must not overwrite the password that was just chosen.
	t.exec(`DELETE FROM login_links WHERE org_id = $1 AND user_id = $2`, p.Org, p.ID)
	return generation + 1, nil
}

// EndSessions implements account.Store.
func (s Accounts) EndSessions(ctx context.Context, p identity.Principal, at time.Time, e identity.AuditEntry) error {
	return s.eng.write(ctx, func(t *tx) error {
		t.endLogins(p, at)
		t.closeLinked(p)
		t.newEpoch(p.Org)
		t.audit(e)
		return nil
	})
}

// endLogins ends the sessions, password links and OAuth grants of a principal.
func (t *tx) endLogins(p identity.Principal, at time.Time) {
	if p.Kind == identity.User {
		// A user without a password signs in at a provider, and may have sessions too.
		t.exec(`INSERT INTO passwords (org_id, user_id, hash, generation, changed_at) VALUES ($1, $2, '', 1, $3)
			ON CONFLICT (org_id, user_id) DO UPDATE SET generation = passwords.generation + 1`, p.Org, p.ID, micros(at))
		t.exec(`DELETE FROM login_links WHERE org_id = $1 AND user_id = $2`, p.Org, p.ID)
	}
	t.exec(`UPDATE oauth_grants SET revoked_at = $4
		WHERE org_id = $1 AND kind = $2 AND principal_id = $3 AND revoked_at = 0`,
		p.Org, string(p.Kind), p.ID, micros(at))
}

// CreateLink implements account.Store.
func (s Accounts) CreateLink(
	ctx context.Context, l account.Link, h identity.Hash, e identity.AuditEntry,
) (account.Link, error) {
	err := s.writeOnce(ctx, &l, func(t *tx) error {
		var disabled int64
		p := identity.Principal{Org: l.Org, Kind: identity.User, ID: l.User}
		known, err := one(ctx, t, []any{&disabled}, `SELECT disabled FROM principals
			WHERE org_id = $1 AND kind = 'user' AND id = $2`, l.Org, l.User)
		switch {
		case err != nil:
			return err
		case !known:
			return errs.New(errs.NotFound, "identity.no_such_principal", "org %q has no %s; create it first", l.Org, p.Ref())
		case disabled != 0:
			return identity.DisabledPrincipal(p)
		}
		// Only the newest link works.
		t.exec(`DELETE FROM login_links WHERE org_id = $1 AND user_id = $2`, l.Org, l.User)
		t.exec(`INSERT INTO login_links (hash, org_id, user_id, created_by, created_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6)`,
			hashText(h), l.Org, l.User, l.CreatedBy, micros(l.CreatedAt), micros(l.ExpiresAt))
		t.audit(e)
		return nil
	})
	return l, err
}

func oneLink(ctx context.Context, q reader, h identity.Hash, now time.Time, lock string) (account.Link, error) {
	var l account.Link
	var created, expires int64
	found, err := one(ctx, q, []any{&l.Org, &l.User, &l.CreatedBy, &created, &expires},
		`SELECT org_id, user_id, created_by, created_at, expires_at FROM login_links
			WHERE hash = $1 AND expires_at > $2`+lock,
		hashText(h), micros(now))
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	l.CreatedAt, l.ExpiresAt = fromMicros(created), fromMicros(expires)
	return l, err
}

// Link implements account.Store.
func (s Accounts) Link(ctx context.Context, h identity.Hash, now time.Time) (account.Link, error) {
	return oneLink(ctx, s.eng, h, now, "")
}

// UseLink implements account.Store.
func (s Accounts) UseLink(
	ctx context.Context, h identity.Hash, hash string, at time.Time, entry func(account.Link) identity.AuditEntry,
) (account.Link, int64, error) {
	var out account.Link
	var n int64
	err := s.eng.write(ctx, func(t *tx) (err error) {
		if out, err = oneLink(ctx, t, h, at, t.d.forUpdate); err != nil {
			return err
		}
		p := identity.Principal{Org: out.Org, Kind: identity.User, ID: out.User}
		if n, err = t.setPassword(ctx, p, hash, at); err != nil {
			return err
		}
		t.exec(`DELETE FROM account_links WHERE org_id = $1 AND user_id = $2`, out.Org, out.User)
		t.exec(`DELETE FROM login_links WHERE hash = $1`, hashText(h))
		t.audit(entry(out))
		return nil
	})
	return out, n, err
}
