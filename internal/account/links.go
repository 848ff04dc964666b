package account

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// Audit actions of linked memberships. Their entries do not name the other org.
const (
	AccountLink   identity.AuditAction = "account.link"
	AccountUnlink identity.AuditAction = "account.unlink"
)

// MaxMemberships is the maximum number of memberships of one account and of one session.
const MaxMemberships = 50

// Standing is the current state of a membership.
type Standing struct {
	Credentials
	Account  string // id of the account that it is linked to; empty: none
	Epoch    int64  // of the link; memberships that were opened in another epoch are closed
	Provider bool   // an identity provider is connected
}

// ownWay reports whether the person can sign in to the membership directly.
func (s *Standing) ownWay() bool { return s.Hash != "" || s.Provider }

// LinkStore is the part of the store that keeps which memberships belong to one account.
type LinkStore interface {
	// Standings returns the standings of the users that exist, in any order.
	Standings(ctx context.Context, users []identity.Principal) ([]Standing, error)
	// Linked returns the memberships of the user's account, by org. A user without links
	// is returned alone; NotFound: there is no such user.
	Linked(ctx context.Context, p identity.Principal) ([]Standing, error)
	// OrgNames returns the display names of the orgs that exist.
	OrgNames(ctx context.Context, orgs []string) (map[string]string, error)
	// LinkUsers locks both users and their accounts, and merges the accounts if decide
	// returns audit entries. fresh is the id to use for a new account.
	LinkUsers(ctx context.Context, p, with identity.Principal, fresh string, at time.Time,
		decide func(of, and []Standing) ([]identity.AuditEntry, error)) error
	// JoinLinked accepts an invitation with a new user that is linked to p, and returns
	// the user together with the epoch of p's link.
	JoinLinked(ctx context.Context, h identity.Hash, p identity.Principal, fresh string, at time.Time,
		decide func(i identity.Invitation, of []Standing) (identity.Member, []identity.AuditEntry, error),
	) (identity.Member, int64, error)
	// Unlink removes the user from its account, unless decide returns an error or no audit
	// entries.
	Unlink(ctx context.Context, p identity.Principal, decide func(of []Standing) ([]identity.AuditEntry, error)) error
}

// Way is a way to sign in.
type Way string

// Ways to sign in.
const (
	ByPassword Way = "password"
	ByProvider Way = "provider"
)

// Entry is one membership of a session.
type Entry struct {
	Org, User  string
	Generation int64
	At         int64 // unix seconds of the sign-in to the membership or its opener
	By         Way
	Via        *Opener // the membership that opened it; nil: direct sign-in
}

// Opener is a membership whose password opened another one.
type Opener struct {
	Org, User string
	Epoch     int64
}

// Principal returns the user of the entry.
func (e *Entry) Principal() identity.Principal { return userOf(e.Org, e.User) }

func userOf(org, id string) identity.Principal {
	return identity.Principal{Org: org, Kind: identity.User, ID: id}
}

// Entry returns the session entry of the sign-in.
func (s *Signed) Entry(at time.Time) Entry {
	return Entry{Org: s.Member.Org, User: s.Member.ID, Generation: s.Generation, At: at.Unix(), By: s.By}
}

// good reports whether the entry is still valid. An entry that was opened by another
// membership also needs the link. It does not matter whether the opener is disabled: that is
// up to the opener's org.
func (e *Entry) good(now map[identity.Principal]*Standing) bool {
	s := now[e.Principal()]
	if s == nil || s.Member.Disabled || s.Generation != e.Generation {
		return false
	}
	if e.Via == nil {
		return true
	}
	via := now[userOf(e.Via.Org, e.Via.User)]
	return via != nil && via.Account != "" && via.Account == s.Account && via.Epoch == e.Via.Epoch && !s.Provider
}

// Members returns the members of the valid entries of a session, in their order, with one
// read.
func (a *Accounts) Members(ctx context.Context, list []Entry) ([]identity.Member, error) {
	var ask []identity.Principal
	add := func(p identity.Principal) {
		if !slices.Contains(ask, p) {
			ask = append(ask, p)
		}
	}
	for i := range list {
		add(list[i].Principal())
		if via := list[i].Via; via != nil {
			add(userOf(via.Org, via.User))
		}
	}
	if len(ask) == 0 {
		return nil, nil
	}
	found, err := a.store.Standings(ctx, ask)
	if err != nil {
		return nil, err
	}
	now := make(map[identity.Principal]*Standing, len(found))
	for i := range found {
		now[found[i].Member.Principal] = &found[i]
	}
	var out []identity.Member
	for i := range list {
		if e := &list[i]; e.good(now) {
			out = append(out, now[e.Principal()].Member)
		}
	}
	return out, nil
}

// Open returns the linked memberships that a sign-in with a password opens. A sign-in with an
// identity provider opens none, because the provider is trusted by its own org only. For the
// same reason, a membership with a provider is not opened by another one. Orgs that the
// session has already are omitted.
func (a *Accounts) Open(ctx context.Context, s Signed, at time.Time, session ...Entry) ([]Entry, error) {
	if s.By != ByPassword {
		return nil, nil
	}
	list, err := a.store.Linked(ctx, s.Member.Principal)
	if err != nil || len(list) < 2 {
		return nil, err
	}
	var out []Entry
	known := func(org string) bool {
		return slices.ContainsFunc(session, func(e Entry) bool { return e.Org == org })
	}
	via := Opener{Org: s.Member.Org, User: s.Member.ID}
	for i := range list {
		if list[i].Member.Principal == s.Member.Principal {
			via.Epoch = list[i].Epoch
		}
	}
	for i := range list {
		l := &list[i]
		if l.Member.Principal == s.Member.Principal || l.Member.Disabled || l.Provider || known(l.Member.Org) ||
			len(session)+len(out) >= MaxMemberships {
			continue
		}
		out = append(out, Entry{
			Org: l.Member.Org, User: l.Member.ID, Generation: l.Generation, At: at.Unix(), By: s.By, Via: &via,
		})
		e := a.entry(ctx, l.Member.Principal, LoggedIn, "with a linked account")
		if err := a.audit.Append(ctx, e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Memberships lists the memberships of the user's account, including p. Only that person
// may see them.
func (a *Accounts) Memberships(ctx context.Context, p identity.Principal) ([]identity.Member, error) {
	list, err := a.store.Linked(ctx, p)
	out := make([]identity.Member, len(list))
	for i := range list {
		out[i] = list[i].Member
	}
	return out, err
}

// OrgNames returns the display names of orgs. The caller must be a member of them.
func (a *Accounts) OrgNames(ctx context.Context, orgs ...string) (map[string]string, error) {
	return a.store.OrgNames(ctx, orgs[:min(len(orgs), MaxMemberships)])
}

func sameOrg(p identity.Principal) error {
	return conflict("account.same_org",
		"you are a member of the org %s already, as %s; an account has one membership in an org", p.Org, p.Ref())
}

// LinkMembership signs in to a membership in another org and links it with p, which is signed
// in, to one account. If one of them has an identity provider, they are not linked, and linked
// is false.
func (a *Accounts) LinkMembership(
	ctx context.Context, p identity.Principal, org, name, password string,
) (s Signed, linked bool, _ error) {
	if org == p.Org {
		return Signed{}, false, sameOrg(p)
	}
	s, err := a.Login(ctx, org, name, password)
	if err != nil {
		return Signed{}, false, err
	}
	with := s.Member.Principal
	decide := func(of, and []Standing) ([]identity.AuditEntry, error) {
		linked = false
		one, other := find(of, p), find(and, with)
		switch {
		case one == nil || other == nil || one.Member.Disabled || other.Member.Disabled,
			other.Generation != s.Generation:
			return nil, errBadLogin
		case one.Provider || other.Provider:
			return nil, nil
		case one.Account != "" && one.Account == other.Account:
			linked = true
			return nil, nil
		case len(of)+len(and) > MaxMemberships:
			return nil, errTooMany
		}
		for i := range of {
			p := of[i].Member.Principal
			if slices.ContainsFunc(and, func(s Standing) bool { return s.Member.Org == p.Org }) {
				return nil, sameOrg(p)
			}
		}
		linked = true
		return []identity.AuditEntry{a.entry(ctx, p, AccountLink, ""), a.entry(ctx, with, AccountLink, "")}, nil
	}
	if err := a.store.LinkUsers(ctx, p, with, newAccountID(), a.now(), decide); err != nil {
		return Signed{}, false, err
	}
	return s, linked, nil
}

func newAccountID() string { return "acct-" + strings.ToLower(rand.Text()) }

var errTooMany = errs.New(errs.Conflict, "account.too_many",
	"an account can have %d memberships at most", MaxMemberships)

func find(list []Standing, p identity.Principal) *Standing {
	for i := range list {
		if list[i].Member.Principal == p {
			return &list[i]
		}
	}
	return nil
}

// Join accepts an invitation with the account of a signed-in user. The new membership has no
// password; the password of the user opens it. by is the session entry of the user.
func (a *Accounts) Join(ctx context.Context, by Entry, token string) (Entry, identity.Member, error) {
	now, p := a.now(), by.Principal()
	if by.By != ByPassword || by.Via != nil {
		return Entry{}, identity.Member{}, errNoPassword
	}
	decide := func(i identity.Invitation, of []Standing) (identity.Member, []identity.AuditEntry, error) {
		if err := mayJoin(&i, of, &by, now); err != nil {
			return identity.Member{}, nil, err
		}
		m, err := identity.NewMember(userOf(i.Org, i.User), text.CleanName(i.Name), i.Admin, now)
		e := a.entry(ctx, m.Principal, identity.InvitationAccept, m.Ref())
		if e.Target = i.ID; m.Admin {
			e.Detail += ", admin"
		}
		return m, []identity.AuditEntry{
			e, a.entry(ctx, m.Principal, AccountLink, ""), a.entry(ctx, p, AccountLink, ""),
		}, err
	}
	m, epoch, err := a.store.JoinLinked(ctx, identity.HashToken(token), p, newAccountID(), now, decide)
	if err != nil {
		if errs.KindOf(err) == errs.NotFound {
			err = errBadInvitation
		}
		return Entry{}, identity.Member{}, err
	}
	via := &Opener{Org: p.Org, User: p.ID, Epoch: epoch}
	return Entry{Org: m.Org, User: m.ID, At: by.At, By: by.By, Via: via}, m, nil
}

// mayJoin returns an error if the account cannot accept the invitation.
func mayJoin(i *identity.Invitation, of []Standing, by *Entry, now time.Time) error {
	self := find(of, by.Principal())
	switch {
	case i.State(now) != identity.InvitationOpen:
		return errBadInvitation
	case self == nil || self.Member.Disabled || self.Generation != by.Generation:
		return errBadLogin
	case self.Hash == "":
		return errNoPassword
	case len(of) >= MaxMemberships:
		return errTooMany
	}
	for j := range of {
		if of[j].Member.Org == i.Org {
			return sameOrg(of[j].Member.Principal)
		}
	}
	return nil
}

var errBadInvitation = errs.New(errs.NotFound, "identity.bad_invitation",
	"the invitation is unknown, used, expired or revoked; ask an admin of the org for a new one")

var errNoPassword = errs.New(errs.Conflict, "account.no_password",
	"you did not sign in with a password, so your account cannot open the new membership; "+
		"choose a password for it, or an identity provider")

// UnlinkMembership removes a membership from its account. Every membership must keep a way to
// sign in. It does nothing if the membership is not linked.
func (a *Accounts) UnlinkMembership(ctx context.Context, p identity.Principal) error {
	return a.store.Unlink(ctx, p, func(of []Standing) ([]identity.AuditEntry, error) {
		self := find(of, p)
		if self == nil || self.Account == "" {
			return nil, nil
		}
		if len(of) > 1 && !self.ownWay() {
			return nil, conflict("account.last_way",
				"%s has no password of its own in the org %s; set one first", p.Ref(), p.Org)
		}
		opens := func(s Standing) bool { return s.Member.Principal != p && s.Hash != "" && !s.Member.Disabled }
		if !slices.ContainsFunc(of, opens) {
			for i := range of {
				if m := &of[i]; m != self && !m.ownWay() {
					return nil, conflict("account.last_way",
						"%s of the org %s has no password of its own and needs that of %s; set one there first",
						m.Member.Ref(), m.Member.Org, p.Org)
				}
			}
		}
		return []identity.AuditEntry{a.entry(ctx, p, AccountUnlink, "")}, nil
	})
}
