package store

import (
	"context"
	"errors"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
)

// Identity stores orgs, members, keys and invitations.
type Identity struct{ *db }

// Identity returns the implementation of the stores of package identity, except AuditStore,
// and of Members in followup, authserver and sso.
func (s *Store) Identity() Identity { return Identity{s.db} }

// CreateOrg implements identity.OrgStore.
func (s Identity) CreateOrg(ctx context.Context, o identity.Org, e identity.AuditEntry) error {
	refuse := func(ctx context.Context, t *tx) error { return t.refuseOrg(ctx, o.ID) }
	if _, err := s.purgeLeft(ctx, o.ID, func(string, int64) {}, refuse); err != nil {
		return err
	}
	return s.eng.write(ctx, func(t *tx) error {
		if err := refuse(ctx, t); err != nil {
			return err
		}
		t.insertOrg(o)
		t.newVersions(o.ID, o.CreatedAt)
		t.audit(e)
		return nil
	})
}

// refuseOrg returns an error if no org with this id can be created.
func (t *tx) refuseOrg(ctx context.Context, org string) error {
	if err := t.lockOrgID(ctx, org); err != nil {
		return err
	}
	taken, err := t.exists(ctx, `SELECT 1 FROM orgs WHERE id = $1`, org)
	if err != nil {
		return err
	}
	if taken {
		return errs.New(errs.Conflict, "identity.org_exists", "org %q exists already; choose another id", org)
	}
	return t.refuseWhile(ctx, org, settingImporting, errs.New(errs.Conflict, "identity.org_exists",
		"org %q is being imported; choose another id, or remove what a broken import left with \"parley org delete %s\"",
		org, org))
}

func (t *tx) insertOrg(o identity.Org) {
	t.exec(`INSERT INTO orgs (id, name, created_at) VALUES ($1, $2, $3)`, o.ID, o.Name, micros(o.CreatedAt))
	t.exec(`INSERT INTO event_heads (org_id) VALUES ($1)`, o.ID)
}

// Orgs implements identity.OrgStore.
func (s Identity) Orgs(ctx context.Context) ([]identity.Org, error) {
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

// Org implements identity.OrgStore.
func (s Identity) Org(ctx context.Context, id string) (identity.Org, error) {
	o := identity.Org{ID: id}
	var at int64
	found, err := one(ctx, s.eng, []any{&o.Name, &at}, `SELECT name, created_at FROM orgs WHERE id = $1`, id)
	if err == nil && !found {
		err = errs.ErrNotFound
	}
	o.CreatedAt = fromMicros(at)
	return o, err
}

// Bootstrap implements identity.OrgStore.
func (s Identity) Bootstrap(
	ctx context.Context, o identity.Org, m identity.Member, k identity.Key, h identity.Hash,
	entries []identity.AuditEntry,
) (bool, error) {
	refuse := func(ctx context.Context, t *tx) error {
		if err := t.lockOrgID(ctx, o.ID); err != nil {
			return err
		}
		some, err := t.exists(ctx, `SELECT 1 FROM orgs LIMIT 1`)
		switch {
		case err != nil:
			return err
		case some:
			return errTaken
		}
		return t.refuseOrg(ctx, o.ID)
	}
	n := 0
	if some, err := one(ctx, s.eng, []any{&n}, `SELECT 1 FROM orgs LIMIT 1`); err != nil || some {
		return false, err
	}
	_, err := s.purgeLeft(ctx, o.ID, func(string, int64) {}, refuse)
	if err == nil {
		err = s.eng.write(ctx, func(t *tx) error {
			if err := refuse(ctx, t); err != nil {
				return err
			}
			t.insertOrg(o)
			t.insertMember(m)
			t.insertKey(k, h)
			t.audit(entries...)
			t.emitMember(&entries[0], event.MemberCreated, &m)
			t.emitKey(&entries[0], event.KeyCreated, &k)
			return nil
		})
	}
	if errors.Is(err, errTaken) { // another node was faster
		return false, nil
	}
	return err == nil, err
}
