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

// Provider is another identity provider with which people sign in.
type Provider interface {
	Is() ProviderName
	// Address is where the person signs in, and is sent back to callback from.
	Address(ctx context.Context, callback, state, nonce, verifier string) (string, error)
	// Arrived returns who came back with a code. Issuer is what the answer names as its
	// sender.
	Arrived(ctx context.Context, callback, code, nonce, verifier, issuer string) (account.Arrival, error)
}

// ProviderName is how a provider is called.
type ProviderName struct {
	Name   string // in addresses
	Title  string // on pages
	Issuer string
	Org    string // whose people sign in with it
}

// errand is why somebody was sent to a provider. It waits in the session for the one
// answer that is meant for it; of an invitation or a link it has the hash only.
type errand struct {
	State, Nonce, Verifier string
	Proof                  account.Proof
	Next                   string
	Until                  int64  // unix seconds
	Beside                 string // "org/user" who stays signed in; empty: the sign-in replaces the session
}

// waitsFor reports whether an answer with this state is the one.
func (e *errand) waitsFor(state string, now time.Time) bool {
	return e.State != "" && subtle.ConstantTimeCompare([]byte(e.State), []byte(state)) == 1 && now.Unix() < e.Until
}

const (
	errandLifetime = 10 * time.Minute
	keyErrand      = "sso." // and the provider's name: an answer of one never serves another
	maxSaid        = 300    // characters of what a provider says
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

// providers are those of an org; all without one.
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

// ssoLogin signs in; with the field "beside" it adds the membership to the session.
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

// mustIn is must for the membership in an org, if the session has one there, and says which page
// of the account is about it.
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

// ofOrg refuses a provider of another org.
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

// send leads the person to the provider. It is a page that leads on, not a redirect:
// browsers hold all that a form is redirected to against the policy of its page, and
// where a provider itself leads on to cannot be known.
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
	"this answer belongs to no sign-in that was started in this browser within the last ten minutes; start again")

// take returns what the answer was waited for, once.
func (p *Pages) take(r *http.Request, op Provider) (errand, error) {
	var e errand
	key := keyErrand + op.Is().Name
	kept := p.sessions.GetString(r.Context(), key)
	if kept == "" || json.Unmarshal([]byte(kept), &e) != nil || !e.waitsFor(r.URL.Query().Get("state"), p.Now()) {
		return errand{}, errNoErrand // what waits goes on waiting: another site can send a browser here, too
	}
	p.sessions.Remove(r.Context(), key)
	return e, nil
}

// ssoCallback is where the provider sends the person back to.
func (p *Pages) ssoCallback(w http.ResponseWriter, r *http.Request, op Provider) {
	// An arrival had its turn when it left; one that fails costs another.
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
		p.failed(w, r, errs.New(errs.Forbidden, "account.provider_refused", "%s did not sign you in%s", op.Is().Title, quote(said, q.Get("error_description"))))
		return
	}
	var stays *identity.Member
	if e.Proof.User != "" {
		// Whoever wanted to be connected must still be the one who is signed in.
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

// quote shows what a provider said, as much of it as fits.
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

// connection is a provider as the account page shows it.
type connection struct {
	ProviderName
	Connected bool
	Label     string
}

// connections are the org's providers, with what the member signs in with. Password says
// whether the member has one.
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
