package web

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// mountAccount adds the pages of the user's own account. Their paths have no org; the query
// parameter "org" selects the membership.
func (p *Pages) mountAccount() {
	for pattern, h := range map[string]handler{
		"GET /account":           (*visit).accountPage,
		"POST /account/password": (*visit).changePassword,
		"POST " + endProgram:     (*visit).endProgram,
		"POST " + ownKeysPath:    (*visit).createOwnKey,
		"POST " + endOwnKey:      (*visit).endOwnKey,
		"POST " + newOwnKey:      (*visit).rotateOwnKey,
		"POST /account/orgs":     (*visit).linkMembership,
		"POST /account/unlink":   (*visit).unlinkMembership,
	} {
		p.router.HandlePeople(pattern, p.ownVisitor, p.refuse, p.serve(h))
	}
	p.router.HandlePublic("POST /join/{token}/linked", p.Wrap(http.HandlerFunc(p.joinLinked)))
}

// ownVisitor returns the signed-in member: of the org in the query, by default of the first
// membership of the session.
func (p *Pages) ownVisitor(r *http.Request) (*identity.Caller, *http.Request, error) {
	if org := r.URL.Query().Get("org"); org != "" {
		r.SetPathValue("org", org)
		return p.visitor(r)
	}
	return p.visitorAs(r, p.SignedIn)
}

// accountPath returns the account page of the membership of this visit.
func (v *visit) accountPath() string { return accountPath + v.accountQuery() }

// accountQuery selects the membership of this visit. Forms act on what the page showed, even if
// the first membership of the session has changed since.
func (v *visit) accountQuery() string {
	return "?" + url.Values{"org": {v.member.Org}}.Encode()
}

// accountView is the account page.
type accountView struct {
	Query       string // selects the membership, in the URL of all forms
	Sent        string // path of the form that was sent, if any
	Password    bool   // the member has a password
	Connections []connection
	Programs    []program
	More        bool // there are more programs than shown
	Keys        ownKeys
	Memberships []orgMembership
	Elsewhere   []ProviderName // identity providers of other orgs
	LinkOrg     string         // values of the form to add an org
	LinkUser    string
}

// Linked reports whether the membership of the page is linked with others.
func (a *accountView) Linked() bool {
	return slices.ContainsFunc(a.Memberships, func(m orgMembership) bool { return m.Linked })
}

// In returns the errors of the form with the given path. The page has several forms with the same
// field names.
func (a *accountView) In(path string, e formErrors) formErrors {
	if a.Sent != path {
		return formErrors{}
	}
	return e
}

func (v *visit) accountPage() error { return v.showAccount(nil, nil) }

// showAccount shows the page. edit adds the values and results of a form.
func (v *visit) showAccount(edit func(*accountView), problem error) error {
	view := &accountView{Query: v.accountQuery()}
	if v.r.Method == http.MethodPost {
		view.Sent = v.r.URL.Path
	}
	var err error
	if view.Connections, view.Password, err = v.connections(); err != nil {
		return err
	}
	if view.Programs, view.More, err = v.programs(); err != nil {
		return err
	}
	if view.Keys, err = v.findOwnKeys(); err != nil {
		return err
	}
	if view.Memberships, err = v.memberships(); err != nil {
		return err
	}
	view.Elsewhere = slices.DeleteFunc(v.providersOf(""), func(op ProviderName) bool {
		return slices.ContainsFunc(view.Memberships, func(m orgMembership) bool { return m.Org == op.Org })
	})
	if edit != nil {
		edit(view)
	}
	v.secret = true // personal data must not be stored in caches
	return renderForm(v, http.StatusOK, "account", "Your account", view, problem)
}

// changePassword changes the password, and ends all other sessions of the account.
func (v *visit) changePassword() error {
	m := v.member
	var signed account.Signed
	err := same(v.r)
	if err == nil {
		err = v.guess(v.r, m.Org, m.ID, func() (wrong bool, err error) {
			signed, err = v.Accounts.ChangePassword(v.r.Context(), m.Principal, v.r.PostFormValue("old"),
				v.r.PostFormValue("password"))
			return errs.As(err).Code == account.WrongPassword, err
		})
	}
	if err == nil {
		err = v.signIn(v.r.Context(), signed)
	}
	if err != nil {
		return v.showAccount(nil, err)
	}
	return v.done(v.accountPath(), "The password was changed, and all other sessions were ended.")
}
