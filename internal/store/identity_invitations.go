package store

import (
	"context"
	"encoding/hex"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
)

// CreateInvitation implements identity.InvitationStore.
func (s Identity) CreateInvitation(
	ctx context.Context, i identity.Invitation, h identity.Hash, e identity.AuditEntry, limits ...identity.Quota,
) (identity.Invitation, error) {
	err := s.writeOnce(ctx, &i, func(t *tx) error {
		if err := t.freeMember(ctx, identity.Principal{Org: i.Org, Kind: identity.User, ID: i.User}); err != nil {
			return err
		}
		if err := t.withinQuota(ctx, i.Org, limits, func(q identity.Quota) (int, error) {
			return countUpTo(ctx, t, q.Most, `invitations
					WHERE org_id = $1 AND accepted_at = 0 AND revoked_at = 0 AND expires_at > $2`,
				i.Org, micros(i.CreatedAt))
		}); err != nil {
			return err
		}
		t.exec(`INSERT INTO invitations (id, hash, org_id, user_id, name, admin, created_at, created_by, expires_at,
				accepted_at, revoked_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0)`,
			i.ID, hex.EncodeToString(h[:]), i.Org, i.User, i.Name, flag(i.Admin), micros(i.CreatedAt), i.CreatedBy,
			micros(i.ExpiresAt))
		t.audit(e)
		t.emitInvitation(&e, event.InvitationCreated, &i)
		return nil
	})
	return i, err
}

// Invitations implements identity.InvitationStore.
func (s Identity) Invitations(ctx context.Context, org, before string, n int) ([]identity.Invitation, error) {
	w := where{sql: `org_id = $1`, args: []any{org}}
	if before != "" {
		w.and(`id < ?`, before)
	}
	return invitationsWhere(ctx, s.eng, w.sql+` ORDER BY id DESC`+limit(n), w.args...)
}

func invitationsWhere(ctx context.Context, q reader, where string, args ...any) ([]identity.Invitation, error) {
	list := []identity.Invitation{}
	err := each(ctx, q, func(r rows) error {
		var i identity.Invitation
		var admin, created, expires, accepted, revoked int64
		err := r.Scan(&i.ID, &i.Org, &i.User, &i.Name, &admin, &created, &i.CreatedBy, &expires, &accepted, &revoked)
		i.Admin, i.CreatedAt, i.ExpiresAt = admin != 0, fromMicros(created), fromMicros(expires)
		i.AcceptedAt, i.RevokedAt = fromMicros(accepted), fromMicros(revoked)
		list = append(list, i)
		return err
	}, `SELECT id, org_id, user_id, name, admin, created_at, created_by, expires_at, accepted_at, revoked_at
		FROM invitations WHERE `+where, args...)
	return list, err
}

func oneInvitation(ctx context.Context, q reader, where string, args ...any) (identity.Invitation, error) {
	found, err := invitationsWhere(ctx, q, where, args...)
	if err == nil && len(found) == 0 {
		err = errs.ErrNotFound
	}
	if err != nil {
		return identity.Invitation{}, err
	}
	return found[0], nil
}

// InvitationByHash implements identity.InvitationStore.
func (s Identity) InvitationByHash(ctx context.Context, h identity.Hash) (identity.Invitation, error) {
	return oneInvitation(ctx, s.eng, `hash = $1`, hex.EncodeToString(h[:]))
}

// ChangeInvitation implements identity.InvitationStore.
func (s Identity) ChangeInvitation(
	ctx context.Context, org, id string, decide func(*identity.Invitation) ([]identity.AuditEntry, error),
) (identity.Invitation, error) {
	var out identity.Invitation
	err := s.eng.write(ctx, func(t *tx) (err error) {
		if out, err = oneInvitation(ctx, t, `org_id = $1 AND id = $2`+t.d.forUpdate, org, id); err != nil {
			return err
		}
		entries, err := decide(&out)
		if err != nil || len(entries) == 0 {
			return err
		}
		t.exec(`UPDATE invitations SET revoked_at = $3 WHERE org_id = $1 AND id = $2`, org, id, micros(out.RevokedAt))
		t.audit(entries...)
		t.emitInvitation(&entries[0], event.InvitationRevoked, &out)
		return nil
	})
	return out, err
}

// AcceptInvitation implements identity.InvitationStore. The row is locked, or there is only one writer:
// of several concurrent calls, all but the first find the invitation accepted.
func (s Identity) AcceptInvitation(
	ctx context.Context, h identity.Hash, password string,
	decide func(identity.Invitation) (identity.Member, identity.AuditEntry, error),
) (identity.Member, error) {
	var out identity.Member
	err := s.eng.write(ctx, func(t *tx) error {
		i, err := oneInvitation(ctx, t, `hash = $1`+t.d.forUpdate, hex.EncodeToString(h[:]))
		if err != nil {
			return err
		}
		m, e, err := decide(i)
		if err != nil {
			return err
		}
		out = m
		t.exec(`UPDATE invitations SET accepted_at = $2 WHERE id = $1`, i.ID, micros(m.CreatedAt))
		t.audit(e)
		t.emitAccepted(&e, i, &m)
		if err := t.createMember(ctx, m); err != nil || password == "" {
			return err
		}
		t.exec(`INSERT INTO passwords (org_id, user_id, hash, generation, changed_at) VALUES ($1, $2, $3, 1, $4)`,
			m.Org, m.ID, password, micros(m.CreatedAt))
		return nil
	})
	return out, err
}
