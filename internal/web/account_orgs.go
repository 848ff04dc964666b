package web

import (
	"net/http"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// orgMembership is a membership of the person, in this session.
type orgMembership struct {
	identity.Member
	Here bool // the page is about it
}

// memberships are those of the person that the session is signed in to. Linked says whether the
// one of this visit is one account with others.
func (v *visit) memberships() (list []orgMembership, linked bool, err error) {
	found, err := v.Memberships(v.r)
	if err != nil {
		return nil, false, err
	}
	for i := range found {
		list = append(list, orgMembership{found[i], found[i].Org == v.member.Org})
	}
	account, err := v.Accounts.Memberships(v.r.Context(), v.member.Principal)
	return list, len(account) > 1, err
}

// linkMembership signs in to another org beside this one, and makes both one account.
func (v *visit) linkMembership() error {
	org, user := v.value("org"), v.value("user")
	linked, err := v.LinkMembership(v.r, v.member, org, user, v.r.PostFormValue("password"))
	if errs.KindOf(err) == errs.Unauthenticated { // there, not here
		err = errs.New(errs.Invalid, "account.bad_login", "%s", errs.As(err).Message)
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

// unlinkMembership takes this membership out of its account.
func (v *visit) unlinkMembership() error {
	if err := v.UnlinkMembership(v.r, v.member); err != nil {
		return v.showAccount(nil, err)
	}
	return v.done(accountPath, v.member.Org+" is no longer linked with your other orgs.")
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

// single reports whether the session has one membership only.
func (v *visit) single() bool { return len(v.entries(v.r.Context())) < 2 }
