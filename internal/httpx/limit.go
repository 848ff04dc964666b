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
	burstSeconds = 5 // a burst is as many requests as the rate allows in five seconds
	maxLimited   = 128 << 10
)

// limits is a rate limiter with the name of its policy in the RateLimit header fields.
type limits[K comparable] struct {
	*limit.Keyed[K]
	name string
	rate int // per second
}

// newLimits has no limit for a rate of 0.
func newLimits[K comparable](name string, perSecond int) *limits[K] {
	keyed := limit.New[K](float64(perSecond), perSecond*burstSeconds, maxLimited)
	return &limits[K]{Keyed: keyed, name: name, rate: perSecond}
}

// refusal returns the error of a key without tokens, and sets the RateLimit header fields.
func (l *limits[K]) refusal(h http.Header, wait time.Duration, msg string) error {
	SetRateLimit(h, l.name, int64(l.rate*burstSeconds), burstSeconds*time.Second, 0, wait)
	e := errs.New(errs.RateLimited, "request.rate_limited", "%s", msg)
	e.RetryAfter = wait
	return e
}

// SetRateLimit sets the RateLimit header fields: a policy allows quota requests in a window, of which
// some are left until it resets.
func SetRateLimit(h http.Header, policy string, quota int64, window time.Duration, left int64, resets time.Duration) {
	name := strconv.Quote(policy)
	h.Set("RateLimit-Policy", name+";q="+strconv.FormatInt(quota, 10)+
		";w="+strconv.FormatInt(int64(window/time.Second), 10))
	h.Set("RateLimit", name+";r="+strconv.FormatInt(left, 10)+";t="+strconv.FormatInt(retrySeconds(resets), 10))
}

// Charge counts the request of ctx as n more requests against its caller's rate limit: each item of
// a batch costs as much as a request. If the caller has fewer tokens, none are used and the refusal
// is returned.
func (rt *Router) Charge(ctx context.Context, n int) error {
	x := exchangeOf(ctx)
	if x == nil || x.caller == nil || x.limit == nil || n <= 0 {
		return nil
	}
	wait := x.limit.Take(x.caller.Principal, n, rt.now())
	if wait <= 0 {
		return nil
	}
	msg := "each request of a batch counts against the rate limit; " +
		"wait for the time in Retry-After, or send a smaller batch"
	if burst := x.limit.rate * burstSeconds; n >= burst {
		msg = fmt.Sprintf("a batch of %d requests is larger than the rate limit ever allows; "+
			"send at most %d in one batch", n+1, burst)
	}
	return x.limit.refusal(x.rec.Header(), wait, msg)
}
