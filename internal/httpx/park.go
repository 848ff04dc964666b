package httpx

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// ParkKind is the reason why a request is parked.
type ParkKind uint8

// The kinds of parked requests.
const (
	Stream ParkKind = iota + 1 // a stream of events that may be far apart
	Wait                       // a response that is delayed until something happens
	parkKinds
)

// parking bounds how many requests are open without being worked on. They cost memory and a file
// descriptor but no processor time, so many more of them are allowed than admission has slots.
type parking struct {
	limits ParkLimits
	all    atomic.Int64
	kinds  [parkKinds]parked
}

// ParkLimits bound parked requests; 0: no limit.
type ParkLimits struct {
	Process      int // of each kind
	PerPrincipal int // of each kind
	Both         int // of both kinds together, for their shared resource: open files
}

type parked struct {
	used    atomic.Int64
	holders *shares[holder]
}

func newParking(l ParkLimits) *parking {
	p := &parking{limits: l}
	for i := range p.kinds {
		p.kinds[i].holders = newShares[holder]()
	}
	return p
}

// place is what a request holds of the bounds. A handler may run in a goroutine that outlives its
// request by a moment, hence the lock.
type place struct {
	mu      sync.Mutex
	class   class
	entered bool          // entered and not yet admitted
	slot    *atomic.Int64 // the count that it was admitted to
	held    *atomic.Int64 // the count of its holder
	org     *atomic.Int64
	parked  ParkKind
	yielded bool          // it was admitted and has given its slot back
	waits   *atomic.Int64 // the count of its holder's parked requests
	over    bool          // the request has ended
}

// Park counts the request of ctx as one that will be open without being worked on, until it ends.
// Call it before the work, so that a refusal comes before anything was done, and call Yield when
// the work is done and the waiting begins. Parking a parked request has no effect.
func (rt *Router) Park(ctx context.Context, kind ParkKind) error {
	x := exchangeOf(ctx)
	if x == nil {
		return nil
	}
	x.place.mu.Lock()
	defer x.place.mu.Unlock()
	if x.place.parked != 0 || x.place.over {
		return nil
	}
	held, err := rt.parking.take(kind, rt.holderOf(x))
	if err != nil {
		return rt.shed(x, shedReason(kind-Stream)+shedStreams, err)
	}
	x.place.parked, x.place.waits = kind, held
	return nil
}

// Yield gives back the slot of a parked request, which only waits from now on.
func (rt *Router) Yield(ctx context.Context) {
	x := exchangeOf(ctx)
	if x == nil {
		return
	}
	x.place.mu.Lock()
	defer x.place.mu.Unlock()
	if x.place.parked != 0 && x.place.slot != nil {
		rt.admission.leave(x)
		x.place.yielded = true
	}
}

// How long Resume waits for a slot, and how often it tries.
const (
	resumeWait = time.Second
	resumeLook = 10 * time.Millisecond
)

// Resume takes a slot again for a request that has yielded and has more work to do, such as the
// next item of a batch. It waits a moment for a slot, because a refusal would lose the work that
// the request has done. Without a Yield it has no effect.
func (rt *Router) Resume(ctx context.Context) error {
	x := exchangeOf(ctx)
	if x == nil {
		return nil
	}
	reason, err := rt.reseat(x)
	for deadline := time.Now().Add(resumeWait); err != nil; reason, err = rt.reseat(x) {
		if time.Now().After(deadline) {
			return rt.shed(x, reason, err)
		}
		select {
		case <-time.After(resumeLook):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (rt *Router) reseat(x *exchange) (reason shedReason, err error) {
	x.place.mu.Lock()
	defer x.place.mu.Unlock()
	if !x.place.yielded || x.place.over {
		return 0, nil
	}
	if reason, err = rt.admission.seat(x); err == nil {
		x.place.yielded = false
	}
	return reason, err
}

// leave gives back all that the request holds.
func (rt *Router) leave(x *exchange) {
	x.place.mu.Lock()
	defer x.place.mu.Unlock()
	rt.admission.leave(x)
	if x.place.parked != 0 {
		rt.parking.give(x.place.parked, x.place.waits)
		x.place.parked = 0
	}
	x.place.over = true
}

func (p *parking) take(kind ParkKind, h holder) (held *atomic.Int64, err error) {
	k := &p.kinds[kind]
	if held = k.holders.take(h, orUnlimited(p.limits.PerPrincipal)); held == nil {
		return nil, tooManyOfCaller(kind, p.limits.PerPrincipal)
	}
	used, all := k.used.Add(1), p.all.Add(1)
	if used > int64(orUnlimited(p.limits.Process)) || all > int64(orUnlimited(p.limits.Both)) {
		p.give(kind, held)
		return nil, tooManyInAll(kind)
	}
	return held, nil
}

func (p *parking) give(kind ParkKind, held *atomic.Int64) {
	held.Add(-1)
	p.kinds[kind].used.Add(-1)
	p.all.Add(-1)
}

func orUnlimited(limit int) int {
	if limit <= 0 {
		return math.MaxInt
	}
	return limit
}

// parkRetry is the Retry-After of a client that has to wait for other requests to end.
const parkRetry = 5 * time.Second

func tooManyOfCaller(kind ParkKind, limit int) error {
	code, what := "stream.too_many", "streams"
	if kind == Wait {
		code, what = "wait.too_many", "waiting requests"
	}
	e := errs.New(errs.RateLimited, code,
		"this caller has %d open %s, which is the limit; end some of them, or try again later", limit, what)
	e.RetryAfter = parkRetry
	return e
}

func tooManyInAll(kind ParkKind) error {
	what := "streams"
	if kind == Wait {
		what = "waiting requests"
	}
	e := errs.New(errs.Unavailable, "server.overloaded",
		"the server has as many open %s as it can hold; try again later", what)
	e.RetryAfter = parkRetry
	return e
}
