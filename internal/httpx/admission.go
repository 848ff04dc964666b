package httpx

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
)

// class selects the budget of concurrent requests that a route uses. Workers have their own budget,
// so that senders cannot keep an agent from finishing its tasks.
type class uint8

const (
	unlimited class = iota // health checks, and requests that match no route
	ordinary
	worker
	classes // the number of classes
)

var classNames = [classes]string{ordinary: "ordinary", worker: "worker"}

// admission bounds how many requests are served at the same time. Requests over the bound are
// refused at once: a queue would only delay everyone in it.
//
// A request first enters, before its credentials are checked and its body is read. Once its holder
// is known, it takes a share of its principal and org, or of its client address without
// credentials, and a slot of its class. A request that has only entered costs little, so many may
// enter: a caller over its share cannot fill the slots of others with requests that are about to be
// refused.
type admission struct {
	total, perHolder, perOrg int
	classes                  [classes]slots
}

// enterFactor is how many requests may have entered for each slot.
const enterFactor = 4

type slots struct {
	entered atomic.Int64
	used    atomic.Int64
	holders *shares[holder]
	orgs    *shares[string]
}

// holder identifies what a request is counted for: a principal, or a client address.
type holder struct {
	principal identity.Principal
	addr      netip.Addr
}

// newAdmission returns nil for a total of 0. A nil admission has no bound.
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
		Message: "the server is at its limit of concurrent requests; wait for the time in Retry-After and try again",
	}
	errTooManyConcurrent = &errs.Error{
		Kind: errs.RateLimited, Code: "request.too_many_concurrent", RetryAfter: time.Second,
		Message: "too many concurrent requests of this caller or its org; wait for responses before you send more",
	}
)

// enter lets a request in. It reports false if too many have entered.
func (a *admission) enter(x *exchange, c class) bool {
	if a == nil || c == unlimited {
		return true
	}
	if takeOne(&a.classes[c].entered, a.total*enterFactor) == nil {
		return false
	}
	x.place.class, x.place.entered = c, true
	return true
}

// admit takes the shares of the request's holder, and a slot.
func (a *admission) admit(x *exchange) (shedReason, error) {
	a.classes[x.place.class].entered.Add(-1)
	x.place.entered = false
	return a.seat(x)
}

// seat takes the shares and a slot for a request that holds none.
func (a *admission) seat(x *exchange) (shedReason, error) {
	s := &a.classes[x.place.class]
	held := s.holders.take(x.holder, a.perHolder)
	if held == nil {
		return shedShare, errTooManyConcurrent
	}
	var org *atomic.Int64
	if name := x.holder.principal.Org; name != "" {
		if org = s.orgs.take(name, a.perOrg); org == nil {
			held.Add(-1)
			return shedShare, errTooManyConcurrent
		}
	}
	x.place.held, x.place.org = held, org
	if x.place.slot = takeOne(&s.used, a.total); x.place.slot == nil {
		a.leave(x)
		return shedOverload, errOverloaded
	}
	return 0, nil
}

// leave gives back all that the request has taken. It may be called more than once.
func (a *admission) leave(x *exchange) {
	if x.place.entered {
		a.classes[x.place.class].entered.Add(-1)
		x.place.entered = false
	}
	for _, n := range []**atomic.Int64{&x.place.slot, &x.place.held, &x.place.org} {
		if *n != nil {
			(*n).Add(-1)
			*n = nil
		}
	}
}

// admitted returns how many requests of the class are being served.
func (a *admission) admitted(c class) int64 {
	if a == nil {
		return 0
	}
	return a.classes[c].used.Load()
}

// holderOf returns the holder of a request that was authenticated.
func (rt *Router) holderOf(x *exchange) holder {
	if x.caller != nil {
		return holder{principal: x.caller.Principal}
	}
	return holder{addr: rt.ClientAddr(x.request)}
}

// admit counts the request for its holder, or returns the refusal.
func (rt *Router) admit(x *exchange) error {
	if !x.place.entered {
		return nil
	}
	x.holder = rt.holderOf(x)
	if reason, err := rt.admission.admit(x); err != nil {
		return rt.shed(x, reason, err)
	}
	return nil
}

// shedLogEvery is the interval of log lines about refused requests.
const shedLogEvery = 30 * time.Second

// shed records a request that is refused to protect others. Each one is counted but few are logged:
// a log line for each would add to the load.
func (rt *Router) shed(x *exchange, reason shedReason, err error) error {
	x.shed = true
	if rt.metrics != nil {
		rt.metrics.shed[reason].Inc()
	}
	last := rt.shedLogged.Load()
	now := rt.now()
	if now.Sub(time.Unix(0, last)) >= shedLogEvery && rt.shedLogged.CompareAndSwap(last, now.UnixNano()) {
		rt.log.Warn("refusing requests to protect others; see the metric parley_http_requests_shed_total",
			"reason", shedReasons[reason], "route", x.route.pattern)
	}
	return err
}

// shedReason identifies the bound that refused a request.
type shedReason uint8

const (
	shedOverload shedReason = iota
	shedShare
	shedStreams
	shedWaits
	shedMemory
	shedSearch
)

var shedReasons = [...]string{
	shedOverload: "overload",
	shedShare:    "share",
	shedStreams:  "streams",
	shedWaits:    "waits",
	shedMemory:   "memory",
	shedSearch:   "search",
}
