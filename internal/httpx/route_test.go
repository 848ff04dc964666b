package httpx

import (
	"net/http"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

type signedIn struct{ identity.Caller }

func (s *signedIn) CallerBySession(*http.Request) (*identity.Caller, error) { return &s.Caller, nil }

func TestARouteTakesSessionsIfItSaysSo(t *testing.T) {
	t.Parallel()
	rt := NewRouter(Options{Authenticator: known{}, Logger: quiet()})
	ada := identity.Principal{Org: "acme", Kind: identity.User, ID: "ada"}
	rt.AcceptSessions(&signedIn{identity.Caller{Principal: ada}})
	who := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if CallerOf(r.Context()) == nil {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	rt.Handle("GET /programs", who)
	rt.HandleRoute("GET /pages", Route{Sessions: true}, who)
	for path, want := range map[string]int{"/programs": http.StatusUnauthorized, "/pages": http.StatusOK} {
		if got := send(rt, "GET", path, "Cookie", "session=1").Code; got != want {
			t.Errorf("%s with a session: got %d, want %d", path, got, want)
		}
	}
}

func TestAnAreaIsAPathOrAllBelowIt(t *testing.T) {
	t.Parallel()
	rt := NewRouter(Options{Logger: quiet(), Origins: []string{"*"}})
	rt.Area(Area{Programs: true, CrossOrigin: true}, "/one", "/all/")
	rt.Area(Area{Secret: true}, "/join/")
	rt.ShowErrors(func(w http.ResponseWriter, _ *http.Request, status int, _ string) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
	})
	for path, in := range map[string]bool{
		"/one": true, "/one/more": false, "/oneself": false, "/all/": true, "/all/below": true,
		"/all": false, "/join/x": false, "/": false,
	} {
		h := send(rt, "GET", path, "Accept", "text/html", "Origin", "https://app.example").Header()
		if got := h.Get("Content-Type") == ProblemType; got != in {
			t.Errorf("%s: problem document = %v, want %v: %s", path, got, in, h.Get("Content-Type"))
		}
		if got := h.Get("Access-Control-Allow-Origin") != ""; got != in {
			t.Errorf("%s: readable by another origin = %v, want %v", path, got, in)
		}
	}
}

// A refusal before a page is reached is a page for people, and a problem for programs.
func TestRefusalsArePagesForPeople(t *testing.T) {
	t.Parallel()
	rt := NewRouter(Options{Logger: quiet()})
	rt.Area(Area{Programs: true}, "/api/")
	rt.ShowErrors(func(w http.ResponseWriter, _ *http.Request, status int, message string) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(message))
	})
	busy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := errs.New(errs.Unavailable, "server.busy", "the server is busy")
		err.RetryAfter = time.Second
		WriteError(w, r, err)
	})
	rt.HandlePublic("GET /page", busy)
	rt.HandlePublic("GET /api/page", busy)
	for _, c := range []struct{ path, accept, contentType string }{
		{"/page", "text/html,*/*", "text/html"},
		{"/page", "*/*", ProblemType},
		{"/api/page", "text/html", ProblemType},
	} {
		res := send(rt, "GET", c.path, "Accept", c.accept)
		h := res.Header()
		if res.Code != http.StatusServiceUnavailable || h.Get("Content-Type") != c.contentType ||
			h.Get("Retry-After") != "1" {
			t.Errorf("%s for %s: %d %v, want 503 as %s with Retry-After", c.path, c.accept, res.Code, h, c.contentType)
		}
		if c.contentType == "text/html" && res.Body.String() != "The server is busy." {
			t.Errorf("the page says %q", res.Body)
		}
	}
}
