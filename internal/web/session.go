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

	// Keys of the first membership. The other memberships are in keyMore.
	keyOrg, keyUser, keyGeneration, keyAt, keyBy = "org", "user", "generation", "at", "by"

	keyMore = "more"
)

func newSessions(o Options) *scs.SessionManager {
	m := scs.New()
	m.Store, m.HashTokenInStore = sessionStore{o.Sessions, o.Now}, true
	m.Lifetime, m.IdleTimeout = sessionLifetime, sessionIdle
	m.Cookie.Name, m.Cookie.SameSite, m.Cookie.HttpOnly, m.Cookie.Path = "parley_session", http.SameSiteLaxMode, true, "/"
	if strings.HasPrefix(o.PublicURL, "https://") {
		// The __Host- prefix prevents other hosts of the domain from setting the cookie.
		m.Cookie.Name, m.Cookie.Secure = "__Host-parley_session", true
	}
	return m
}

// Sessions stores session data under the hashes of the tokens.
type Sessions interface {
	Get(ctx context.Context, token string, now time.Time) (data []byte, found bool, err error)
	// Create stores a new session. Update changes an existing one, and does nothing if it has
	// ended: a concurrent request must not revive it.
	Create(ctx context.Context, token string, data []byte, expires time.Time) error
	Update(ctx context.Context, token string, data []byte, expires time.Time) error
	Delete(ctx context.Context, token string) error
}

// sessionStore adapts Sessions to the session manager, which has one method to save new and
// existing sessions. A session that the request has loaded is only updated, because another request
// may have signed out meanwhile.
type sessionStore struct {
	store Sessions
	now   func() time.Time
}

// loadedKey is the context key of the session that the request has loaded: a *string with its
// token hash.
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

// CallerBySession implements httpx.Sessions. A signed-in user may do what the user could allow an
// OAuth client to do. The org in the path selects the membership.
func (p *Pages) CallerBySession(r *http.Request) (*identity.Caller, error) {
	cookie, err := r.Cookie(p.sessions.Cookie.Name)
	if err != nil || cookie.Value == "" {
		return nil, nil //nolint:nilerr // not signed in
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
		// A user who is not signed in to that org gets the response for an unknown org.
		m, err = p.SignedIn(r)
	}
	if err != nil || m == nil {
		return nil, err
	}
	return sessionCaller(m, cookie.Value), nil
}

// SignIn redirects to the sign-in page.
func (p *Pages) SignIn(w http.ResponseWriter, r *http.Request, next string) {
	to := "/login"
	if next != "" {
		to += "?" + url.Values{"next": {next}}.Encode()
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// home is the page to open after sign-in by default.
const home = "/"

// accountPath is the account page.
const accountPath = "/account"

// local returns next if it is a path of this site, otherwise home.
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

// leave ends the session, and calls end for each of its memberships.
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
