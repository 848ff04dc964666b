// Package web is what people see in a browser: the dashboard of an org, signing in and
// out, passwords, invitations, and the question whether a program may act for them.
//
// Pages are plain HTML and work without scripts; a strict policy lets nothing in but their
// own style sheet and scripts. A GET changes nothing, and forms of other sites are refused.
// The rules are those of the domain packages: a page calls the same services as REST.
package web

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/cache"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/proposal"
)

// Options are what the pages need.
type Options struct {
	Accounts  *account.Accounts
	OrgAdmin  *identity.OrgAdmin
	Proposals *proposal.Proposals
	Followups *followup.Followups
	Frictions *friction.Frictions
	Agents    *agent.Registry
	Tasks     *dispatch.Tasks
	Workers   *dispatch.Workers
	Sessions  Sessions
	Programs  *oauth.Service
	Providers []Provider // with which people sign in, too
	PublicURL string     // the address that browsers use, without a slash at its end
	Logger    *slog.Logger
	Now       func() time.Time
}

// Pages serves them.
type Pages struct {
	Options
	router   *httpx.Router
	sessions *scs.SessionManager
	forms    *http.CrossOriginProtection
	assets   assets
	pages    map[string]*template.Template // of an org, by name
	sign     *template.Template            // without an org

	byAddress, byPair, byAccount *httpx.Throttle
	known                        *cache.Cache[string, struct{}] // pairs of account and address that have signed in
}

// How often an address may try to sign in, an address may try one account, and an
// account may be tried from all addresses together. The last one refills faster than
// one address can drain it, so nobody keeps the owner out from a single address.
const (
	addressBurst = 20
	addressEvery = 5 * time.Second
	pairBurst    = 10
	pairEvery    = 15 * time.Second
	accountBurst = 100
	accountEvery = 5 * time.Second

	maxForm = 16 << 10
)

// New makes the pages without routes.
func New(rt *httpx.Router, o Options) (*Pages, error) {
	files, err := loadAssets()
	if err != nil {
		return nil, err
	}
	pages, sign, err := parseTemplates(files, o.Now)
	if err != nil {
		return nil, err
	}
	p := &Pages{
		Options: o, router: rt, forms: http.NewCrossOriginProtection(), sessions: newSessions(o),
		assets: files, pages: pages, sign: sign,
		byAddress: httpx.NewThrottle(addressEvery, addressBurst, o.Now),
		byPair:    httpx.NewThrottle(pairEvery, pairBurst, o.Now),
		byAccount: httpx.NewThrottle(accountEvery, accountBurst, o.Now),
		known:     cache.New(cache.Options[string, struct{}]{Max: maxPairs, Shards: 1}),
	}
	p.sessions.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) { p.failed(w, r, err) }
	p.forms.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.Problem(w, r, http.StatusForbidden, "This form was sent from another site, so nothing was done.")
	}))
	// A proxy may have changed the name that the browser sees.
	return p, p.forms.AddTrustedOrigin(o.PublicURL)
}

// Mount adds the routes.
func (p *Pages) Mount() {
	p.router.Area(httpx.Area{Secret: true}, "/join/", "/setup/")
	for pattern, h := range map[string]http.HandlerFunc{
		"GET /login":              p.loginPage,
		"POST /login":             p.login,
		"POST /logout":            p.logout,
		"POST /logout/everywhere": p.logoutEverywhere,
		"GET /setup/{token}":      p.setupPage,
		"POST /setup/{token}":     p.setup,
		"GET /join/{token}":       p.joinPage,
		"POST /join/{token}":      p.join,
	} {
		p.router.HandlePublic(pattern, p.Wrap(h))
	}
	p.mountSSO()
	p.mountAccount()
	p.router.ShowErrors(p.Problem)
	p.router.HandlePublic("GET "+staticPath, p.assets)
	p.router.HandlePublic("GET /{$}", p.Wrap(http.HandlerFunc(p.start)))
	p.orgPages(map[string]handler{"GET ": (*visit).orgStart})
	p.mountFirstSteps()
	p.mountProposals()
	p.mountProposal()
	p.mountFollowups()
	p.mountAgents()
	p.mountKeys()
	p.mountClients()
	p.mountMembers()
	p.mountAudit()
	p.mountSettings()
}

// Wrap gives a handler the session, and refuses forms of other sites.
func (p *Pages) Wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := httpx.CheckLength(r, maxForm); err != nil {
			httpx.WriteError(w, r, err)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		w.Header().Set("Cache-Control", "no-store")
		r = r.WithContext(context.WithValue(r.Context(), loadedKey{}, new(string)))
		p.forms.Handler(p.sessions.LoadAndSave(h)).ServeHTTP(w, r)
	})
}

// view is what a page shows.
type view struct {
	Title   string
	Problem string
	Wait    int // seconds until another try makes sense
	Done    string
	Member  *identity.Member
	Action  string // where the form goes
	Next    string // where to go after signing in
	Org     string
	User    string
	Ask     *question
	Text    string

	Providers []ProviderName // to sign in with
	AnyOrg    string         // where those of all orgs are offered
	Password  bool           // the user has one

	Fields []keptField // of a form that was sent by nobody
}

// keptField is a field of a form that could not be carried out.
type keptField struct {
	Name, Value string
	Hidden      bool
}

// show renders a page. To is where its form may lead beside this site.
func (p *Pages) show(w http.ResponseWriter, r *http.Request, status int, name string, v view, to string) {
	var page bytes.Buffer
	if err := p.sign.ExecuteTemplate(&page, name, v); err != nil {
		p.Logger.ErrorContext(r.Context(), "a page cannot be rendered", "page", name, "error", err)
		http.Error(w, "Something went wrong here.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	pageHeaders(h, to)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // the browser went away
}

// Problem shows that something did not work.
func (p *Pages) Problem(w http.ResponseWriter, r *http.Request, status int, message string) {
	p.show(w, r, status, "problem", view{Title: "That did not work", Text: message}, "")
}

// failed shows an error: in its own words if they are meant for people.
func (p *Pages) failed(w http.ResponseWriter, r *http.Request, err error) {
	e := errs.As(err)
	retryAfter(w.Header(), err)
	switch status := httpx.StatusOf(e.Kind); {
	case r.Context().Err() != nil && errors.Is(err, r.Context().Err()):
		return // the browser went away while it waited
	case e.Kind == errs.Unavailable:
		if !errors.Is(err, errBusy) { // which is told to many, and nothing is broken
			p.Logger.WarnContext(r.Context(), "a page is not available", "error", err)
		}
		p.Problem(w, r, status, sentence(err))
		return
	case status < http.StatusInternalServerError:
		p.Problem(w, r, status, sentence(err))
		return
	}
	p.Logger.ErrorContext(r.Context(), "a page failed", "error", err)
	p.Problem(w, r, http.StatusInternalServerError, "Something went wrong here. Try again in a moment.")
}

// sentence is an error's message as people write it.
func sentence(err error) string {
	msg := errs.As(err).Message
	if msg == "" {
		return "That did not work."
	}
	return strings.ToUpper(msg[:1]) + msg[1:] + "."
}

// question is a Question as a page shows it.
type question struct {
	Client, Host, Only string
	By                 string // the admin who registered it
	At                 string // the host of the document that describes it
	Local              bool   // the answer goes to the person's own machine
	BuiltIn            bool
	Answer             string
	Rights             []scopeWords
	Agents             []string
}

// Consent asks whether a program may act for the person who is signed in.
func (p *Pages) Consent(w http.ResponseWriter, r *http.Request, q oauth.Question) {
	ask := &question{Client: q.Client.Name, At: oauth.DocumentHost(q.Client.ID), By: q.Client.CreatedBy, BuiltIn: q.Client.BuiltIn, Only: q.Audience, Answer: q.Answer}
	may := inWords(q.Scopes)
	ask.Rights, ask.Agents = may.Rights, may.Agents
	to := ""
	if u, err := url.Parse(q.RedirectURI); err == nil {
		// Browsers apply the policy to where the answer is forwarded to, as well. Hosts of
		// an app's own scheme are not hosts to them.
		if u.Scheme == "https" || u.Scheme == "http" {
			ask.Host, ask.Local, to = u.Host, u.Scheme == "http", " "+u.Scheme+"://"+u.Host
		} else {
			ask.Host, to = strings.TrimSuffix(u.Scheme+"://"+u.Host, "//"), " "+u.Scheme+":"
		}
	}
	if strings.ContainsAny(to, ";,'\"") {
		to = ""
	}
	status := http.StatusOK
	if q.Problem != "" {
		status = http.StatusUnprocessableEntity
	}
	p.show(w, r, status, "consent", view{Title: "Allow access?", Member: &q.Member, Ask: ask, Problem: q.Problem}, to)
}
