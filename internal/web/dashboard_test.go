package web_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/event"
	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/friction"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/proposal"
	"github.com/parley-dev/parley/internal/secret"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/web"
)

// dashboard has all pages and services on a real store. Tasks may push to any URL.
type dashboard struct {
	*orgtest.World
	handler   http.Handler
	accounts  *account.Accounts
	admin     *identity.OrgAdmin
	clients   *oauth.Service
	proposals *proposal.Proposals
	followups *followup.Followups
	frictions *friction.Frictions
	receiver  *receiver       // of webhooks
	keys      *secret.Keyring // without a key until a test makes one
	busy      atomic.Bool     // the search is busy
}

func newDashboard(tb testing.TB, edit ...func(*httpx.Options)) *dashboard {
	tb.Helper()
	w := orgtest.New(tb, func(o *dispatch.Options) { o.CheckPushURL = func(string) error { return nil } })
	d := &dashboard{
		World: w, accounts: account.New(w.Store.Accounts(), w.Store.Audit(), &counter{}, orgtest.Now),
		admin:   w.OrgAdmin(),
		clients: w.OAuth(),
		followups: followup.New(w.Store.Followups(), w.Store.Identity(), orgtest.Now, orgtest.NewID,
			messenger{w.Tasks.Tasks}),
		frictions: friction.New(w.Store.Friction(), orgtest.Now, orgtest.NewID, proposal.Check),
	}
	d.receiver = &receiver{}
	var err error
	if d.keys, err = secret.Find(filepath.Join(tb.TempDir(), "secret.key"), orgtest.Now); err != nil {
		tb.Fatal(err)
	}
	d.proposals = proposal.New(searchStore{w.Store.Proposals(), &d.busy}, orgtest.Now, orgtest.NewID)
	o := w.Router()
	o.Logger = slog.New(slog.NewTextHandler(w.Logs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for _, e := range edit {
		e(&o)
	}
	router := httpx.NewRouter(o)
	events := event.NewService(event.Options{
		Store: w.Store.Events(), Now: orgtest.Now, Stopping: w.Tasks.Stopping(), OnError: func(err error) { tb.Log(err) },
	})
	w.Store.OnEvents(events.Changed)
	pages, err := web.New(router, web.Options{
		Accounts: d.accounts, OrgAdmin: d.admin, Proposals: d.proposals, Followups: d.followups, Frictions: d.frictions,
		Agents: w.Agents, Catalogue: w.Catalogue, Relays: newRelays(w, d.keys), Tasks: w.Tasks.Tasks, Workers: w.Tasks.Workers, Sessions: w.Store.Sessions(), Programs: d.clients,
		Events:    events,
		Webhooks:  newWebhooks(w, d.receiver),
		PublicURL: "http://parley.test",
		Logger:    o.Logger, Now: orgtest.Now,
	})
	if err != nil {
		tb.Fatal(err)
	}
	pages.Mount()
	d.handler = router
	return d
}

// signIn creates a member and signs in.
func (d *dashboard) signIn(org, id, name string, admin bool) *http.Cookie {
	d.Helper()
	ctx, p := context.Background(), identity.Principal{Org: org, Kind: identity.User, ID: id}
	if _, err := d.Operator.CreateMember(ctx, p, name, admin); err != nil {
		d.Fatal(err)
	}
	orgtest.SetPassword(d, d.Store, d.accounts, p, rightPassword)
	res := d.visit(nil, http.MethodPost, "/login", url.Values{"org": {org}, "user": {id}, "password": {rightPassword}})
	if res.Code != http.StatusSeeOther {
		d.Fatalf("%s cannot sign in: %d %s", id, res.Code, res.Body)
	}
	return res.Result().Cookies()[0]
}

// visit sends a request with the cookie.
func (d *dashboard) visit(cookie *http.Cookie, method, path string, form url.Values) *httptest.ResponseRecorder {
	d.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, path, body)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if cookie != nil {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w
}

// searchStore is a store whose search can be busy.
type searchStore struct {
	store.Proposals
	busy *atomic.Bool
}

func (s searchStore) Similar(ctx context.Context, like proposal.Likeness) ([]proposal.Proposal, error) {
	if s.busy.Load() {
		return nil, errs.New(errs.Unavailable, "search.busy", "too many searches are running")
	}
	return s.Proposals.Similar(ctx, like)
}

// messenger sends follow-ups to agents, as the server does.
type messenger struct{ tasks *dispatch.Tasks }

func (e messenger) Send(ctx context.Context, a identity.Access, id string, f followup.Followup) (string, error) {
	call, err := e.tasks.Reach(ctx, a.Caller(), id)
	if err != nil {
		return "", err
	}
	sent, err := e.tasks.Send(ctx, call, dispatch.SendRequest{
		ID: orgtest.NewID(f.ID + "-"), FollowupID: f.ID, Replaces: f.TaskUID,
		Message: task.Message{Role: task.RoleUser, Parts: []task.Part{{Kind: task.TextPart, Text: f.Title}}},
	}, 0)
	return sent.UID, err
}

func (e messenger) Recall(ctx context.Context, a identity.Access, uid string) error {
	return e.tasks.Recall(ctx, a, uid)
}
