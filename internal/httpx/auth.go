package httpx

import (
	"context"
	"net/http"
	"strings"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// authenticate puts the caller into the exchange. A request without credentials has no caller. Bad
// credentials are refused here and counted against the client's address, which slows down guessing.
// The rate limit counts principals, not keys: a second key has no second budget.
//
// path is the path of the route: a credential for one path is not valid elsewhere.
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
		rt.serveCaller(w, r, caller, nil, limit, refuse, next)
	})
}

// serveCaller serves a request of an authenticated caller within the caller's limits. A nil caller
// is anonymous. find finds the caller of a page again; nil: the API.
func (rt *Router) serveCaller(w http.ResponseWriter, r *http.Request, caller *identity.Caller, find finder,
	limit *limits[identity.Principal], refuse ErrorWriter, next http.Handler,
) {
	x := exchangeOf(r.Context())
	if caller != nil {
		x.caller, x.limit = caller, limit
		x.account.Owner = budget.Owner{Org: caller.Org, Principal: caller.Ref()}
		if wait := limit.Take(caller.Principal, 1, x.start); wait > 0 {
			refuse(w, r, limit.refusal(w.Header(), wait, "too many requests; wait for the time in Retry-After"))
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
		x.watchBody(r, find)
	}
	next.ServeHTTP(w, r)
}

// HandlePeople adds a route for people with a browser. find returns the signed-in user, or nil, and
// the request to continue with. refuse writes the responses of requests that are refused before the
// handler runs.
func (rt *Router) HandlePeople(pattern string, find func(*http.Request) (*identity.Caller, *http.Request, error),
	refuse ErrorWriter, h http.Handler,
) {
	rt.add(pattern, ordinary, refuse, rt.private(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, r, err := find(r)
		if err != nil {
			refuse(w, r, err)
			return
		}
		rt.serveCaller(w, r, caller, find, rt.perPrincipal, refuse, h)
	})))
}

// callerOf returns the caller of the request, or nil if it carries no credentials.
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
	`the Authorization header must be "Bearer <API_KEY>" and occur once`)

var errOtherAudience = errs.New(errs.Unauthenticated, "auth.audience",
	"the access token was issued for another resource; request one for this resource, or without a resource")

func (rt *Router) refuseCredentials(w http.ResponseWriter, r *http.Request, refuse ErrorWriter, err error) {
	if errs.KindOf(err) == errs.Unauthenticated {
		if limited := rt.CountFailure(w.Header(), r); limited != nil {
			err = limited
		}
	}
	refuse(w, r, err)
}

// CountFailure counts bad credentials against the client's address. If there were too many, it
// returns the refusal to send instead of the usual one.
func (rt *Router) CountFailure(h http.Header, r *http.Request) error {
	wait := rt.perAddress.Take(rt.ClientAddr(r), 1, rt.now())
	if wait <= 0 {
		return nil
	}
	return rt.perAddress.refusal(h, wait,
		"too many bad credentials from this client address; wait for the time in Retry-After")
}

// Recheck authenticates the request again, for a long response whose key may have been revoked or
// have expired in the meantime.
func (rt *Router) Recheck(ctx context.Context, r *http.Request) (*identity.Caller, error) {
	caller, err := rt.callerOf(ctx, r, true)
	if err == nil && caller == nil {
		err = errBadHeader
	}
	return caller, err
}

// Sessions finds the user of a browser session.
type Sessions interface {
	// CallerBySession returns the user of the request's session, or nil without a session. It
	// returns a Forbidden error for a cross-site request.
	CallerBySession(r *http.Request) (*identity.Caller, error)
}

// AcceptSessions lets signed-in people call the routes with Route.Sessions. Call it before the
// first request.
func (rt *Router) AcceptSessions(s Sessions) { rt.sessions = s }

// BearerOf returns the bearer token of the request, or "". The spelling of the header does not
// matter.
func BearerOf(r *http.Request) string {
	token, _ := bearer(r.Header["Authorization"])
	return token
}

// bearer returns the token. The scheme is case-insensitive (RFC 9110, section 11.1).
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
