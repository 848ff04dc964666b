package web

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

func (p *Pages) loginPage(w http.ResponseWriter, r *http.Request) {
	v := p.loginView(r, r.URL.Query().Get("next"))
	if m, err := p.SignedIn(r); err == nil && m != nil {
		http.Redirect(w, r, local(v.Next), http.StatusSeeOther)
		return
	}
	p.show(w, r, http.StatusOK, "login", v, "")
}

// orgCookie remembers the org that the browser opened last, for the sign-in form.
const orgCookie = "parley_org"

// loginView is the sign-in form for the org of the query, of the page to open next, or of the last
// visit. If the org is known, only its identity providers are offered.
func (p *Pages) loginView(r *http.Request, next string) view {
	v := view{Title: "Sign in", Next: next, Org: r.URL.Query().Get("org")}
	v.AnyOrg = "/login?" + url.Values{"org": {""}, "next": {next}}.Encode()
	if _, asked := r.URL.Query()["org"]; !asked {
		v.Org = orgOf(next)
		if c, err := r.Cookie(orgCookie); err == nil && v.Org == "" {
			v.Org = c.Value
		}
	}
	if !identity.ValidOrgID(v.Org) {
		v.Org = ""
	}
	if v.Providers = p.providersOf(v.Org); v.Org == "" || len(v.Providers) == len(p.Providers) {
		v.AnyOrg = ""
	}
	if v.Org == "" && !r.URL.Query().Has("org") {
		v.Org = "main"
	}
	return v
}

// orgOf returns the org in a path, or "".
func orgOf(path string) string {
	rest, ok := strings.CutPrefix(path, "/orgs/")
	if !ok {
		return ""
	}
	org, _, _ := strings.Cut(rest, "/")
	org, _, _ = strings.Cut(org, "?")
	return org
}

// login signs in with org, user and password. Attempts are rate limited by IP address and by
// account; see guess.
func (p *Pages) login(w http.ResponseWriter, r *http.Request) {
	v := p.loginView(r, r.PostFormValue("next"))
	v.Org, v.User = strings.TrimSpace(r.PostFormValue("org")), strings.TrimSpace(r.PostFormValue("user"))
	err := p.byAddress.Take(p.router.ClientAddr(r).String())
	var signed account.Signed
	if err == nil {
		err = p.guess(r, v.Org, v.User, func() (wrong bool, err error) {
			signed, err = p.Accounts.Login(r.Context(), v.Org, v.User, r.PostFormValue("password"))
			return errs.KindOf(err) == errs.Unauthenticated, err
		})
	}
	if err == nil {
		err = p.signIn(r.Context(), signed)
	}
	if err != nil {
		p.again(w, r, "login", v, err)
		return
	}
	http.Redirect(w, r, local(v.Next), http.StatusSeeOther)
}

// guess runs a password check under the rate limits of the account. It takes a token before the
// check, so that concurrent guesses are counted, and returns it unless the password was wrong, so
// that correct sign-ins are free. There are limits per IP address and account, and per account
// from all addresses, so that one address that exhausts its own limit does not lock out the owner.
// An address from which the account has signed in before skips the second limit, so that even many
// other addresses cannot lock out the owner.
func (p *Pages) guess(r *http.Request, org, user string, check func() (wrong bool, err error)) error {
	name := strings.ToLower(org + "/" + user)
	pair := name + " " + p.router.ClientAddr(r).String()
	if err := p.byPair.Take(pair); err != nil {
		return err
	}
	_, known := p.known.Get(pair)
	if !known {
		if err := p.byAccount.Take(name); err != nil {
			p.byPair.GiveBack(pair)
			return err
		}
	}
	wrong, err := check()
	if err == nil {
		p.known.Set(pair, struct{}{})
	}
	if !wrong {
		p.byPair.GiveBack(pair)
		if !known {
			p.byAccount.GiveBack(name)
		}
	}
	return err
}

// maxPairs limits the remembered pairs of account and IP address, per node and since its start. A
// forgotten pair only loses its exemption.
const maxPairs = 20_000

// again shows a form again, with the error.
func (p *Pages) again(w http.ResponseWriter, r *http.Request, page string, v view, err error) {
	status := httpx.StatusOf(errs.KindOf(err))
	if status >= http.StatusInternalServerError {
		p.failed(w, r, err)
		return
	}
	if status == http.StatusTooManyRequests {
		v.Wait = max(1, int(math.Ceil(errs.As(err).RetryAfter.Seconds())))
		w.Header().Set("Retry-After", strconv.Itoa(v.Wait))
	}
	v.Problem = sentence(err)
	p.show(w, r, status, page, v, "")
}

// must returns the signed-in member, or redirects to the sign-in page.
func (p *Pages) must(w http.ResponseWriter, r *http.Request) *identity.Member {
	m, err := p.SignedIn(r)
	if err != nil {
		p.failed(w, r, err)
		return nil
	}
	if m == nil {
		p.SignIn(w, r, "")
	}
	return m
}

// same checks that the two entered passwords are equal.
func same(r *http.Request) error {
	if r.PostFormValue("password") != r.PostFormValue("repeat") {
		return errs.New(errs.Invalid, "account.passwords_differ", "the two passwords differ")
	}
	return nil
}

func (p *Pages) logout(w http.ResponseWriter, r *http.Request) { p.leave(w, r, p.Accounts.Logout) }

func (p *Pages) logoutEverywhere(w http.ResponseWriter, r *http.Request) {
	p.leave(w, r, p.Accounts.LogoutEverywhere)
}

func (p *Pages) setupPage(w http.ResponseWriter, r *http.Request) {
	l, err := p.Accounts.Link(r.Context(), r.PathValue("token"))
	if err != nil {
		p.failed(w, r, err)
		return
	}
	v, err := p.setupView(r, l)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	p.show(w, r, http.StatusOK, "setup", v, "")
}

// setupView is the page of a password link: to set the first password, or to replace a forgotten
// one.
func (p *Pages) setupView(r *http.Request, l account.Link) (view, error) {
	v := view{Title: "Choose a password", Org: l.Org, User: l.User, Action: r.URL.Path, Providers: p.providersOf(l.Org)}
	ways, err := p.Accounts.Ways(r.Context(), identity.Principal{Org: l.Org, Kind: identity.User, ID: l.User})
	if v.Password = ways.Password; v.Password {
		v.Title = "Choose a new password"
	}
	return v, err
}

func (p *Pages) setup(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	l, err := p.Accounts.Link(r.Context(), token)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	v, err := p.setupView(r, l)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	var signed account.Signed
	if err = same(r); err == nil {
		signed, err = p.Accounts.UseLink(r.Context(), token, r.PostFormValue("password"))
	}
	p.enter(w, r, "setup", v, signed, err)
}

func (p *Pages) joinPage(w http.ResponseWriter, r *http.Request) {
	i, err := p.OrgAdmin.Invitation(r.Context(), r.PathValue("token"))
	if err != nil {
		p.failed(w, r, err)
		return
	}
	p.show(w, r, http.StatusOK, "join", p.joinView(r, &i), "")
}

// joinView is the page of an invitation. A user who is signed in to other orgs with a password can
// join with that account.
func (p *Pages) joinView(r *http.Request, i *identity.Invitation) view {
	v := view{
		Title: "Join " + i.Org, Org: i.Org, User: i.User, Text: i.CreatedBy, Action: r.URL.Path,
		Providers: p.providersOf(i.Org),
	}
	list, err := p.Memberships(r)
	there := func(m identity.Member) bool { return m.Org == i.Org }
	if err != nil || len(list) == 0 || slices.ContainsFunc(list, there) {
		return v
	}
	v.Member = &list[0]
	return v
}

func (p *Pages) join(w http.ResponseWriter, r *http.Request) {
	token, password := r.PathValue("token"), r.PostFormValue("password")
	i, err := p.OrgAdmin.Invitation(r.Context(), token)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	v := p.joinView(r, &i)
	who := identity.Principal{Org: i.Org, Kind: identity.User, ID: i.User}
	var signed account.Signed
	var hash string
	if err = same(r); err == nil {
		// The invitation works once, and the browser may disconnect. So the slow hash comes first,
		// and the password is set together with accepting the invitation.
		hash, err = p.Accounts.HashPassword(r.Context(), who, password)
	}
	if err == nil {
		if _, err = p.OrgAdmin.Accept(r.Context(), token, hash); err == nil {
			signed, err = p.Accounts.Joined(r.Context(), who)
		}
	}
	p.enter(w, r, "join", v, signed, err)
}

// enter signs in a user who has just set a password, or shows the form again.
func (p *Pages) enter(w http.ResponseWriter, r *http.Request, page string, v view, signed account.Signed, err error) {
	if err == nil {
		err = p.signIn(r.Context(), signed)
	}
	if err != nil {
		p.again(w, r, page, v, err)
		return
	}
	http.Redirect(w, r, home, http.StatusSeeOther)
}
