package store

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/idempotency"
	"github.com/parley-dev/parley/internal/identity"
)

// CreateMember implements identity.MemberStore.
func (s Identity) CreateMember(ctx context.Context, m identity.Member, e identity.AuditEntry) (identity.Member, error) {
	err := s.writeOnce(ctx, &m, func(t *tx) error {
		t.audit(e)
		t.emitMember(&e, event.MemberCreated, &m)
		return t.createMember(ctx, m)
	})
	return m, err
}

func (t *tx) createMember(ctx context.Context, m identity.Member) error {
	known, err := t.exists(ctx, `SELECT 1 FROM orgs WHERE id = $1`, m.Org)
	if err != nil {
		return err
	}
	if !known {
		return errs.New(errs.NotFound, "identity.no_such_org", "there is no org %q; create it first", m.Org)
	}
	if err := t.refuseWhile(ctx, m.Org, settingDeleting, errs.New(errs.Conflict, "identity.org_deleting",
		"org %q is being deleted", m.Org)); err != nil {
		return err
	}
	if err := t.freeMember(ctx, m.Principal); err != nil {
		return err
	}
	t.insertMember(m)
	return nil
}

// freeMember returns an error if the principal exists, or is being erased.
func (t *tx) freeMember(ctx context.Context, p identity.Principal) error {
	taken, err := t.exists(ctx, `SELECT 1 FROM principals
		WHERE org_id = $1 AND kind = $2 AND id = $3`, p.Org, string(p.Kind), p.ID)
	if err == nil && taken {
		err = errs.New(errs.Conflict, "identity.principal_exists", "org %q has a %s already; choose another id",
			p.Org, p.Ref())
	}
	if err != nil {
		return err
	}
	return t.refuseErasing(ctx, p)
}

func (t *tx) insertMember(m identity.Member) {
	t.exec(`INSERT INTO principals (org_id, kind, id, name, admin, disabled, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		m.Org, string(m.Kind), m.ID, m.Name, flag(m.Admin), flag(m.Disabled), micros(m.CreatedAt))
}

func membersWhere(ctx context.Context, q reader, where string, args ...any) ([]identity.Member, error) {
	list := []identity.Member{}
	err := each(ctx, q, func(r rows) error {
		var m identity.Member
		var kind string
		var admin, disabled, at int64
		err := r.Scan(&m.Org, &kind, &m.ID, &m.Name, &admin, &disabled, &at)
		m.Kind, m.Admin, m.Disabled, m.CreatedAt = identity.Kind(kind), admin != 0, disabled != 0, fromMicros(at)
		list = append(list, m)
		return err
	}, `SELECT org_id, kind, id, name, admin, disabled, created_at FROM principals WHERE `+where, args...)
	return list, err
}

// Members implements identity.MemberStore.
func (s Identity) Members(ctx context.Context, org string, f identity.MemberFilter) ([]identity.Member, error) {
	w := where{sql: `org_id = $1`, args: []any{org}}
	if f.Kind != "" {
		w.and(`kind = ?`, string(f.Kind))
	}
	if f.State != "" {
		w.and(`disabled = ?`, flag(f.State == identity.MemberDisabled))
	}
	if f.After.Kind != "" {
		w.and(`(kind, id) > (?, ?)`, string(f.After.Kind), f.After.ID)
	}
	return membersWhere(ctx, s.eng, w.sql+` ORDER BY kind, id`+limit(f.Limit), w.args...)
}

const thatMember = `org_id = $1 AND kind = $2 AND id = $3`

// Member implements identity.MemberStore.
func (s Identity) Member(ctx context.Context, p identity.Principal) (identity.Member, error) {
	found, err := membersWhere(ctx, s.eng, thatMember, p.Org, string(p.Kind), p.ID)
	if err == nil && len(found) == 0 {
		err = errs.ErrNotFound
	}
	if err != nil {
		return identity.Member{}, err
	}
	return found[0], nil
}

// UpdateMember implements identity.MemberStore. It locks the admins together with the member: two
// admins who disable each other concurrently must not both find the other enabled.
func (s Identity) UpdateMember(
	ctx context.Context, p identity.Principal, at time.Time,
	decide func(identity.MemberScene) (identity.MemberOutcome, error),
) (identity.MemberOutcome, error) {
	var out identity.MemberOutcome
	err := s.writeOnce(ctx, &out.Member, func(t *tx) error {
		cur, others, err := t.memberAmongAdmins(ctx, p)
		if err != nil {
			return err
		}
		if cur == nil {
			return errs.ErrNotFound
		}
		rights, err := t.adminRights(ctx, p, at)
		if err != nil {
			return err
		}
		out, err = decide(identity.MemberScene{Member: *cur, OtherAdmins: others, Rights: rights})
		if err != nil || len(out.Entries) == 0 {
			return err
		}
		next := out.Member
		t.exec(`UPDATE principals SET name = $4, admin = $5, disabled = $6 WHERE `+thatMember,
			p.Org, string(p.Kind), p.ID, next.Name, flag(next.Admin), flag(next.Disabled))
		if p.Kind == identity.Agent {
			t.exec(`UPDATE agents SET name = $3, disabled = $4, updated_at = $5 WHERE id = $1 AND org_id = $2`,
				p.ID, p.Org, next.Name, flag(next.Disabled), micros(at))
			if err := t.emitAgentMember(ctx, out.Entries, &next, at); err != nil {
				return err
			}
		} else {
			t.emitMemberChanges(out.Entries, &next)
		}
		if next.Disabled && !cur.Disabled {
			t.endLogins(p, at)
		}
		t.endAdminRights(&out.Entries[0], &next, out.End, at)
		t.newEpoch(p.Org)
		t.audit(out.Entries...)
		return nil
	})
	if idempotency.From(ctx).Replayed() {
		out = identity.MemberOutcome{Member: out.Member} // the rest belongs to a run that was undone
	}
	return out, err
}

// memberAmongAdmins locks a member and the org's enabled admins, and counts the other admins.
// One statement locks all rows in a fixed order, which prevents deadlocks.
func (t *tx) memberAmongAdmins(ctx context.Context, p identity.Principal) (cur *identity.Member, others int, _ error) {
	found, err := membersWhere(ctx, t, `org_id = $1
		AND (kind = $2 AND id = $3 OR kind = 'user' AND admin = 1 AND disabled = 0)
		ORDER BY kind, id`+t.d.forUpdate, p.Org, string(p.Kind), p.ID)
	for i, m := range found {
		if m.Principal == p {
			cur = &found[i]
		} else {
			others++
		}
	}
	return cur, others, err
}

// MemberBySubject implements sso.Members.
func (s Identity) MemberBySubject(ctx context.Context, org, issuer, subject string) (identity.Member, error) {
	found, err := membersWhere(ctx, s.eng, `org_id = $1 AND kind = 'user'
		AND id = (SELECT user_id FROM identities
		WHERE org_id = $1 AND issuer = $2 AND subject = $3)`, org, issuer, subject)
	if err == nil && len(found) == 0 {
		err = errs.ErrNotFound
	}
	if err != nil {
		return identity.Member{}, err
	}
	return found[0], nil
}
