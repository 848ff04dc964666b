package httpx

import (
	"context"
	"net/http"
	"strings"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// authenticate puts the caller into the exchange. No credentials mean no caller;
// bad ones are refused here, and counted against the client's address so that
// guessing is slow. The rate limit counts principals, not keys: a second key
// brings no second budget.
//
// path is the route's: a credential for one path only is good for nothing elsewhere.
func (rt *Router) authenticate(path string, ro Route, next http.Handler) http.Handler {
	limit, refuse := rt.perPrincipal, ro.Refuse
	if ro.Worker {
		limit = rt.perWorker
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := rt.callerOf(exchangeOf(r.Context()), r, ro.Sessions)
		if err == nil && caller != nil && caller.Audience != "" && caller.Audience != path {
			err = errOtherAudience
		}
		if err != nil {
			rt.refuseCredentials(w, r, refuse, err)
			return
		}
		rt.serveCaller(w, r, caller, limit, refuse, next)
	})
}

// serveCaller serves a request whose sender is known, within the sender's limits. A nil
// caller is nobody.
func (rt *Router) serveCaller(w http.ResponseWriter, r *http.Request, caller *identity.Caller,
	limit *limits[identity.Principal], refuse ErrorWriter, next http.Handler,
) {
	x := exchangeOf(r.Context())
	if caller != nil {
		x.caller, x.limit = caller, limit
		x.account.Owner = budget.Owner{Org: caller.Org, Principal: caller.Ref()}
		if wait := limit.Take(caller.Principal, 1, x.start); wait > 0 {
			refuse(w, r, limit.refusal(w.Header(), wait, "too many requests; wait as long as Retry-After says"))
			return
		}
	}
	if err := rt.admit(x); err != nil {
		refuse(w, r, err)
		return
	}
	if caller != nil {
		if err := x.holdBody(r); err != nil {
			refuse(w, r, err)
			return
		}
	}
	next.ServeHTTP(w, r)
}

// HandlePeople adds a route for people who use a browser. find returns who is signed in,
// nil for nobody, and the request to go on with. What is refused before the handler runs is
// answered by refuse.
func (rt *Router) HandlePeople(pattern string, find func(*http.Request) (*identity.Caller, *http.Request, error),
	refuse ErrorWriter, h http.Handler,
) {
	rt.add(pattern, ordinary, refuse, rt.private(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, r, err := find(r)
		if err != nil {
			refuse(w, r, err)
			return
		}
		rt.serveCaller(w, r, caller, rt.perPrincipal, refuse, h)
	})))
}

// callerOf returns who sent the request; nil: it carries no credentials.
func (rt *Router) callerOf(ctx context.Context, r *http.Request, takesSessions bool) (*identity.Caller, error) {
	header := r.Header["Authorization"]
	if len(header) == 0 {
		if takesSessions && rt.sessions != nil && len(r.Header["Cookie"]) > 0 {
			return rt.sessions.CallerBySession(r)
		}
		return nil, nil
	}
	secret, ok := bearer(header)
	if !ok {
		return nil, errBadHeader
	}
	return rt.auth.Authenticate(ctx, secret)
}

var errBadHeader = errs.New(errs.Unauthenticated, "auth.invalid",
	`the Authorization header must be "Bearer <API_KEY>", once`)

var errOtherAudience = errs.New(errs.Unauthenticated, "auth.audience",
	"the access token was made for another resource; ask for one without a resource, or for this one")

func (rt *Router) refuseCredentials(w http.ResponseWriter, r *http.Request, refuse ErrorWriter, err error) {
	if errs.KindOf(err) == errs.Unauthenticated {
		if limited := rt.CountFailure(w.Header(), r); limited != nil {
			err = limited
		}
	}
	refuse(w, r, err)
}

// CountFailure counts bad credentials against the client's address. It returns the
// refusal to send instead of the usual one if there were too many.
func (rt *Router) CountFailure(h http.Header, r *http.Request) error {
	wait := rt.perAddress.Take(rt.ClientAddr(r), 1, rt.now())
	if wait <= 0 {
		return nil
	}
	return rt.perAddress.refusal(h, wait, "too many bad credentials from this address; wait as long as Retry-After says")
}

// Recheck asks again who sent the request, for an answer that takes so long that
// its key may have been revoked or expired meanwhile.
func (rt *Router) Recheck(ctx context.Context, r *http.Request) (*identity.Caller, error) {
	caller, err := rt.callerOf(ctx, r, true)
	if err == nil && caller == nil {
		err = errBadHeader
	}
	return caller, err
}

// Sessions knows who is signed in in a browser.
type Sessions interface {
	// CallerBySession returns who holds the request's session; nil: nobody does. A
	// request that another site made a browser send is Forbidden.
	CallerBySession(r *http.Request) (*identity.Caller, error)
}

// AcceptSessions lets people who are signed in call the routes that take sessions. It is
// called before the first request.
func (rt *Router) AcceptSessions(s Sessions) { rt.sessions = s }

// BearerOf returns the token of the request, however its header is spelled; empty: it has
// none.
func BearerOf(r *http.Request) string {
	token, _ := bearer(r.Header["Authorization"])
	return token
}

// bearer returns the token; the name of the scheme is case-insensitive (RFC 9110, 11.1).
func bearer(header []string) (string, bool) {
	const scheme = "bearer "
	if len(header) != 1 {
		return "", false
	}
	v := header[0]
	if len(v) <= len(scheme) || !strings.EqualFold(v[:len(scheme)], scheme) {
		return "", false
	}
	token := strings.TrimLeft(v[len(scheme):], " ")
	return token, token != ""
}
