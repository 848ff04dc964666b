package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/text"
)

// Provider is an external identity provider.
type Provider interface {
	Is() ProviderName
	// Address returns the URL to sign in. The provider redirects the browser to callback.
	Address(ctx context.Context, callback, state, nonce, verifier string) (string, error)
	// Arrived redeems the code of a callback and returns the user. issuer is the issuer in the
	// callback.
	Arrived(ctx context.Context, callback, code, nonce, verifier, issuer string) (account.Arrival, error)
}

// ProviderName names a provider.
type ProviderName struct {
	Name   string // in URLs
	Title  string // on pages
	Issuer string
	Org    string // org whose users sign in with it
}

// errand is the state of a pending sign-in at a provider. The session stores it until the callback.
// It contains only the hash of an invitation or a link.
type errand struct {
	State, Nonce, Verifier string
	Proof                  account.Proof
	Next                   string
	Until                  int64  // unix seconds
	Beside                 string // "org/user" to stay signed in; if empty, the sign-in replaces the session
}

// waitsFor reports whether the callback belongs to this errand.
func (e *errand) waitsFor(state string, now time.Time) bool {
	return e.State != "" && subtle.ConstantTimeCompare([]byte(e.State), []byte(state)) == 1 && now.Unix() < e.Until
}

const (
	errandLifetime = 10 * time.Minute
	keyErrand      = "sso." // followed by the provider's name, so that callbacks cannot be mixed up
	maxSaid        = 300    // characters of a provider's error message
)

func (p *Pages) mountSSO() {
	for pattern, h := range map[string]func(http.ResponseWriter, *http.Request, Provider){
		"POST /login/sso/{provider}":              p.ssoLogin,
		"GET /login/sso/{provider}/callback":      p.ssoCallback,
		"POST /join/{token}/sso/{provider}":       p.ssoJoin,
		"POST /setup/{token}/sso/{provider}":      p.ssoSetup,
		"POST /account/sso/{provider}":            p.ssoConnect,
		"POST /account/sso/{provider}/disconnect": p.ssoDisconnect,
	} {
		p.router.HandlePublic(pattern, p.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, op := range p.Providers {
				if op.Is().Name == r.PathValue("provider") {
					h(w, r, op)
					return
				}
			}
			p.Problem(w, r, http.StatusNotFound, "There is no such identity provider here.")
		})))
	}
}

// providersOf returns the providers of an org, or all providers if org is empty.
func (p *Pages) providersOf(org string) []ProviderName {
	var out []ProviderName
	for _, op := range p.Providers {
		if is := op.Is(); org == "" || is.Org == org {
			out = append(out, is)
		}
	}
	return out
}

func (p *Pages) callback(op Provider) string {
	return p.PublicURL + "/login/sso/" + op.Is().Name + "/callback"
}

// ssoLogin signs in. With the field "beside" it adds the membership to the session.
func (p *Pages) ssoLogin(w http.ResponseWriter, r *http.Request, op Provider) {
	beside := ""
	if r.PostFormValue("beside") != "" {
		m := p.must(w, r)
		if m == nil {
			return
		}
		beside = m.Org + "/" + m.ID
	}
	p.sendBeside(w, r, op, account.Proof{}, local(r.PostFormValue("next")), beside)
}

func (p *Pages) ssoJoin(w http.ResponseWriter, r *http.Request, op Provider) {
	token := r.PathValue("token")
	i, err := p.OrgAdmin.Invitation(r.Context(), token)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	if p.ofOrg(w, r, op, i.Org) {
		p.send(w, r, op, account.ProofOfInvitation(token), home)
	}
}

func (p *Pages) ssoSetup(w http.ResponseWriter, r *http.Request, op Provider) {
	token := r.PathValue("token")
	l, err := p.Accounts.Link(r.Context(), token)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	if p.ofOrg(w, r, op, l.Org) {
		p.send(w, r, op, account.ProofOfLink(token), home)
	}
}

func (p *Pages) ssoConnect(w http.ResponseWriter, r *http.Request, op Provider) {
	if m, page := p.mustIn(w, r, op.Is().Org); m != nil && p.ofOrg(w, r, op, m.Org) {
		p.send(w, r, op, account.Proof{User: m.ID}, page)
	}
}

// mustIn is must for the membership in an org, if the session has one there. It also returns the
// account page of that membership.
func (p *Pages) mustIn(w http.ResponseWriter, r *http.Request, org string) (m *identity.Member, page string) {
	m = p.must(w, r)
	if m == nil || m.Org == org {
		return m, accountPath
	}
	there, err := p.MemberIn(r, org)
	if err != nil {
		p.failed(w, r, err)
		return nil, ""
	}
	if there != nil {
		return there, accountPath + "?org=" + there.Org
	}
	return m, accountPath
}

// ofOrg rejects a provider of another org.
func (p *Pages) ofOrg(w http.ResponseWriter, r *http.Request, op Provider, org string) bool {
	if op.Is().Org != org {
		p.Problem(w, r, http.StatusNotFound, "There is no such identity provider here.")
		return false
	}
	return true
}

func (p *Pages) ssoDisconnect(w http.ResponseWriter, r *http.Request, op Provider) {
	m, page := p.mustIn(w, r, op.Is().Org)
	if m == nil || !p.ofOrg(w, r, op, m.Org) {
		return
	}
	if err := p.Accounts.Disconnect(r.Context(), m.Principal, op.Is().Issuer, op.Is().Title); err != nil {
		p.failed(w, r, err)
		return
	}
	http.Redirect(w, r, page, http.StatusSeeOther)
}

// send sends the browser to the provider. It is a page with a link and not a redirect: browsers
// apply the form-action policy to all redirects of a form, and the redirects of a provider are
// unknown.
func (p *Pages) send(w http.ResponseWriter, r *http.Request, op Provider, by account.Proof, next string) {
	p.sendBeside(w, r, op, by, next, "")
}

func (p *Pages) sendBeside(w http.ResponseWriter, r *http.Request, op Provider, by account.Proof, next, beside string) {
	if err := p.byAddress.Take(p.router.ClientAddr(r).String()); err != nil {
		p.failed(w, r, err)
		return
	}
	e := errand{
		State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text(), Proof: by, Next: next,
		Until: p.Now().Add(errandLifetime).Unix(), Beside: beside,
	}
	to, err := op.Address(r.Context(), p.callback(op), e.State, e.Nonce, e.Verifier)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	kept, err := json.Marshal(e)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	p.sessions.Put(r.Context(), keyErrand+op.Is().Name, string(kept))
	w.Header().Set("Refresh", "0;url="+to)
	p.show(w, r, http.StatusOK, "leave", view{Title: "On to " + op.Is().Title, Next: to, Text: op.Is().Title}, "")
}

var errNoErrand = errs.New(errs.Forbidden, "account.bad_state",
	"this sign-in was not started in this browser within the last ten minutes; start again")

// take returns the errand of the callback, once.
func (p *Pages) take(r *http.Request, op Provider) (errand, error) {
	var e errand
	key := keyErrand + op.Is().Name
	kept := p.sessions.GetString(r.Context(), key)
	if kept == "" || json.Unmarshal([]byte(kept), &e) != nil || !e.waitsFor(r.URL.Query().Get("state"), p.Now()) {
		return errand{}, errNoErrand // the errand stays: another site could have sent the browser here
	}
	p.sessions.Remove(r.Context(), key)
	return e, nil
}

// ssoCallback handles the redirect from the provider.
func (p *Pages) ssoCallback(w http.ResponseWriter, r *http.Request, op Provider) {
	// The sign-in took its rate limit token when it started. A failed one takes another.
	address := p.router.ClientAddr(r).String()
	err := p.byAddress.Check(address)
	var e errand
	if err == nil {
		if e, err = p.take(r, op); err != nil {
			_ = p.byAddress.Take(address) // checked above
		}
	}
	if err != nil {
		p.failed(w, r, err)
		return
	}
	q := r.URL.Query()
	if said := q.Get("error"); said != "" || q.Get("code") == "" {
		p.failed(w, r, errs.New(errs.Forbidden, "account.provider_refused", "%s did not sign you in%s",
			op.Is().Title, quote(said, q.Get("error_description"))))
		return
	}
	var stays *identity.Member
	if e.Proof.User != "" {
		// The user who wants to connect must still be signed in.
		if stays, _ = p.mustIn(w, r, op.Is().Org); stays == nil {
			return
		}
		if stays.ID != e.Proof.User || stays.Org != op.Is().Org {
			p.failed(w, r, errNoErrand)
			return
		}
	}
	who, err := op.Arrived(r.Context(), p.callback(op), q.Get("code"), e.Nonce, e.Verifier, q.Get("iss"))
	var signed account.Signed
	if err == nil {
		signed, err = p.Accounts.Arrive(r.Context(), who, e.Proof)
	}
	switch {
	case err != nil || stays != nil:
	case e.Beside != "":
		err = p.signInBeside(r, signed, e.Beside)
	default:
		err = p.signIn(r.Context(), signed)
	}
	if err != nil {
		_ = p.byAddress.Take(address)
		p.failed(w, r, err)
		return
	}
	http.Redirect(w, r, e.Next, http.StatusSeeOther)
}

// quote returns the error of a provider, shortened.
func quote(code, description string) string {
	if description == "" {
		description = code
	}
	if description == "" {
		return ""
	}
	if r := []rune(description); len(r) > maxSaid {
		description = string(r[:maxSaid]) + "…"
	}
	if description = text.CleanName(description); description == "" {
		return ""
	}
	return "; it says: " + description
}

// connection is a provider on the account page.
type connection struct {
	ProviderName
	Connected bool
	Label     string
}

// connections returns the org's providers with the member's connections. password reports whether the
// member has a password.
func (v *visit) connections() (list []connection, password bool, err error) {
	ways, err := v.Accounts.Ways(v.r.Context(), v.member.Principal)
	for _, op := range v.providersOf(v.member.Org) {
		c := connection{ProviderName: op}
		for _, i := range ways.Identities {
			if i.Issuer == op.Issuer {
				c.Connected, c.Label = true, i.Label
			}
		}
		list = append(list, c)
	}
	return list, ways.Password, err
}
