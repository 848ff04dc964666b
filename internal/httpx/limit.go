package httpx

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/limit"
)

const (
	burstSeconds = 5 // a burst is what five seconds of the rate allow
	maxLimited   = 128 << 10
)

// limits holds what each key may do, and the name of the policy in the RateLimit fields.
type limits[K comparable] struct {
	*limit.Keyed[K]
	name string
	rate int // a second
}

// newLimits allows everything for a rate of 0.
func newLimits[K comparable](name string, perSecond int) *limits[K] {
	keyed := limit.New[K](float64(perSecond), perSecond*burstSeconds, maxLimited)
	return &limits[K]{Keyed: keyed, name: name, rate: perSecond}
}

// refusal is the error of a key without tokens; the headers say when to come again.
func (l *limits[K]) refusal(h http.Header, wait time.Duration, msg string) error {
	policy := strconv.Quote(l.name)
	h.Set("RateLimit-Policy", policy+";q="+strconv.Itoa(l.rate*burstSeconds)+";w="+strconv.Itoa(burstSeconds))
	h.Set("RateLimit", policy+";r=0;t="+strconv.FormatInt(retrySeconds(wait), 10))
	e := errs.New(errs.RateLimited, "request.rate_limited", "%s", msg)
	e.RetryAfter = wait
	return e
}

// Charge makes the request of the context count as n more against its caller's rate
// limit: each item of a batch costs as much as a request of its own. If the caller
// does not have as many, nothing is used up and the refusal is returned.
func (rt *Router) Charge(ctx context.Context, n int) error {
	x := exchangeOf(ctx)
	if x == nil || x.caller == nil || x.limit == nil || n <= 0 {
		return nil
	}
	wait := x.limit.Take(x.caller.Principal, n, rt.now())
	if wait <= 0 {
		return nil
	}
	msg := "each request of a batch counts against the rate limit; wait as long as Retry-After says, or send a smaller batch"
	if burst := x.limit.rate * burstSeconds; n >= burst {
		msg = fmt.Sprintf("a batch of %d requests is larger than the rate limit ever allows; send at most %d in one batch", n+1, burst)
	}
	return x.limit.refusal(x.rec.Header(), wait, msg)
}
