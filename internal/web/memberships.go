package web

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// A session holds one membership or several, at most one in each org: the one that was
// signed in first, those that its password opened, and those that were proven beside it.
// The org of a page's address says which one acts; there is no current org.

// entries are the memberships of the session, the first one first. They may be over.
func (p *Pages) entries(ctx context.Context) []account.Entry {
	user := p.sessions.GetString(ctx, keyUser)
	if user == "" {
		return nil
	}
	list := []account.Entry{{
		Org: p.sessions.GetString(ctx, keyOrg), User: user, Generation: p.sessions.GetInt64(ctx, keyGeneration),
		At: p.sessions.GetInt64(ctx, keyAt), By: account.Way(p.sessions.GetString(ctx, keyBy)),
	}}
	var more []account.Entry
	if kept := p.sessions.GetString(ctx, keyMore); kept != "" && json.Unmarshal([]byte(kept), &more) == nil {
		list = append(list, more...)
	}
	return list
}

// keep writes the memberships into the session.
func (p *Pages) keep(ctx context.Context, list []account.Entry) error {
	if len(list) > account.MaxMemberships {
		list = list[:account.MaxMemberships]
	}
	first := list[0]
	p.sessions.Put(ctx, keyOrg, first.Org)
	p.sessions.Put(ctx, keyUser, first.User)
	p.sessions.Put(ctx, keyGeneration, first.Generation)
	p.sessions.Put(ctx, keyAt, first.At)
	p.sessions.Put(ctx, keyBy, string(first.By))
	if len(list) == 1 {
		p.sessions.Remove(ctx, keyMore)
		return nil
	}
	more, err := json.Marshal(list[1:])
	if err == nil {
		p.sessions.Put(ctx, keyMore, string(more))
	}
	return err
}

// SignedIn returns who is signed in: the first membership of the session that still
// stands; nil: nobody. A membership that was disabled, or signed out everywhere, does not.
func (p *Pages) SignedIn(r *http.Request) (*identity.Member, error) {
	list := p.entries(r.Context())
	if len(list) == 0 {
		return nil, nil
	}
	found, err := p.Accounts.Members(r.Context(), list[:1])
	if err == nil && len(found) == 0 && len(list) > 1 {
		found, err = p.Accounts.Members(r.Context(), list[1:])
	}
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, p.sessions.Destroy(r.Context())
	}
	return &found[0], nil
}

// MemberIn returns who is signed in to the org; nil: nobody, or somebody who is not a
// member of it.
func (p *Pages) MemberIn(r *http.Request, org string) (*identity.Member, error) {
	list := p.entries(r.Context())
	i := inOrg(list, org)
	if i < 0 {
		return nil, nil
	}
	found, err := p.Accounts.Members(r.Context(), list[i:i+1])
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Memberships lists the orgs that the person is signed in to: for a switcher. It costs one
// read.
func (p *Pages) Memberships(r *http.Request) ([]identity.Member, error) {
	return p.Accounts.Members(r.Context(), p.entries(r.Context()))
}

func inOrg(list []account.Entry, org string) int {
	return slices.IndexFunc(list, func(e account.Entry) bool { return e.Org == org })
}

// signIn starts a session, under a new token: nobody who knew the old one comes along.
// Whoever signs in again with a membership of the session, as after a change of its
// password, keeps what was proven beside it.
func (p *Pages) signIn(ctx context.Context, s account.Signed) error {
	now := p.Now()
	e, list := s.Entry(now), []account.Entry(nil)
	old := p.entries(ctx)
	if i := inOrg(old, e.Org); i >= 0 && old[i].User == e.User {
		for j, o := range old {
			switch opened := o.Via != nil && o.Via.Org == e.Org && o.Via.User == e.User; {
			case i == j:
				list = append(list, e)
			case !opened: // what it opened is looked up again
				list = append(list, o)
			}
		}
	} else {
		list = []account.Entry{e}
	}
	return p.enterWith(ctx, list, s)
}

// enterWith opens what comes with a sign-in and writes the session, under a new token.
func (p *Pages) enterWith(ctx context.Context, list []account.Entry, s account.Signed) error {
	opened, err := p.Accounts.Open(ctx, s, p.Now(), list...)
	if err != nil {
		return err
	}
	if err := p.sessions.RenewToken(ctx); err != nil {
		return err
	}
	return p.keep(ctx, append(list, opened...))
}

// signInBeside adds a membership to the session of somebody, who must still be the one
// who is signed in: "org/user".
func (p *Pages) signInBeside(r *http.Request, s account.Signed, who string) error {
	m, err := p.SignedIn(r)
	if err != nil {
		return err
	}
	if m == nil || m.Org+"/"+m.ID != who {
		return errNoErrand
	}
	return p.add(r.Context(), s)
}

func (p *Pages) add(ctx context.Context, s account.Signed) error {
	e, list := s.Entry(p.Now()), p.entries(ctx)
	switch i := inOrg(list, e.Org); {
	case i < 0 && len(list) >= account.MaxMemberships:
		return errs.New(errs.Conflict, "account.too_many",
			"a session can have %d memberships at most; sign out first", account.MaxMemberships)
	case i < 0:
		list = append(list, e)
	case list[i].User == e.User:
		list[i] = e
	default:
		return errs.New(errs.Conflict, "account.same_org",
			"you are signed in to the org %s as user:%s; sign out first to be somebody else there", e.Org, list[i].User)
	}
	return p.enterWith(ctx, list, s)
}

// LinkMembership signs in to a membership in another org beside m, and makes both one account; the
// password proves it. It says whether they are linked: what signs in with an identity
// provider is only added to the session. Guesses are limited as those of sign-ins.
func (p *Pages) LinkMembership(r *http.Request, m *identity.Member, org, user, password string) (linked bool, _ error) {
	if err := p.byAddress.Take(p.router.ClientAddr(r).String()); err != nil {
		return false, err
	}
	var signed account.Signed
	err := p.guess(r, org, user, func() (wrong bool, err error) {
		signed, linked, err = p.Accounts.LinkMembership(r.Context(), m.Principal, org, user, password)
		return errs.KindOf(err) == errs.Unauthenticated, err
	})
	if err == nil {
		err = p.add(r.Context(), signed)
	}
	return linked && err == nil, err
}

// JoinLinked accepts an invitation as the account that is signed in: with a new membership
// that has no password of its own.
func (p *Pages) JoinLinked(r *http.Request, token string) (*identity.Member, error) {
	list := p.entries(r.Context())
	by := slices.IndexFunc(list, func(e account.Entry) bool { return e.Via == nil && e.By == account.ByPassword })
	if by < 0 {
		by = 0 // which says why it cannot
	}
	if len(list) == 0 {
		return nil, identity.ErrMissing
	}
	i, err := p.OrgAdmin.Invitation(r.Context(), token)
	if err != nil {
		return nil, err
	}
	if at := inOrg(list, i.Org); at >= 0 {
		return nil, errs.New(errs.Conflict, "account.same_org",
			"you are a member of the org %s already, as user:%s", i.Org, list[at].User)
	}
	e, m, err := p.Accounts.Join(r.Context(), list[by], token)
	if err != nil {
		return nil, err
	}
	return &m, p.keep(r.Context(), append(list, e))
}

// UnlinkMembership takes a membership out of its account, and out of the session what it or another
// one opened. The first membership stays signed in.
func (p *Pages) UnlinkMembership(r *http.Request, m *identity.Member) error {
	if err := p.Accounts.UnlinkMembership(r.Context(), m.Principal); err != nil {
		return err
	}
	list := p.entries(r.Context())
	kept := list[:0:0]
	for i, e := range list {
		if i == 0 || e.Principal() != m.Principal && (e.Via == nil || e.Via.Org != m.Org || e.Via.User != m.ID) {
			kept = append(kept, e)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return p.keep(r.Context(), kept)
}
