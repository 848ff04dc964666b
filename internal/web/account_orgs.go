package web

import (
	"net/http"
	"slices"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// orgMembership is a membership of the user: in this session, in the account, or in both.
type orgMembership struct {
	identity.Member
	Here   bool // the page shows this membership
	Open   bool // the session is signed in to it
	Linked bool // one sign-in opens all linked memberships
}

// memberships returns the memberships of the session, and those linked with the membership of this
// visit, so that the page lists everything that can open the account.
func (v *visit) memberships() ([]orgMembership, error) {
	found, err := v.Memberships(v.r)
	if err != nil {
		return nil, err
	}
	linked, err := v.linked()
	if err != nil {
		return nil, err
	}
	var list []orgMembership
	for i := range found {
		m := orgMembership{Member: found[i], Here: found[i].Org == v.member.Org, Open: true}
		at := slices.IndexFunc(linked, func(l identity.Member) bool { return l.Principal == m.Principal })
		if m.Linked = at >= 0; m.Linked {
			linked = slices.Delete(linked, at, at+1)
		}
		list = append(list, m)
	}
	for i := range linked {
		list = append(list, orgMembership{Member: linked[i], Linked: true})
	}
	return list, nil
}

// linked returns the memberships of the account of this visit, itself included. The result is
// empty if it is not linked.
func (v *visit) linked() ([]identity.Member, error) {
	list, err := v.Accounts.Memberships(v.r.Context(), v.member.Principal)
	if err != nil || len(list) < 2 {
		return nil, err
	}
	return list, nil
}

// linkMembership signs in to another org in the same session, and links both memberships. It also
// asks for the password of this membership, because a linked membership can sign in to it.
func (v *visit) linkMembership() error {
	org, user := v.value("org"), v.value("user")
	linked := false
	err := v.confirmWith("confirm", v.r.PostFormValue("confirm"), "is needed: one sign-in will open both")
	if err == nil {
		linked, err = v.LinkMembership(v.r, v.member, org, user, v.r.PostFormValue("password"))
		if errs.KindOf(err) == errs.Unauthenticated { // at the other org
			err = errs.New(errs.Invalid, "account.bad_login", "%s", errs.As(err).Message)
		}
	}
	if err != nil {
		return v.showAccount(func(view *accountView) { view.LinkOrg, view.LinkUser = org, user }, err)
	}
	said := "You are signed in to " + org + ", too. From now on one sign-in opens both."
	if !linked {
		said = "You are signed in to " + org + ", too, for this session. Orgs with an identity provider are not linked."
	}
	return v.done(v.accountPath()+"#orgs", said)
}

// unlinkMembership removes a membership from the account: the one in the form, by default the one
// of this visit.
func (v *visit) unlinkMembership() error {
	m, to := v.member, accountPath // the session may no longer have it
	if org := v.value("membership"); org != "" && org != m.Org {
		list, err := v.linked()
		if err != nil {
			return err
		}
		at := slices.IndexFunc(list, func(l identity.Member) bool { return l.Org == org })
		if at < 0 {
			return errs.ErrNotFound
		}
		m, to = &list[at], v.accountPath()
	}
	if err := v.UnlinkMembership(v.r, m); err != nil {
		return v.showAccount(nil, err)
	}
	return v.done(to, m.Org+" is no longer linked with your other orgs.")
}

// joinLinked accepts an invitation with the account that is signed in.
func (p *Pages) joinLinked(w http.ResponseWriter, r *http.Request) {
	m, err := p.JoinLinked(r, r.PathValue("token"))
	if err != nil {
		p.failed(w, r, err)
		return
	}
	http.Redirect(w, r, "/orgs/"+m.Org, http.StatusSeeOther)
}

// single reports whether the session has only one membership.
func (v *visit) single() bool { return len(v.entries(v.r.Context())) < 2 }
