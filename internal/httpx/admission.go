package httpx

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// class says which budget of concurrent requests a route uses. The reports of
// workers have a budget of their own, so that senders cannot keep an agent from
// finishing its tasks.
type class uint8

const (
	unlimited class = iota // health checks, and requests that match no route
	ordinary
	worker
	classes // how many there are
)

var classNames = [classes]string{ordinary: "ordinary", worker: "worker"}

// admission bounds how many requests are served at the same time. What is over a
// bound is refused at once: a queue would only add to the delay of everyone in it.
//
// A request takes a slot of its class before its credentials are looked at and its
// body is read, and then a share: of its principal and org, or of its address if it
// has no credentials.
type admission struct {
	total, perHolder, perOrg int
	classes                  [classes]slots
}

type slots struct {
	used    atomic.Int64
	holders *shares[holder]
	orgs    *shares[string]
}

// holder is whom a request is counted for: a principal, or a client address.
type holder struct {
	principal identity.Principal
	addr      netip.Addr
}

// newAdmission returns nil for a total of 0: nil admits everything.
func newAdmission(total int) *admission {
	if total <= 0 {
		return nil
	}
	a := &admission{total: total, perHolder: max(1, total/2), perOrg: max(1, total*2/3)}
	for i := range a.classes {
		a.classes[i].holders, a.classes[i].orgs = newShares[holder](), newShares[string]()
	}
	return a
}

var (
	errOverloaded = &errs.Error{
		Kind: errs.Unavailable, Code: "server.overloaded", RetryAfter: time.Second,
		Message: "the server is serving as many requests as it can; wait as long as Retry-After says and try again",
	}
	errTooManyConcurrent = &errs.Error{
		Kind: errs.RateLimited, Code: "request.too_many_concurrent", RetryAfter: time.Second,
		Message: "too many requests of this caller or its org are being served at the same time; wait for responses before you send more",
	}
)

// enter takes a slot of the class; false: there is none.
func (a *admission) enter(x *exchange, c class) bool {
	if a == nil || c == unlimited {
		return true
	}
	used := &a.classes[c].used
	if used.Add(1) > int64(a.total) {
		used.Add(-1)
		return false
	}
	x.place.class, x.place.slot = c, true
	return true
}

// share takes the shares of whom the request is counted for; false: one is used up.
func (a *admission) share(x *exchange) bool {
	if a == nil || !x.place.slot {
		return true
	}
	s := &a.classes[x.place.class]
	if !s.holders.take(x.holder, a.perHolder) {
		return false
	}
	if org := x.holder.principal.Org; org != "" && !s.orgs.take(org, a.perOrg) {
		s.holders.give(x.holder)
		return false
	}
	x.place.shared = true
	return true
}

// leave gives the slot and the shares back. It may be called again.
func (a *admission) leave(x *exchange) {
	if !x.place.slot {
		return
	}
	s := &a.classes[x.place.class]
	s.used.Add(-1)
	if x.place.shared {
		s.holders.give(x.holder)
		if org := x.holder.principal.Org; org != "" {
			s.orgs.give(org)
		}
	}
	x.place.slot, x.place.shared = false, false
}

// admitted is how many requests of the class are being served.
func (a *admission) admitted(c class) int64 {
	if a == nil {
		return 0
	}
	return a.classes[c].used.Load()
}

// holderOf is whom the request is counted for, once it is known who sent it.
func (rt *Router) holderOf(x *exchange) holder {
	if x.caller != nil {
		return holder{principal: x.caller.Principal}
	}
	return holder{addr: rt.ClientAddr(x.request)}
}

// claimShare counts the request for its caller, or returns the refusal.
func (rt *Router) claimShare(x *exchange) error {
	if rt.admission == nil || !x.place.slot {
		return nil
	}
	x.holder = rt.holderOf(x)
	if !rt.admission.share(x) {
		return rt.shed(x, shedShare, errTooManyConcurrent)
	}
	return nil
}

// shedLogEvery is how often the log mentions that requests are refused.
const shedLogEvery = 30 * time.Second

// shed notes a request that is refused to protect the others. Each is counted, and
// few are logged: a log line for each would add to the load.
func (rt *Router) shed(x *exchange, reason shedReason, err error) error {
	x.shed = true
	if rt.metrics != nil {
		rt.metrics.shed[reason].Inc()
	}
	last := rt.shedLogged.Load()
	if now := rt.now(); now.Sub(time.Unix(0, last)) >= shedLogEvery && rt.shedLogged.CompareAndSwap(last, now.UnixNano()) {
		rt.log.Warn("requests are being refused to protect the others; see parley_http_requests_shed_total",
			"reason", shedReasons[reason], "route", x.route.pattern)
	}
	return err
}

// shedReason says which bound refused a request.
type shedReason uint8

const (
	shedOverload shedReason = iota
	shedShare
	shedStreams
	shedWaits
)

var shedReasons = [...]string{shedOverload: "overload", shedShare: "share", shedStreams: "streams", shedWaits: "waits"}
