package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

const (
	sessionLifetime = 7 * 24 * time.Hour
	sessionIdle     = 24 * time.Hour

	// The first membership of a session has keys of its own; the others are in keyMore.
	keyOrg, keyUser, keyGeneration, keyAt, keyBy = "org", "user", "generation", "at", "by"

	keyMore = "more"
)

func newSessions(o Options) *scs.SessionManager {
	m := scs.New()
	m.Store, m.HashTokenInStore = sessionStore{o.Sessions, o.Now}, true
	m.Lifetime, m.IdleTimeout = sessionLifetime, sessionIdle
	m.Cookie.Name, m.Cookie.SameSite, m.Cookie.HttpOnly, m.Cookie.Path = "parley_session", http.SameSiteLaxMode, true, "/"
	if strings.HasPrefix(o.PublicURL, "https://") {
		// The prefix keeps other hosts of the domain from setting the cookie.
		m.Cookie.Name, m.Cookie.Secure = "__Host-parley_session", true
	}
	return m
}

// Sessions keeps the data of sessions by the hashes of their tokens.
type Sessions interface {
	Get(ctx context.Context, token string, now time.Time) (data []byte, found bool, err error)
	// Create keeps a new session. Update changes one that exists, and does nothing if it
	// ended meanwhile: a request in flight must not bring it back.
	Create(ctx context.Context, token string, data []byte, expires time.Time) error
	Update(ctx context.Context, token string, data []byte, expires time.Time) error
	Delete(ctx context.Context, token string) error
}

// sessionStore shows our store to the session manager, which has one method to save
// new sessions and old ones. A session that the request has loaded is only updated:
// another request may have signed out meanwhile.
type sessionStore struct {
	store Sessions
	now   func() time.Time
}

// loadedKey is where the context of a request keeps which session it has loaded: a
// *string, the token as the store knows it.
type loadedKey struct{}

// FindCtx implements scs.CtxStore.
func (s sessionStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	data, found, err := s.store.Get(ctx, token, s.now())
	if loaded, ok := ctx.Value(loadedKey{}).(*string); ok && found {
		*loaded = token
	}
	return data, found, err
}

// CommitCtx implements scs.CtxStore.
func (s sessionStore) CommitCtx(ctx context.Context, token string, b []byte, expiry time.Time) error {
	if loaded, ok := ctx.Value(loadedKey{}).(*string); ok && *loaded == token {
		return s.store.Update(ctx, token, b, expiry)
	}
	return s.store.Create(ctx, token, b, expiry)
}

// DeleteCtx implements scs.CtxStore.
func (s sessionStore) DeleteCtx(ctx context.Context, token string) error {
	return s.store.Delete(ctx, token)
}

// Find implements scs.Store.
func (s sessionStore) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit implements scs.Store.
func (s sessionStore) Commit(token string, b []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, b, expiry)
}

// Delete implements scs.Store.
func (s sessionStore) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

// CallerBySession implements httpx.Sessions: a person who is signed in may do what
// the person could allow a program to. The org of the path says which membership acts.
func (p *Pages) CallerBySession(r *http.Request) (*identity.Caller, error) {
	cookie, err := r.Cookie(p.sessions.Cookie.Name)
	if err != nil || cookie.Value == "" {
		return nil, nil //nolint:nilerr // nobody is signed in
	}
	if err := p.forms.Check(r); err != nil {
		return nil, errs.New(errs.Forbidden, "auth.other_site", "a browser sent this for another site; nothing was done")
	}
	ctx, err := p.sessions.Load(r.Context(), cookie.Value)
	if err != nil {
		return nil, err
	}
	r = r.WithContext(ctx)
	var m *identity.Member
	if org := r.PathValue("org"); org != "" {
		m, err = p.MemberIn(r, org)
	}
	if err == nil && m == nil {
		// Whoever is signed in, but not to that org, gets the response of an unknown org.
		m, err = p.SignedIn(r)
	}
	if err != nil || m == nil {
		return nil, err
	}
	return sessionCaller(m, cookie.Value), nil
}

// SignIn leads to the page to sign in on.
func (p *Pages) SignIn(w http.ResponseWriter, r *http.Request, next string) {
	to := "/login"
	if next != "" {
		to += "?" + url.Values{"next": {next}}.Encode()
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// home is where people go who were on their way nowhere else.
const home = "/"

// accountPath is the page of a person's account.
const accountPath = "/account"

// local is the address to go to after signing in: one of ours, or home.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || strings.Contains(next, "\\") {
		return home
	}
	if !strings.HasPrefix(next, "/oauth/authorize?") && !strings.HasPrefix(next, "/orgs/") && u.Path != accountPath {
		return home
	}
	return next
}

// leave ends the session, and tells end whose it was: once for each membership.
func (p *Pages) leave(w http.ResponseWriter, r *http.Request, end func(context.Context, identity.Principal) error) {
	list, err := p.Memberships(r)
	for i := range list {
		if err == nil {
			err = end(r.Context(), list[i].Principal)
		}
	}
	if err == nil {
		err = p.sessions.Destroy(r.Context())
	}
	if err != nil {
		p.failed(w, r, err)
		return
	}
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
