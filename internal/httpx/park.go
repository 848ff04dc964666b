package httpx

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

// ParkKind says what a parked request waits for.
type ParkKind uint8

// The kinds of parked requests.
const (
	Stream ParkKind = iota + 1 // a response in events that may be far apart
	Wait                       // a response that comes when something has happened
	parkKinds
)

// parking bounds how many requests are open without being worked on. They cost
// memory and a file, but no processor time, so there may be many more of them than
// there are slots of the admission.
type parking struct {
	limits ParkLimits
	all    atomic.Int64
	kinds  [parkKinds]parked
}

// ParkLimits bound parked requests; 0: no limit.
type ParkLimits struct {
	Process      int // of each kind
	PerPrincipal int // of each kind
	Both         int // of both kinds together, for what they share: open files
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

// place is what a request holds of the bounds. A handler may run in a goroutine that
// outlives its request by a moment, hence the lock.
type place struct {
	mu      sync.Mutex
	class   class
	entered bool          // and not yet admitted
	slot    *atomic.Int64 // what it was counted in when it was admitted
	held    *atomic.Int64 // of its holder
	org     *atomic.Int64
	parked  ParkKind
	yielded bool          // it was admitted and has given its slot back
	waits   *atomic.Int64 // what its holder has parked
	over    bool          // the request has ended
}

// Park counts the request of the context as one that will be open without being
// worked on, until it ends. The refusal comes before anything was done: call it
// before the work, and Yield once the work is done and the waiting begins. Parking
// a parked request has no effect.
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

// Yield gives the slot of a parked request back: from now on it only waits.
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

// How long Resume waits for a slot, and how often it looks for one.
const (
	resumeWait = time.Second
	resumeLook = 10 * time.Millisecond
)

// Resume takes a slot again for a request that has yielded its own and has more work to
// do, as a batch has after an item that waited. It waits for one a moment, because the
// work that the request has done would be lost with a refusal. Without a yield it has
// no effect.
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

// parkRetry is how long a client waits that has to wait for others to end.
const parkRetry = 5 * time.Second

func tooManyOfCaller(kind ParkKind, limit int) error {
	code, what := "stream.too_many", "streams"
	if kind == Wait {
		code, what = "wait.too_many", "waiting requests"
	}
	e := errs.New(errs.RateLimited, code, "this caller has %d open %s, which is the limit; end some of them, or try again later", limit, what)
	e.RetryAfter = parkRetry
	return e
}

func tooManyInAll(kind ParkKind) error {
	what := "streams"
	if kind == Wait {
		what = "waiting requests"
	}
	e := errs.New(errs.Unavailable, "server.overloaded", "the server has as many open %s as it can hold; try again later", what)
	e.RetryAfter = parkRetry
	return e
}
