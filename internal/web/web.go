// Package web serves the HTML pages: the dashboard of an org, sign-in and sign-out, passwords,
// invitations, and the OAuth consent page.
//
// Pages are plain HTML and work without scripts. A strict Content-Security-Policy allows only
// their own style sheet and scripts. A GET changes nothing, and cross-origin forms are rejected.
// The rules live in the domain packages; pages call the same services as package rest.
package web

import (
	"bytes"
	"context"
	"errors"
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
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/relay"
	"github.com/parley-dev/parley/internal/webhook"
)

// Options configures the pages.
type Options struct {
	Accounts  *account.Accounts
	OrgAdmin  *identity.OrgAdmin
	Proposals *proposal.Proposals
	Followups *followup.Followups
	Frictions *friction.Frictions
	Agents    *agent.Registry
	Catalogue *agent.Catalogue
	Relays    *relay.Service
	Tasks     *dispatch.Tasks
	Workers   *dispatch.Workers
	Events    *event.Service
	Webhooks  *webhook.Service
	Sessions  Sessions
	Programs  *oauth.Service
	Providers []Provider // additional identity providers
	PublicURL string     // base URL in browsers, without a trailing slash
	Logger    *slog.Logger
	Now       func() time.Time
}

// Pages serves the HTML pages.
type Pages struct {
	Options
	router    *httpx.Router
	sessions  *scs.SessionManager
	forms     *http.CrossOriginProtection
	assets    assets
	templates *templates

	byAddress, byPair, byAccount *httpx.Throttle
	known                        *cache.Cache[string, struct{}] // pairs of account and IP address that have signed in
}

// Rate limits of sign-in: per IP address, per IP address and account, and per account from all
// addresses. The last one refills faster than one address can drain it, so that a single address
// cannot lock out the owner.
const (
	addressBurst = 20
	addressEvery = 5 * time.Second
	pairBurst    = 10
	pairEvery    = 15 * time.Second
	accountBurst = 100
	accountEvery = 5 * time.Second

	maxForm = 16 << 10
)

// New creates the pages without registering routes.
func New(rt *httpx.Router, o Options) (*Pages, error) {
	files, err := loadAssets()
	if err != nil {
		return nil, err
	}
	pages, err := newTemplates(files, o.Now)
	if err != nil {
		return nil, err
	}
	p := &Pages{
		Options: o, router: rt, forms: http.NewCrossOriginProtection(), sessions: newSessions(o),
		assets: files, templates: pages,
		byAddress: httpx.NewThrottle(addressEvery, addressBurst, o.Now),
		byPair:    httpx.NewThrottle(pairEvery, pairBurst, o.Now),
		byAccount: httpx.NewThrottle(accountEvery, accountBurst, o.Now),
		known:     cache.New(cache.Options[string, struct{}]{Max: maxPairs, Shards: 1}),
	}
	p.sessions.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) { p.failed(w, r, err) }
	p.forms.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.Problem(w, r, http.StatusForbidden, "This form was sent from another site, so nothing was done.")
	}))
	// A proxy may have changed the host name that the browser uses.
	return p, p.forms.AddTrustedOrigin(o.PublicURL)
}

// Mount registers the routes.
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
	p.router.ShowErrors(p.noPage)
	p.router.HandlePublic("GET "+staticPath, p.assets)
	p.router.HandlePublic("GET /favicon.ico", http.HandlerFunc(p.assets.serveIcon))
	p.router.HandlePublic("GET /{$}", p.Wrap(http.HandlerFunc(p.start)))
	p.orgPages(map[string]handler{"GET ": (*visit).orgStart})
	p.mountFirstSteps()
	p.mountOverview()
	p.mountProposals()
	p.mountProposal()
	p.mountFollowups()
	p.mountAgents()
	p.mountCatalogue()
	p.mountTasks()
	p.mountKeys()
	p.mountClients()
	p.mountMembers()
	p.mountWebhooks()
	p.mountEvents()
	p.mountAudit()
	p.mountSettings()
	p.mountLive()
}

// Wrap loads the session for a handler, and rejects cross-origin forms.
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

// view is the data of a page without an org.
type view struct {
	Title   string
	Problem string
	Wait    int // seconds until the next attempt
	Done    string
	Member  *identity.Member
	Action  string // URL of the form
	Next    string // URL to open after sign-in
	Org     string
	User    string
	Ask     *question
	Text    string

	Providers []ProviderName // identity providers to sign in with
	AnyOrg    string         // URL of the form for all orgs
	Password  bool           // the user has a password

	Fields []keptField // of a form that was sent after the session ended
}

// keptField is a field of a form that was not carried out.
type keptField struct {
	Name, Value string
	Hidden      bool
}

// show renders a page. to is an additional target that the policy allows for its form.
func (p *Pages) show(w http.ResponseWriter, r *http.Request, status int, name string, v view, to string) {
	var page bytes.Buffer
	t, err := p.templates.sign()
	if err == nil {
		err = t.ExecuteTemplate(&page, name, v)
	}
	if err != nil {
		p.Logger.ErrorContext(r.Context(), "rendering a page failed", "page", name, "error", err)
		http.Error(w, "Something went wrong on the server.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	pageHeaders(h, to)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // an error means that the browser is gone
}

// Problem shows a page with an error message.
func (p *Pages) Problem(w http.ResponseWriter, r *http.Request, status int, message string) {
	p.show(w, r, status, "problem", view{Title: "That did not work", Text: message}, "")
}

// noPage shows that no route serves the request.
func (p *Pages) noPage(w http.ResponseWriter, r *http.Request, status int, message string) {
	if status != http.StatusNotFound {
		p.Problem(w, r, status, message)
		return
	}
	p.show(w, r, status, "problem", view{Title: "Page not found", Text: message}, "")
}

// failed shows an error page. Internal errors are shown without their message.
func (p *Pages) failed(w http.ResponseWriter, r *http.Request, err error) {
	if gone(w, r, err) {
		return
	}
	e := errs.As(err)
	retryAfter(w.Header(), err)
	switch status := httpx.StatusOf(e.Kind); {
	case e.Kind == errs.Unavailable:
		if !errors.Is(err, errBusy) { // expected under load, and not a fault
			p.Logger.WarnContext(r.Context(), "page unavailable", "error", err)
		}
		p.Problem(w, r, status, sentence(err))
		return
	case status < http.StatusInternalServerError:
		p.Problem(w, r, status, sentence(err))
		return
	}
	p.Logger.ErrorContext(r.Context(), "page failed", "error", err)
	p.Problem(w, r, http.StatusInternalServerError, "Something went wrong on the server. Try again in a moment.")
}

// sentence returns the message of an error as a sentence.
func sentence(err error) string {
	msg := errs.As(err).Message
	if msg == "" {
		return "That did not work."
	}
	return strings.ToUpper(msg[:1]) + msg[1:] + "."
}

// question is the view of an oauth.Question.
type question struct {
	Client, Host, Only string
	By                 string // admin who registered the client
	At                 string // host of the client's metadata document
	Local              bool   // the redirect goes to the user's own machine
	BuiltIn            bool
	Answer             string
	Rights             []scopeWords
	Agents             []string
}

// Consent asks the signed-in user whether a client may act on the user's behalf.
func (p *Pages) Consent(w http.ResponseWriter, r *http.Request, q oauth.Question) {
	ask := &question{
		Client: q.Client.Name, At: oauth.DocumentHost(q.Client.ID), By: q.Client.CreatedBy, BuiltIn: q.Client.BuiltIn,
		Only: q.Audience, Answer: q.Answer,
	}
	may := inWords(q.Scopes)
	ask.Rights, ask.Agents = may.Rights, may.Agents
	to := ""
	if u, err := url.Parse(q.RedirectURI); err == nil {
		// Browsers also apply the form-action policy to the redirect. They do not accept hosts of
		// custom schemes there.
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
