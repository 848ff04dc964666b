package store

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/identity"
)

// Arrive implements account.Store.
func (s Accounts) Arrive(
	ctx context.Context, a account.Arrival, by account.Proof, at time.Time,
	decide func(account.Scene) (account.Outcome, error),
) (account.Signed, error) {
	var out account.Signed
	err := s.eng.write(ctx, func(t *tx) error {
		scene, err := t.scene(ctx, a, by, at)
		if err != nil {
			return err
		}
		o, err := decide(scene)
		if err != nil {
			return err
		}
		out = account.Signed{Member: o.Member}
		if scene.Account != nil {
			out.Generation = scene.Account.Generation
		}
		if o.UseInvitation {
			t.exec(`UPDATE invitations SET accepted_at = $2 WHERE id = $1`, scene.Invitation.ID, micros(at))
			t.emitAccepted(&o.Entries[0], *scene.Invitation, &o.Member)
		}
		if o.UseLink {
			t.exec(`DELETE FROM login_links WHERE hash = $1`, hashText(by.Link))
		}
		if o.Create {
			if err := t.createMember(ctx, o.Member); err != nil {
				return err
			}
			if !o.UseInvitation {
				t.emitMember(&o.Entries[0], event.MemberCreated, &o.Member)
			}
		}
		if o.Update {
			t.exec(`UPDATE principals SET admin = $4 WHERE `+thatMember,
				o.Member.Org, string(o.Member.Kind), o.Member.ID, flag(o.Member.Admin))
			t.emitMemberChanges(o.Entries, &o.Member)
			t.endAdminRights(&o.Entries[0], &o.Member, o.End, at)
			t.newEpoch(a.Org)
		}
		if o.Connect {
			t.exec(`INSERT INTO identities (org_id, issuer, subject, user_id, label, created_at)
				VALUES ($1, $2, $3, $4, $5, $6)`,
				a.Org, a.Issuer, a.Subject, o.Member.ID, a.Label, micros(at))
			if scene.Opened && scene.Account.Hash == "" {
				// Unlink the membership. If it stayed linked, a first password would open the other
				// orgs to anyone the provider vouches for.
				t.exec(`DELETE FROM account_links WHERE org_id = $1 AND user_id = $2`, a.Org, o.Member.ID)
			}
		}
		t.audit(o.Entries...)
		return nil
	})
	return out, err
}

// scene reads the rows that an arrival is decided on. It locks single-use rows first: of
// two concurrent requests that use one, the second finds it used.
func (t *tx) scene(ctx context.Context, a account.Arrival, by account.Proof, at time.Time) (account.Scene, error) {
	var s account.Scene
	user := a.User
	if by.User != "" {
		user = by.User
	}
	switch none := (identity.Hash{}); {
	case by.Invitation != none:
		i, err := oneInvitation(ctx, t, `hash = $1`+t.d.forUpdate, hashText(by.Invitation))
		if err != nil && errs.KindOf(err) != errs.NotFound {
			return s, err
		}
		if err == nil {
			s.Invitation, user = &i, i.User
		}
	case by.Link != none:
		l, err := oneLink(ctx, t, by.Link, at, t.d.forUpdate)
		if err != nil && errs.KindOf(err) != errs.NotFound {
			return s, err
		}
		if err == nil {
			s.Link, user = &l, l.User
		}
	}
	if _, err := one(ctx, t, []any{&s.Linked}, `SELECT user_id FROM identities
		WHERE org_id = $1 AND issuer = $2 AND subject = $3`,
		a.Org, a.Issuer, a.Subject); err != nil {
		return s, err
	}
	if s.Linked != "" {
		user = s.Linked
	}
	if user == "" {
		return s, nil
	}
	p := identity.Principal{Org: a.Org, Kind: identity.User, ID: user}
	if a.Admin != nil {
		_, others, err := t.memberAmongAdmins(ctx, p)
		if err != nil {
			return s, err
		}
		s.Admins = others
		if s.Rights, err = t.adminRights(ctx, p, at); err != nil {
			return s, err
		}
	}
	c, err := credentials(ctx, t, p)
	if errs.KindOf(err) == errs.NotFound {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Account = &c
	s.Opened, err = t.exists(ctx, `SELECT 1 FROM account_links WHERE org_id = $1 AND user_id = $2`, p.Org, p.ID)
	if err != nil {
		return s, err
	}
	s.Identities, err = identitiesOf(ctx, t, p)
	for _, i := range s.Identities {
		if i.Issuer == a.Issuer && i.Subject == a.Subject {
			s.Linked = user // connected since the first query
		}
	}
	return s, err
}

func identitiesOf(ctx context.Context, q reader, p identity.Principal) ([]account.Identity, error) {
	list := []account.Identity{}
	err := each(ctx, q, func(r rows) error {
		i := account.Identity{Org: p.Org, User: p.ID}
		var at int64
		err := r.Scan(&i.Issuer, &i.Subject, &i.Label, &at)
		i.CreatedAt = fromMicros(at)
		list = append(list, i)
		return err
	}, `SELECT issuer, subject, label, created_at FROM identities
		WHERE org_id = $1 AND user_id = $2 ORDER BY issuer`, p.Org, p.ID)
	return list, err
}

// Identities implements account.Store.
func (s Accounts) Identities(ctx context.Context, p identity.Principal) ([]account.Identity, error) {
	return identitiesOf(ctx, s.eng, p)
}

// Disconnect implements account.Store. It locks the user, so that two concurrent calls
// cannot together remove the last way to sign in.
func (s Accounts) Disconnect(
	ctx context.Context, p identity.Principal, issuer string,
	decide func(account.Credentials, []account.Identity) (identity.AuditEntry, error),
) error {
	return s.eng.write(ctx, func(t *tx) error {
		_, err := t.exists(ctx, `SELECT 1 FROM principals WHERE `+thatMember+t.d.forUpdate, p.Org, string(p.Kind), p.ID)
		if err != nil {
			return err
		}
		c, err := credentials(ctx, t, p)
		if err != nil {
			return err
		}
		list, err := identitiesOf(ctx, t, p)
		if err != nil {
			return err
		}
		found := false
		for _, i := range list {
			found = found || i.Issuer == issuer
		}
		if !found {
			return errs.ErrNotFound
		}
		e, err := decide(c, list)
		if err != nil {
			return err
		}
		t.exec(`DELETE FROM identities WHERE org_id = $1 AND user_id = $2 AND issuer = $3`, p.Org, p.ID, issuer)
		t.newEpoch(p.Org) // tokens of the issuer no longer act for the user
		t.audit(e)
		return nil
	})
}
