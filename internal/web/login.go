package web

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
)

func (p *Pages) loginPage(w http.ResponseWriter, r *http.Request) {
	v := view{Title: "Sign in", Next: r.URL.Query().Get("next"), Org: "main", Providers: p.providersOf("")}
	if m, err := p.SignedIn(r); err == nil && m != nil {
		http.Redirect(w, r, local(v.Next), http.StatusSeeOther)
		return
	}
	p.show(w, r, http.StatusOK, "login", v, "")
}

// login takes org, user and password. Each attempt costs a turn of the address, and one
// of the account (see guess).
func (p *Pages) login(w http.ResponseWriter, r *http.Request) {
	v := view{
		Title: "Sign in", Next: r.PostFormValue("next"),
		Org: strings.TrimSpace(r.PostFormValue("org")), User: strings.TrimSpace(r.PostFormValue("user")),
		Providers: p.providersOf(""),
	}
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

// guess runs a check of somebody's password. It takes a turn of the account before the
// check, so that guesses at the same time are counted, and gives it back unless the
// password was wrong, so that the owner is not kept out by knowing it. There are turns
// for each address that tries the account, and for all of them together: one address
// that uses up its own leaves the owner's alone. An address from which the account has
// signed in before does without the common ones, so that not even many others keep the
// owner out.
func (p *Pages) guess(r *http.Request, org, user string, check func() (wrong bool, err error)) error {
	name := strings.ToLower(org + "/" + user)
	pair := name + " " + p.router.ClientAddr(r).String()
	if err := p.byPair.Take(pair); err != nil {
		return err
	}
	known := p.known.has(pair)
	if !known {
		if err := p.byAccount.Take(name); err != nil {
			p.byPair.GiveBack(pair)
			return err
		}
	}
	wrong, err := check()
	if err == nil {
		p.known.add(pair)
	}
	if !wrong {
		p.byPair.GiveBack(pair)
		if !known {
			p.byAccount.GiveBack(name)
		}
	}
	return err
}

// pairs remembers from which addresses accounts have signed in, on this node since its
// start. Past a bound it forgets all: that only costs those pairs their privilege.
type pairs struct {
	mu  sync.Mutex
	set map[string]struct{}
}

const maxPairs = 20_000

func (k *pairs) has(pair string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.set[pair]
	return ok
}

func (k *pairs) add(pair string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.set == nil || len(k.set) >= maxPairs {
		k.set = map[string]struct{}{}
	}
	k.set[pair] = struct{}{}
}

// again shows a form once more, with what was wrong.
func (p *Pages) again(w http.ResponseWriter, r *http.Request, page string, v view, err error) {
	status := httpx.StatusOf(errs.KindOf(err))
	if status >= http.StatusInternalServerError {
		p.failed(w, r, err)
		return
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "15")
	}
	v.Problem = sentence(err)
	p.show(w, r, status, page, v, "")
}

// must returns who is signed in, or leads to the page to sign in on.
func (p *Pages) must(w http.ResponseWriter, r *http.Request) *identity.Member {
	m, err := p.SignedIn(r)
	if err != nil {
		p.failed(w, r, err)
		return nil
	}
	if m == nil {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
	}
	return m
}

// accountView is the page of somebody's account.
func (p *Pages) accountView(ctx context.Context, m *identity.Member) (view, error) {
	v := view{Title: "Your account", Member: m}
	if err := p.addWays(ctx, &v); err != nil {
		return v, err
	}
	return v, p.addPrograms(ctx, &v)
}

// ownAccount is accountView for whoever is signed in; ok is false if it has answered.
func (p *Pages) ownAccount(w http.ResponseWriter, r *http.Request) (v view, ok bool) {
	m := p.must(w, r)
	if m == nil {
		return view{}, false
	}
	v, err := p.accountView(r.Context(), m)
	if err != nil {
		p.failed(w, r, err)
	}
	return v, err == nil
}

func (p *Pages) accountPage(w http.ResponseWriter, r *http.Request) {
	if v, ok := p.ownAccount(w, r); ok {
		p.show(w, r, http.StatusOK, "account", v, "")
	}
}

func (p *Pages) changePassword(w http.ResponseWriter, r *http.Request) {
	v, ok := p.ownAccount(w, r)
	if !ok {
		return
	}
	m := v.Member
	var signed account.Signed
	err := same(r)
	if err == nil {
		err = p.guess(r, m.Org, m.ID, func() (wrong bool, err error) {
			signed, err = p.Accounts.ChangePassword(r.Context(), m.Principal, r.PostFormValue("old"), r.PostFormValue("password"))
			return errs.As(err).Code == account.WrongPassword, err
		})
	}
	if err == nil {
		err = p.signIn(r.Context(), signed)
	}
	if err != nil {
		p.again(w, r, "account", v, err)
		return
	}
	v.Done = "The password was changed, and all other sessions were ended."
	p.show(w, r, http.StatusOK, "account", v, "")
}

// same refuses two entries of a password that differ.
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
	p.show(w, r, http.StatusOK, "setup", view{Title: "Choose a password", Org: l.Org, User: l.User, Action: r.URL.Path, Providers: p.providersOf(l.Org)}, "")
}

func (p *Pages) setup(w http.ResponseWriter, r *http.Request) {
	token := r.PathValue("token")
	l, err := p.Accounts.Link(r.Context(), token)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	v := view{Title: "Choose a password", Org: l.Org, User: l.User, Action: r.URL.Path, Providers: p.providersOf(l.Org)}
	var signed account.Signed
	if err = same(r); err == nil {
		signed, err = p.Accounts.UseLink(r.Context(), token, r.PostFormValue("password"))
	}
	p.enter(w, r, "setup", v, signed, err)
}

func (p *Pages) joinPage(w http.ResponseWriter, r *http.Request) {
	i, err := p.Manager.Invitation(r.Context(), r.PathValue("token"))
	if err != nil {
		p.failed(w, r, err)
		return
	}
	p.show(w, r, http.StatusOK, "join", view{
		Title: "Join " + i.Org, Org: i.Org, User: i.User, Text: i.CreatedBy, Action: r.URL.Path, Providers: p.providersOf(i.Org),
	}, "")
}

func (p *Pages) join(w http.ResponseWriter, r *http.Request) {
	token, password := r.PathValue("token"), r.PostFormValue("password")
	i, err := p.Manager.Invitation(r.Context(), token)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	v := view{
		Title: "Join " + i.Org, Org: i.Org, User: i.User, Text: i.CreatedBy, Action: r.URL.Path, Providers: p.providersOf(i.Org),
	}
	var signed account.Signed
	if err = same(r); err == nil {
		// Before the invitation is used up: it works once.
		err = account.CheckPassword(identity.Principal{Org: i.Org, Kind: identity.User, ID: i.User}, password)
	}
	if err == nil {
		var m identity.Member
		if m, err = p.Manager.Accept(r.Context(), token); err == nil {
			signed, err = p.Accounts.SetPassword(r.Context(), m.Principal, password)
		}
	}
	p.enter(w, r, "join", v, signed, err)
}

// enter signs somebody in who has just set a password, or shows the form again.
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
