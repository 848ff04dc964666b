package web

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/alexedwards/scs/v2"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// A session has one or more memberships, at most one per org: the one that was signed in first,
// those that its password opened, and those that were proven in addition. The org in the URL
// selects the one that acts; there is no current org.

// entries returns the memberships of the session, the first one first. They may have ended.
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

// keep stores the memberships in the session.
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

// SignedIn returns the first valid membership of the session, or nil. A membership that is
// disabled, or was signed out everywhere, is not valid.
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

// MemberIn returns the session's membership in the org, or nil.
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

// Memberships lists the memberships of the session, for a switcher of orgs. It costs one read.
func (p *Pages) Memberships(r *http.Request) ([]identity.Member, error) {
	return p.Accounts.Members(r.Context(), p.entries(r.Context()))
}

func inOrg(list []account.Entry, org string) int {
	return slices.IndexFunc(list, func(e account.Entry) bool { return e.Org == org })
}

// signIn starts a session with a new token, so that the old token becomes useless. A user who signs
// in again with a membership of the session, as after a change of the password, keeps the other
// memberships.
func (p *Pages) signIn(ctx context.Context, s account.Signed) error {
	now := p.Now()
	e, list := s.Entry(now), []account.Entry(nil)
	old := p.entries(ctx)
	if i := inOrg(old, e.Org); i >= 0 && old[i].User == e.User {
		for j, o := range old {
			switch opened := o.Via != nil && o.Via.Org == e.Org && o.Via.User == e.User; {
			case i == j:
				list = append(list, e)
			case !opened: // what it opened is read again
				list = append(list, o)
			}
		}
	} else {
		list = []account.Entry{e}
	}
	return p.enterWith(ctx, list, s)
}

// enterWith adds the linked memberships to a sign-in, and writes the session with a new token.
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

// signInBeside adds a membership to the session of who ("org/user"), which must still be signed
// in.
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
			"a session can have at most %d memberships; sign out first", account.MaxMemberships)
	case i < 0:
		list = append(list, e)
	case list[i].User == e.User:
		list[i] = e
	default:
		return errs.New(errs.Conflict, "account.same_org",
			"you are signed in to the org %s as user:%s; sign out first to sign in as another user", e.Org, list[i].User)
	}
	return p.enterWith(ctx, list, s)
}

// LinkMembership signs in to a membership in another org with its password, and links it with m. It
// returns false if they are not linked: a membership with an identity provider is only added to the
// session. Attempts are rate limited like sign-ins.
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

// JoinLinked accepts an invitation with the account that is signed in. The new membership has no
// password.
func (p *Pages) JoinLinked(r *http.Request, token string) (*identity.Member, error) {
	list := p.entries(r.Context())
	by := slices.IndexFunc(list, func(e account.Entry) bool { return e.Via == nil && e.By == account.ByPassword })
	if by < 0 {
		by = 0 // its error says why
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
			"you are already a member of the org %s, as user:%s", i.Org, list[at].User)
	}
	e, m, err := p.Accounts.Join(r.Context(), list[by], token)
	if err != nil {
		return nil, err
	}
	return &m, p.keep(r.Context(), append(list, e))
}

// UnlinkMembership removes a membership from its account, and from the session what it opened or
// what opened it. The first membership stays signed in.
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

// SessionNames reports whether stored session data has a membership in the org, or was opened by one;
// of the user, unless that is empty.
func SessionNames(data []byte, org, user string) bool {
	_, values, err := scs.GobCodec{}.Decode(data)
	if err != nil {
		return false
	}
	text := func(key string) string {
		s, _ := values[key].(string)
		return s
	}
	list := []account.Entry{{Org: text(keyOrg), User: text(keyUser)}}
	var more []account.Entry
	if json.Unmarshal([]byte(text(keyMore)), &more) == nil {
		list = append(list, more...)
	}
	names := func(o, u string) bool { return o == org && (user == "" || u == user) }
	return slices.ContainsFunc(list, func(e account.Entry) bool {
		return names(e.Org, e.User) || e.Via != nil && names(e.Via.Org, e.Via.User)
	})
}
