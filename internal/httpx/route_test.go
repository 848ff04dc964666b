package httpx

import (
	"net/http"
	"testing"

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
