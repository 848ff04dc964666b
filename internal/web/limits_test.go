package web_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/account"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/orgtest"
	"github.com/parley-dev/parley/internal/pgtest"
	"github.com/parley-dev/parley/internal/store"
	"github.com/parley-dev/parley/internal/web"
)

const rightPassword = "four words of mine"

// counter is a Hasher that counts its checks.
type counter struct{ checked atomic.Int64 }

func (*counter) Hash(_ context.Context, p string) (string, error) { return "plain:" + p, nil }
func (*counter) Decoy() string                                    { return "nobody's" }
func (c *counter) Verify(_ context.Context, h, p string) (bool, error) {
	c.checked.Add(1)
	return h == "plain:"+p, nil
}

// site has the pages on a store with one user, acme/ada.
type site struct {
	http.Handler
	pages  *web.Pages
	router *httpx.Router
	hashes *counter
	clock  atomic.Int64 // unix seconds
}

func newSite(t *testing.T, st *store.Store) *site {
	t.Helper()
	s := &site{hashes: &counter{}}
	s.clock.Store(time.Now().Unix())
	now := func() time.Time { return time.Unix(s.clock.Load(), 0).UTC() }
	operator := identity.NewOperator(st.IdentityStores(), now, orgtest.NewID)
	if _, err := operator.CreateOrg(t.Context(), "acme", ""); err != nil {
		t.Fatal(err)
	}
	ada := identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}
	if _, err := operator.CreateMember(t.Context(), ada, "", false); err != nil {
		t.Fatal(err)
	}
	accounts := account.New(st.Accounts(), st.Audit(), s.hashes, now)
	orgtest.SetPassword(t, st, accounts, ada, rightPassword)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	s.router = httpx.NewRouter(httpx.Options{
		Logger:         log,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")},
	})
	var err error
	s.pages, err = web.New(s.router, web.Options{
		Accounts: accounts, Sessions: st.Sessions(), PublicURL: "http://parley.test", Logger: log, Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.pages.Mount()
	s.Handler = s.router
	return s
}

func sqlite(t *testing.T) *store.Store { return open(t, store.Options{Dir: t.TempDir()}) }

func open(t *testing.T, o store.Options) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// login tries a password from an IP address.
func (s *site) login(address, password string) *httptest.ResponseRecorder {
	form := url.Values{"org": {"acme"}, "user": {"ada"}, "password": {password}}
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Forwarded-For", address)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestGuessesAtOnceAreCounted(t *testing.T) {
	t.Parallel()
	s := newSite(t, sqlite(t))
	var wg sync.WaitGroup
	for range 120 {
		wg.Go(func() { s.login("203.0.113.1", "not the password") })
	}
	wg.Wait()
	if n := s.hashes.checked.Load(); n > 10 {
		t.Errorf("%d of 120 guesses at once were checked; want 10 at most", n)
	}
	if res := s.login("203.0.113.1", rightPassword); res.Code != http.StatusTooManyRequests ||
		res.Header().Get("Retry-After") == "" {
		t.Errorf("the address that guessed: got %v %v, want Code %v, Retry-After not empty", res.Code, res.Header(),
			http.StatusTooManyRequests)
	}
	// One address cannot lock out the owner at another.
	if res := s.login("203.0.113.9", rightPassword); res.Code != http.StatusSeeOther {
		t.Errorf("the owner is locked out by another address: got %v, want Code %v", res.Code, http.StatusSeeOther)
	}
}

func TestGuessesFromManyAddressesAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, sqlite(t))
	if res := s.login("203.0.113.9", rightPassword); res.Code != http.StatusSeeOther {
		t.Fatalf("got %v, want Code %v", res.Code, http.StatusSeeOther)
	}
	for a := range 250 {
		for range 4 {
			s.login(netip.AddrFrom4([4]byte{10, 0, 0, byte(a)}).String(), "not the password")
		}
	}
	if n := s.hashes.checked.Load(); n > 101 {
		t.Errorf("%d of 1,000 guesses on one account were checked; want 100 at most", n-1)
	}
	// Even many addresses cannot lock out an owner at an address that has signed in before.
	if res := s.login("203.0.113.9", rightPassword); res.Code != http.StatusSeeOther {
		t.Errorf("the owner is locked out: got %v, want Code %v", res.Code, http.StatusSeeOther)
	}
	if res := s.login("203.0.113.10", rightPassword); res.Code != http.StatusTooManyRequests {
		t.Errorf("another address guesses on: got %v, want Code %v", res.Code, http.StatusTooManyRequests)
	}
}

func TestSigningInCostsNoTurnOfTheAccount(t *testing.T) {
	t.Parallel()
	s := newSite(t, sqlite(t))
	for i := range 15 { // more than the limit of one address for one account
		if res := s.login("203.0.113.1", rightPassword); res.Code != http.StatusSeeOther {
			t.Fatalf("sign-in %d: got %d, want %d", i, res.Code, http.StatusSeeOther)
		}
	}
}

func TestThePasswordQueueIsBounded(t *testing.T) {
	t.Parallel()
	h := web.NewArgon2id(web.StandardCost)
	hash := h.Decoy()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var busy, canceled atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			_, err := h.Verify(ctx, hash, "x")
			switch {
			case errs.KindOf(err) == errs.Unavailable && errs.As(err).RetryAfter > 0:
				if busy.Add(1) == 100 {
					cancel() // waiting requests are canceled
				}
			case err != nil:
				canceled.Add(1)
			}
		})
	}
	wg.Wait()
	if busy.Load() < 100 || canceled.Load() == 0 {
		t.Errorf("of 200 at once %d were refused and %d stopped waiting; want at least 100 and some", busy.Load(),
			canceled.Load())
	}
	// All slots are free again.
	if ok, err := h.Verify(t.Context(), hash, "x"); ok || err != nil {
		t.Errorf("got %v %v, want ok false, no error", ok, err)
	}
}

// A request that loaded the session before another one signed out must not revive it.
func TestSigningOutIsNotUndoneByARequestInFlight(t *testing.T) {
	t.Parallel()
	for name, st := range map[string]func(*testing.T) *store.Store{
		"SQLite":     sqlite,
		"PostgreSQL": func(t *testing.T) *store.Store { return open(t, store.Options{URL: pgtest.URL(t)}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, st(t))
			entered, leave := make(chan struct{}), make(chan struct{})
			s.router.HandlePublic("GET /slow", s.pages.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				close(entered)
				<-leave
				w.WriteHeader(http.StatusNoContent)
			})))
			s.router.HandlePublic("GET /who", s.pages.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if m, err := s.pages.SignedIn(r); err != nil || m == nil {
					w.WriteHeader(http.StatusUnauthorized)
				}
			})))
			cookie := s.login("203.0.113.1", rightPassword).Result().Cookies()[0]
			send := func(method, path string) *httptest.ResponseRecorder {
				r := httptest.NewRequest(method, path, nil)
				r.AddCookie(cookie)
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				return w
			}
			if res := send(http.MethodGet, "/who"); res.Code != http.StatusOK {
				t.Fatalf("not signed in: got %v, want Code %v", res.Code, http.StatusOK)
			}
			var wg sync.WaitGroup
			wg.Go(func() { send(http.MethodGet, "/slow") })
			<-entered
			if res := send(http.MethodPost, "/logout"); res.Code != http.StatusSeeOther {
				t.Errorf("got %v, want Code %v", res.Code, http.StatusSeeOther)
			}
			close(leave)
			wg.Wait()
			if res := send(http.MethodGet, "/who"); res.Code != http.StatusUnauthorized {
				t.Errorf("the session is back: got %v, want Code %v", res.Code, http.StatusUnauthorized)
			}
		})
	}
}
