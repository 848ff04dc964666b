package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// CreateOrgClient implements oauth.OrgClientStore. It locks the org's row, so that two concurrent calls
// do not both find room for the last client.
func (s OAuth) CreateOrgClient(
	ctx context.Context, c oauth.Client, secret identity.Hash, most int, e identity.AuditEntry,
) (oauth.Client, error) {
	err := s.writeOnce(ctx, &c, func(t *tx) error {
		known, err := t.exists(ctx, `SELECT 1 FROM orgs WHERE id = $1`+t.d.forUpdate, c.Org)
		if err == nil && !known {
			err = errs.ErrNotFound
		}
		if err != nil {
			return err
		}
		if most > 0 {
			n, err := countUpTo(ctx, t, most, `oauth_clients WHERE org_id = $1 AND org_id <> ''`, c.Org)
			if err != nil {
				return err
			}
			if n >= most {
				return errs.New(errs.Conflict, "oauth.too_many_clients",
					"the org has %d clients, which is the limit (--max-clients); delete some that are not used", n)
			}
		}
		t.insertClient(c, secret)
		t.audit(e)
		t.emitClient(&e, event.ClientCreated, &c)
		return nil
	})
	return c, err
}

// OrgClient implements oauth.OrgClientStore.
func (s OAuth) OrgClient(ctx context.Context, org, id string) (oauth.Client, error) {
	return oneOrgClient(ctx, s.eng, org, id, "")
}

func oneOrgClient(ctx context.Context, q reader, org, id, lock string) (oauth.Client, error) {
	var r clientRow
	found, err := one(ctx, q, r.dest(), `SELECT `+clientColumns+` FROM oauth_clients
		WHERE org_id = $1 AND org_id <> '' AND id = $2`+lock, org, id)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	return r.client(), err
}

const clientsOf = `SELECT ` + clientColumns + ` FROM oauth_clients WHERE `

// OrgClients implements oauth.OrgClientStore.
func (s OAuth) OrgClients(ctx context.Context, org string, f oauth.ClientFilter) ([]oauth.Client, error) {
	w := where{sql: `org_id = $1 AND org_id <> ''`, args: []any{org}}
	if f.Before != "" {
		w.and(`id < ?`, f.Before)
	}
	list := []oauth.Client{}
	err := each(ctx, s.eng, func(r rows) error {
		var row clientRow
		err := r.Scan(row.dest()...)
		list = append(list, row.client())
		return err
	}, clientsOf+w.sql+` ORDER BY id DESC`+limit(f.Limit), w.args...)
	return list, err
}

// UpdateOrgClient implements oauth.OrgClientStore. Whether a token is valid depends on the scopes of its
// client, so a change of scopes invalidates the caches of all nodes.
func (s OAuth) UpdateOrgClient(ctx context.Context, id string, by identity.Principal, once *idempotency.Key,
	edit func(oauth.Client) (oauth.Client, []identity.AuditEntry, error),
) (oauth.ClientOutcome, error) {
	var out oauth.ClientOutcome
	err := s.eng.write(ctx, func(t *tx) error {
		out = oauth.ClientOutcome{}
		now := s.now()
		if done, err := t.replay(ctx, once, by, now, &out); done || err != nil {
			out.Replayed = true
			return err
		}
		old, err := oneOrgClient(ctx, t, by.Org, id, t.d.forUpdate)
		if err != nil {
			return err
		}
		next, entries, err := edit(old)
		if err != nil {
			return err
		}
		if out.Client = next; len(entries) > 0 {
			out.Client.Version = old.Version + 1
			t.exec(`UPDATE oauth_clients SET name = $2, redirect_uris = $3, scopes = $4, version = $5 WHERE id = $1`,
				id, next.Name, strings.Join(next.RedirectURIs, "\n"), next.Scopes.String(), out.Client.Version)
			if !slices.Equal(next.Scopes, old.Scopes) {
				t.newEpoch(by.Org)
			}
			t.audit(entries...)
			t.emitClient(&entries[0], event.ClientChanged, &out.Client)
		}
		return t.remember(once, by, now, out)
	})
	return out, err
}

// RotateOrgClient implements oauth.OrgClientStore. Secrets are read for each use and never cached, so no
// cache needs to be invalidated.
func (s OAuth) RotateOrgClient(ctx context.Context, org, id string, secret identity.Hash,
	decide func(oauth.Client) (time.Time, identity.AuditEntry, error),
) (oauth.Client, error) {
	var out oauth.Client
	err := s.writeOnce(ctx, &out, func(t *tx) (err error) {
		if out, err = oneOrgClient(ctx, t, org, id, t.d.forUpdate); err != nil {
			return err
		}
		until, e, err := decide(out)
		if err != nil {
			return err
		}
		old := `''`
		if !until.IsZero() {
			old = `secret_hash`
		}
		out.OldSecretExpires, out.Version = fromMicros(micros(until)), out.Version+1
		t.exec(`UPDATE oauth_clients SET old_secret_hash = `+old+`, old_secret_expires_at = $2, secret_hash = $3, version = $4
			WHERE id = $1`,
			id, micros(until), hashText(secret), out.Version)
		t.audit(e)
		t.emitClient(&e, event.ClientChanged, &out)
		return nil
	})
	return out, err
}

// DeleteOrgClient implements oauth.OrgClientStore.
func (s OAuth) DeleteOrgClient(
	ctx context.Context, org, id string, at time.Time, entry func(oauth.Client) identity.AuditEntry,
) (oauth.Client, error) {
	var out oauth.Client
	err := s.eng.write(ctx, func(t *tx) (err error) {
		if out, err = oneOrgClient(ctx, t, org, id, t.d.forUpdate); err != nil {
			return err
		}
		t.exec(`DELETE FROM oauth_clients WHERE id = $1`, id)
		t.exec(`UPDATE oauth_grants SET revoked_at = $2
			WHERE client_id = $1 AND org_id = $3 AND revoked_at = 0`, id, micros(at), org)
		t.newEpoch(org)
		e := entry(out)
		t.audit(e)
		t.emitClient(&e, event.ClientDeleted, &out)
		return nil
	})
	return out, err
}
