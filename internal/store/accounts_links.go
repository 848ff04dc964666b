package store

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

const standingColumns = `SELECT p.org_id, p.id, p.name, p.admin, p.disabled, p.created_at,
	coalesce(w.hash, ''), coalesce(w.generation, 0), coalesce(l.account_id, ''), coalesce(l.epoch, 0),
	CASE WHEN EXISTS (SELECT 1 FROM identities i WHERE i.org_id = p.org_id AND i.user_id = p.id) THEN 1 ELSE 0 END `

func standings(ctx context.Context, q reader, sql string, args ...any) ([]account.Standing, error) {
	list := []account.Standing{}
	err := each(ctx, q, func(r rows) error {
		var s account.Standing
		var admin, disabled, created, provider int64
		m := &s.Member
		err := r.Scan(&m.Org, &m.ID, &m.Name, &admin, &disabled, &created,
			&s.Hash, &s.Generation, &s.Account, &s.Epoch, &provider)
		m.Kind, m.Admin, m.Disabled, m.CreatedAt = identity.User, admin != 0, disabled != 0, fromMicros(created)
		s.Provider = provider != 0
		list = append(list, s)
		return err
	}, standingColumns+sql, args...)
	return list, err
}

const ofUsers = `FROM principals p LEFT JOIN passwords w ON w.org_id = p.org_id AND w.user_id = p.id
	LEFT JOIN account_links l ON l.org_id = p.org_id AND l.user_id = p.id WHERE `

// Standings implements account.Store.
func (s Accounts) Standings(ctx context.Context, users []identity.Principal) ([]account.Standing, error) {
	var terms []string
	var args []any
	for _, p := range users {
		args = append(args, p.Org, p.ID)
		n := len(args)
		terms = append(terms, `p.org_id = $`+strconv.Itoa(n-1)+` AND p.kind = 'user' AND p.id = $`+strconv.Itoa(n))
	}
	if len(terms) == 0 {
		return nil, nil
	}
	return standings(ctx, s.eng, ofUsers+strings.Join(terms, ` OR `), args...)
}

// OrgNames implements account.Store.
func (s Accounts) OrgNames(ctx context.Context, orgs []string) (map[string]string, error) {
	names := map[string]string{}
	var places []string
	var args []any
	for _, org := range orgs {
		args = append(args, org)
		places = append(places, `$`+strconv.Itoa(len(args)))
	}
	if len(args) == 0 {
		return names, nil
	}
	err := each(ctx, s.eng, func(r rows) error {
		var id, name string
		err := r.Scan(&id, &name)
		names[id] = name
		return err
	}, `SELECT id, name FROM orgs WHERE id IN (`+strings.Join(places, `, `)+`)`, args...)
	return names, err
}

// Linked implements account.Store.
func (s Accounts) Linked(ctx context.Context, p identity.Principal) ([]account.Standing, error) {
	return linked(ctx, s.eng, p, "")
}

// linked reads the account of a user. lock is the locking clause of the query, or empty.
func linked(ctx context.Context, q reader, p identity.Principal, lock string) ([]account.Standing, error) {
	if p.Kind != identity.User {
		return nil, errs.ErrNotFound
	}
	list, err := standings(ctx, q, `FROM account_links l
		JOIN principals p ON p.org_id = l.org_id AND p.kind = 'user' AND p.id = l.user_id
		LEFT JOIN passwords w ON w.org_id = p.org_id AND w.user_id = p.id
		WHERE l.account_id = (SELECT account_id FROM account_links WHERE org_id = $1 AND user_id = $2)
		ORDER BY l.org_id`+lock, p.Org, p.ID)
	if err == nil && len(list) == 0 {
		list, err = standings(ctx, q, ofUsers+`p.org_id = $1 AND p.kind = 'user' AND p.id = $2`, p.Org, p.ID)
		if err == nil && len(list) == 0 {
			err = errs.ErrNotFound
		}
	}
	return list, err
}

// lockedAccount is linked with the account's links locked. The caller has locked the user.
func (t *tx) lockedAccount(ctx context.Context, p identity.Principal) ([]account.Standing, error) {
	lock := ""
	if t.d.forUpdate != "" {
		lock = t.d.forUpdate + " OF l"
	}
	return linked(ctx, t, p, lock)
}

// lockUsers locks two users in a fixed order, which prevents deadlocks.
func (t *tx) lockUsers(ctx context.Context, a, b identity.Principal) error {
	_, err := membersWhere(ctx, t, `kind = 'user' AND (org_id = $1 AND id = $2 OR org_id = $3 AND id = $4)
		ORDER BY org_id, id`+t.d.forUpdate, a.Org, a.ID, b.Org, b.ID)
	return err
}

// accountOf returns the id and the epoch of the user's account, or "" if the user has none.
func accountOf(list []account.Standing, p identity.Principal) (id string, epoch int64) {
	for i := range list {
		if list[i].Member.Principal == p {
			return list[i].Account, list[i].Epoch
		}
	}
	return "", 0
}

func (t *tx) insertAccountLink(id string, p identity.Principal, at time.Time) {
	t.exec(`INSERT INTO account_links (account_id, org_id, user_id, epoch, linked_at) VALUES ($1, $2, $3, 1, $4)`,
		id, p.Org, p.ID, micros(at))
}

// closeLinked ends the access to linked orgs that running sessions got by the user's password.
func (t *tx) closeLinked(p identity.Principal) {
	t.exec(`UPDATE account_links SET epoch = epoch + 1 WHERE org_id = $1 AND user_id = $2`, p.Org, p.ID)
}

// LinkUsers implements account.Store.
func (s Accounts) LinkUsers(
	ctx context.Context, p, with identity.Principal, fresh string, at time.Time,
	decide func(of, and []account.Standing) ([]identity.AuditEntry, error),
) error {
	return s.eng.write(ctx, func(t *tx) error {
		if err := t.lockUsers(ctx, p, with); err != nil {
			return err
		}
		of, err := t.lockedAccount(ctx, p)
		if err != nil {
			return err
		}
		and, err := t.lockedAccount(ctx, with)
		if err != nil {
			return err
		}
		entries, err := decide(of, and)
		if err != nil || len(entries) == 0 {
			return err
		}
		one, _ := accountOf(of, p)
		other, _ := accountOf(and, with)
		switch {
		case one != "" && other != "":
			t.exec(`UPDATE account_links SET account_id = $1 WHERE account_id = $2`, one, other)
		case one != "":
			t.insertAccountLink(one, with, at)
		case other != "":
			t.insertAccountLink(other, p, at)
		default:
			t.insertAccountLink(fresh, p, at)
			t.insertAccountLink(fresh, with, at)
		}
		t.audit(entries...)
		return nil
	})
}

// JoinLinked implements account.Store.
func (s Accounts) JoinLinked(
	ctx context.Context, h identity.Hash, p identity.Principal, fresh string, at time.Time,
	decide func(identity.Invitation, []account.Standing) (identity.Member, []identity.AuditEntry, error),
) (identity.Member, int64, error) {
	var out identity.Member
	var epoch int64
	err := s.eng.write(ctx, func(t *tx) error {
		i, err := oneInvitation(ctx, t, `hash = $1`+t.d.forUpdate, hashText(h))
		if err != nil {
			return err
		}
		if err := t.lockUsers(ctx, p, p); err != nil {
			return err
		}
		of, err := t.lockedAccount(ctx, p)
		if err != nil {
			return err
		}
		m, entries, err := decide(i, of)
		if err != nil {
			return err
		}
		out = m
		t.exec(`UPDATE invitations SET accepted_at = $2 WHERE id = $1`, i.ID, micros(at))
		if err := t.createMember(ctx, m); err != nil {
			return err
		}
		id, e := accountOf(of, p)
		if epoch = e; id == "" {
			id, epoch = fresh, 1
			t.insertAccountLink(id, p, at)
		}
		t.insertAccountLink(id, m.Principal, at)
		t.audit(entries...)
		t.emitAccepted(&entries[0], i, &m)
		return nil
	})
	return out, epoch, err
}

// Unlink implements account.Store.
func (s Accounts) Unlink(
	ctx context.Context, p identity.Principal, decide func([]account.Standing) ([]identity.AuditEntry, error),
) error {
	return s.eng.write(ctx, func(t *tx) error {
		if err := t.lockUsers(ctx, p, p); err != nil {
			return err
		}
		of, err := t.lockedAccount(ctx, p)
		if err != nil {
			return err
		}
		entries, err := decide(of)
		if err != nil || len(entries) == 0 {
			return err
		}
		t.exec(`DELETE FROM account_links WHERE org_id = $1 AND user_id = $2`, p.Org, p.ID)
		t.audit(entries...)
		return nil
	})
}
