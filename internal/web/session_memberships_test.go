package web_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/web"
)

// town has the pages on a store with ada in acme and lovelace in beta, and routes that expose the
// methods of the session.
type town struct {
	*testing.T
	http.Handler
	store    *store.Store
	accounts *account.Accounts
	orgAdmin *identity.OrgAdmin
	operator *identity.Operator
	now      time.Time
	cookie   string
	provider *vouching
}

func newTown(t *testing.T, st *store.Store) *town {
	t.Helper()
	w := &town{
		T: t, store: st, provider: &vouching{who: account.Arrival{Org: "acme", Issuer: "https://id.example"}},
		now: time.Now().UTC().Truncate(time.Second),
	}
	now := func() time.Time { return w.now }
	w.operator = identity.NewOperator(st.IdentityStores(), now, orgtest.NewID)
	w.accounts = account.New(st.Accounts(), st.Audit(), &counter{}, now)
	w.orgAdmin = identity.NewOrgAdmin(identity.OrgAdminOptions{
		Stores: st.IdentityStores(), Agents: agent.NewDirectory(st.Agents(), now), Now: now, NewID: orgtest.NewID,
	})
	for _, p := range []identity.Principal{w.user("acme", "ada"), w.user("beta", "lovelace")} {
		if _, err := w.operator.CreateOrg(t.Context(), p.Org, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := w.operator.CreateMember(t.Context(), p, "", true); err != nil {
			t.Fatal(err)
		}
		orgtest.SetPassword(t, st, w.accounts, p, rightPassword+" "+p.Org)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	router := httpx.NewRouter(httpx.Options{Logger: log})
	pages, err := web.New(router, web.Options{
		Accounts: w.accounts, OrgAdmin: w.orgAdmin, Sessions: st.Sessions(), PublicURL: "http://parley.test", Logger: log,
		Now:       now,
		Providers: []web.Provider{w.provider},
	})
	if err != nil {
		t.Fatal(err)
	}
	pages.Mount()
	router.AcceptSessions(pages)
	answer := func(rw http.ResponseWriter, v any, err error) {
		if err != nil {
			http.Error(rw, errs.As(err).Code, httpx.StatusOf(errs.KindOf(err)))
			return
		}
		if err := json.NewEncoder(rw).Encode(v); err != nil {
			t.Error(err)
		}
	}
	for pattern, h := range map[string]http.HandlerFunc{
		"GET /test/memberships": func(rw http.ResponseWriter, r *http.Request) {
			list, err := pages.Memberships(r)
			var refs []string
			for _, m := range list {
				refs = append(refs, m.Org+"/"+m.ID)
			}
			answer(rw, strings.Join(refs, " "), err)
		},
		"GET /test/in/{org}": func(rw http.ResponseWriter, r *http.Request) {
			m, err := pages.MemberIn(r, r.PathValue("org"))
			if m == nil {
				m = &identity.Member{}
			}
			answer(rw, m.Org+"/"+m.ID, err)
		},
		"POST /test/link/{org}": func(rw http.ResponseWriter, r *http.Request) {
			m, err := pages.MemberIn(r, r.PathValue("org"))
			if err != nil || m == nil {
				t.Errorf("got %v %v, want no error, m not nil", m, err)
				return
			}
			linked, err := pages.LinkMembership(r, m, r.PostFormValue("org"), r.PostFormValue("user"),
				r.PostFormValue("password"))
			answer(rw, linked, err)
		},
		"POST /test/unlink/{org}": func(rw http.ResponseWriter, r *http.Request) {
			m, err := pages.MemberIn(r, r.PathValue("org"))
			if err != nil || m == nil {
				t.Errorf("got %v %v, want no error, m not nil", m, err)
				return
			}
			answer(rw, "", pages.UnlinkMembership(r, m))
		},
		"POST /test/join/{token}": func(rw http.ResponseWriter, r *http.Request) {
			m, err := pages.JoinLinked(r, r.PathValue("token"))
			if m == nil {
				m = &identity.Member{}
			}
			answer(rw, m.Org+"/"+m.ID, err)
		},
		"POST /test/confirm/{org}": func(rw http.ResponseWriter, r *http.Request) {
			m, err := pages.MemberIn(r, r.PathValue("org"))
			if err != nil || m == nil {
				t.Errorf("got %v %v, want no error, m not nil", m, err)
				return
			}
			answer(rw, "", pages.Confirm(r, m, r.PostFormValue("password")))
		},
	} {
		router.HandlePublic(pattern, pages.Wrap(h))
	}
	router.HandleRoute("GET /api/v1/orgs/{org}/who", httpx.Route{Sessions: true},
		http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			c := httpx.CallerOf(r.Context())
			if c == nil {
				c = &identity.Caller{}
			}
			answer(rw, c.Org+"/"+c.ID+" "+c.Scopes.String(), nil)
		}))
	w.Handler = router
	return w
}

func (w *town) user(org, id string) identity.Principal {
	return identity.Principal{Org: org, Kind: identity.User, ID: id}
}

// do sends a form, or gets a page, with the session cookie.
func (w *town) do(path string, form url.Values) (int, string) {
	w.Helper()
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Cookie", w.cookie)
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	for _, c := range rec.Result().Cookies() {
		w.cookie = c.Name + "=" + c.Value
	}
	return rec.Code, strings.Trim(strings.TrimSpace(rec.Body.String()), `"`)
}

func (w *town) want(path string, form url.Values, status int, body string) {
	w.Helper()
	if code, got := w.do(path, form); code != status || got != body {
		w.Errorf("%s: %d %s; want %d %s", path, code, got, status, body)
	}
}

func (w *town) signIn(org, user string) {
	w.Helper()
	form := url.Values{"org": {org}, "user": {user}, "password": {rightPassword + " " + org}}
	if code, body := w.do("/login", form); code != http.StatusSeeOther {
		w.Fatal(code, body)
	}
}

func TestOneSessionInSeveralOrgs(t *testing.T) {
	t.Parallel()
	w := newTown(t, sqlite(t))
	w.signIn("acme", "ada")
	w.want("/test/in/beta", nil, 200, "/")
	w.want("/api/v1/orgs/beta/who", nil, 200, "acme/ada svc:tasks:read svc:tasks:write svc:a2a:write svc:admin:admin")

	lovelace := url.Values{"org": {"beta"}, "user": {"lovelace"}, "password": {"not the password"}}
	w.want("/test/link/acme", lovelace, 401, "account.bad_login")
	w.want("/test/memberships", nil, 200, "acme/ada")
	before := w.cookie
	lovelace.Set("password", rightPassword+" beta")
	w.want("/test/link/acme", lovelace, 200, "true")
	if w.cookie == before {
		t.Error("the session has more rights and the same token")
	}
	w.want("/test/memberships", nil, 200, "acme/ada beta/lovelace")
	// The org in the URL selects the membership.
	w.want("/test/in/beta", nil, 200, "beta/lovelace")
	w.want("/test/in/acme", nil, 200, "acme/ada")
	w.want("/test/in/other", nil, 200, "/")
	if _, body := w.do("/api/v1/orgs/beta/who", nil); !strings.HasPrefix(body, "beta/lovelace ") {
		t.Errorf("got %s, want beta/lovelace", body)
	}
	if _, body := w.do("/api/v1/orgs/acme/who", nil); !strings.HasPrefix(body, "acme/ada ") {
		t.Errorf("got %s, want acme/ada", body)
	}

	// The next session has both memberships, whichever signs in.
	w.cookie = ""
	w.signIn("beta", "lovelace")
	w.want("/test/memberships", nil, 200, "beta/lovelace acme/ada")

	// Removing a role affects one org only.
	other := w.user("acme", "eve")
	if _, err := w.operator.CreateMember(t.Context(), other, "", true); err != nil {
		t.Fatal(err)
	}
	if _, err := w.operator.SetAdmin(t.Context(), w.user("acme", "ada"), false); err != nil {
		t.Fatal(err)
	}
	w.want("/api/v1/orgs/acme/who", nil, 200, "acme/ada svc:tasks:read svc:tasks:write svc:a2a:write")
	if _, body := w.do("/api/v1/orgs/beta/who", nil); !strings.Contains(body, "svc:admin:admin") {
		t.Errorf("got %v, want containing svc:admin:admin", body)
	}

	// Signing out ends all memberships of the session.
	if code, _ := w.do("/logout", url.Values{}); code != http.StatusSeeOther {
		t.Errorf("got %v, want %v", code, http.StatusSeeOther)
	}
	w.want("/test/memberships", nil, 200, "")
	w.want("/api/v1/orgs/acme/who", nil, 200, "/ ")
}

func TestTheFirstMembershipMayEnd(t *testing.T) {
	t.Parallel()
	w := newTown(t, sqlite(t))
	w.signIn("acme", "ada")
	w.want("/test/link/acme", url.Values{"org": {"beta"}, "user": {"lovelace"}, "password": {rightPassword + " beta"}},
		200, "true")
	if err := w.accounts.LogoutEverywhere(t.Context(), w.user("acme", "ada")); err != nil {
		t.Fatal(err)
	}
	w.want("/test/in/acme", nil, 200, "/")
	w.want("/test/in/beta", nil, 200, "beta/lovelace") // it signed in with its own password
	w.want("/test/memberships", nil, 200, "beta/lovelace")
	if code, body := w.do("/api/v1/orgs/acme/who", nil); code != 200 || !strings.HasPrefix(body, "beta/lovelace ") {
		t.Errorf("got %d %s, want 200 beta/lovelace", code, body)
	}
	if err := w.accounts.LogoutEverywhere(t.Context(), w.user("beta", "lovelace")); err != nil {
		t.Fatal(err)
	}
	w.want("/test/memberships", nil, 200, "")
	w.want("/api/v1/orgs/beta/who", nil, 200, "/ ")
}

func TestJoiningAndLeavingALinkedOrg(t *testing.T) {
	t.Parallel()
	w := newTown(t, sqlite(t))
	admin := identity.Caller{Principal: w.user("acme", "ada"), Scopes: identity.AllScopes}
	access, err := identity.Authorize(&admin, "acme", identity.ManageMembers)
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := w.orgAdmin.Invite(t.Context(), access, identity.InvitationRequest{User: "countess"})
	if err != nil {
		t.Fatal(err)
	}
	w.want("/test/join/"+token, url.Values{}, 401, "auth.missing")
	w.signIn("beta", "lovelace")
	w.want("/test/join/"+token, url.Values{}, 200, "acme/countess")
	w.want("/test/join/"+token, url.Values{}, 404, "identity.bad_invitation")
	w.want("/test/memberships", nil, 200, "beta/lovelace acme/countess")
	w.want("/test/unlink/acme", url.Values{}, 409, "account.last_way")
	orgtest.SetPassword(t, w.store, w.accounts, w.user("acme", "countess"), "a password of its own")
	w.cookie = ""
	w.signIn("beta", "lovelace")
	w.want("/test/memberships", nil, 200, "beta/lovelace acme/countess")
	w.want("/test/unlink/acme", url.Values{}, 200, "")
	w.want("/test/memberships", nil, 200, "beta/lovelace")
	w.cookie = ""
	w.signIn("beta", "lovelace")
	w.want("/test/memberships", nil, 200, "beta/lovelace")
}

func TestGuessesOfALinkAreLimited(t *testing.T) {
	t.Parallel()
	w := newTown(t, sqlite(t))
	w.signIn("acme", "ada")
	limited := false
	for range 15 {
		code, _ := w.do("/test/link/acme", url.Values{
			"org": {"beta"}, "user": {"lovelace"},
			"password": {"not the password"},
		})
		limited = limited || code == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("fifteen guesses and no limit")
	}
}

func TestConfirmingWithThePassword(t *testing.T) {
	t.Parallel()
	w := newTown(t, sqlite(t))
	w.signIn("beta", "lovelace")
	password := func(s string) url.Values { return url.Values{"password": {s}} }
	w.want("/test/confirm/beta", password(rightPassword+" beta"), 200, "")
	w.want("/test/confirm/beta", password("not the password"), 422, "account.wrong_password")
	w.want("/test/confirm/beta", password(""), 422, "account.wrong_password")

	// A membership that another one opened is confirmed with the password of that one.
	access, err := identity.Authorize(&identity.Caller{Principal: w.user("acme", "ada"), Scopes: identity.AllScopes},
		"acme", identity.ManageMembers)
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := w.orgAdmin.Invite(t.Context(), access, identity.InvitationRequest{User: "countess"})
	if err != nil {
		t.Fatal(err)
	}
	w.want("/test/join/"+token, url.Values{}, 200, "acme/countess")
	w.now = w.now.Add(time.Hour)
	w.want("/test/confirm/acme", password("not the password"), 422, "account.wrong_password")
	w.want("/test/confirm/acme", password(rightPassword+" beta"), 200, "")

	// Guesses are limited, even if the right password is known.
	limited := false
	for range 15 {
		code, _ := w.do("/test/confirm/beta", password("not the password"))
		limited = limited || code == http.StatusTooManyRequests
	}
	if !limited {
		t.Error("fifteen guesses and no limit")
	}
}

// For users without a password, a recent sign-in counts as a confirmation.
func TestConfirmingWithoutAPassword(t *testing.T) {
	t.Parallel()
	w := newTown(t, sqlite(t))
	if _, err := w.operator.CreateMember(t.Context(), w.user("acme", "cy"), "", false); err != nil {
		t.Fatal(err)
	}
	w.signInWith(account.Arrival{Org: "acme", Issuer: "https://id.example", Subject: "s", Provider: "Acme", User: "cy"})
	w.want("/test/in/acme", nil, 200, "acme/cy")
	w.now = w.now.Add(10 * time.Minute)
	w.want("/test/confirm/acme", url.Values{}, 200, "")
	w.now = w.now.Add(time.Second)
	w.want("/test/confirm/acme", url.Values{}, 403, "account.sign_in_again")
}

// vouching is a provider with one user.
type vouching struct{ who account.Arrival }

func (v *vouching) Is() web.ProviderName {
	return web.ProviderName{Name: "acme", Title: "Acme", Issuer: v.who.Issuer, Org: v.who.Org}
}

func (v *vouching) Address(_ context.Context, _, state, _, _ string) (string, error) {
	return "https://id.example/authorize?state=" + state, nil
}

func (v *vouching) Arrived(context.Context, string, string, string, string, string) (account.Arrival, error) {
	return v.who, nil
}

// signInWith signs in with the provider.
func (w *town) signInWith(who account.Arrival, form ...string) {
	w.Helper()
	w.provider.who = who
	values := url.Values{}
	for _, f := range form {
		values.Set(f, "1")
	}
	code, body := w.do("/login/sso/acme", values)
	_, state, ok := strings.Cut(body, "authorize?state=")
	if code != http.StatusOK || !ok {
		w.Fatal(code, body)
	}
	state = state[:26]
	if code, body := w.do("/login/sso/acme/callback?code=c&state="+state, nil); code != http.StatusSeeOther {
		w.Fatal(code, body)
	}
}

// A provider speaks for its own org: its sign-in opens no other org, and can be added to an existing
// session.
func TestAProviderOpensItsOwnOrgOnly(t *testing.T) {
	t.Parallel()
	w := newTown(t, sqlite(t))
	if _, err := w.operator.CreateMember(t.Context(), w.user("acme", "cy"), "", false); err != nil {
		t.Fatal(err)
	}
	cy := account.Arrival{Org: "acme", Issuer: "https://id.example", Subject: "s", Provider: "Acme", User: "cy"}
	w.signInWith(cy)
	w.want("/test/memberships", nil, 200, "acme/cy")
	w.want("/test/link/acme", url.Values{"org": {"beta"}, "user": {"lovelace"}, "password": {rightPassword + " beta"}},
		200, "false")
	w.want("/test/memberships", nil, 200, "acme/cy beta/lovelace")
	w.cookie = ""
	w.signInWith(cy)
	w.want("/test/memberships", nil, 200, "acme/cy")
	w.cookie = ""
	w.signIn("beta", "lovelace")
	w.want("/test/memberships", nil, 200, "beta/lovelace")
	w.signInWith(cy, "beside")
	w.want("/test/memberships", nil, 200, "beta/lovelace acme/cy")
	w.signInWith(cy) // again, as a membership of the session; the others stay
	w.want("/test/memberships", nil, 200, "beta/lovelace acme/cy")
}
