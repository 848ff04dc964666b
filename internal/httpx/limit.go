package httpx

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/parley-dev/parley/internal/errs"
)

const (
	burstSeconds = 5 // a burst is what five seconds of the rate allow
	limitShards  = 16
	// maxBuckets bounds one shard. Only a flood of addresses can reach it; then half
	// of the buckets are dropped, which forgives each at most one burst.
	maxBuckets = 8192
)

// limits holds one token bucket for each key. A bucket that was left alone for
// burstSeconds is full again and equals a new one, so forgetting it loses nothing.
type limits[K comparable] struct {
	name   string // of the policy, in the RateLimit fields
	rate   int
	seed   maphash.Seed
	shards [limitShards]limitShard[K]
}

type limitShard[K comparable] struct {
	mu      sync.Mutex
	buckets map[K]*bucket
	sweepAt int // the size at which idle buckets are looked for
}

type bucket struct {
	limiter *rate.Limiter
	used    time.Time
}

// newLimits returns nil for a rate of 0: nil allows everything.
func newLimits[K comparable](name string, perSecond int) *limits[K] {
	if perSecond <= 0 {
		return nil
	}
	l := &limits[K]{name: name, rate: perSecond, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i] = limitShard[K]{buckets: map[K]*bucket{}, sweepAt: 64}
	}
	return l
}

// take uses one token of the key; if there is none, it returns how long to wait.
func (l *limits[K]) take(key K, now time.Time) (wait time.Duration) { return l.takeN(key, 1, now) }

// takeN uses n tokens of the key, or none: then it returns how long to wait.
func (l *limits[K]) takeN(key K, n int, now time.Time) (wait time.Duration) {
	if l == nil {
		return 0
	}
	lim := l.limiter(key, now)
	if lim.AllowN(now, n) {
		return 0
	}
	missing := float64(n) - lim.TokensAt(now)
	return max(time.Millisecond, time.Duration(math.Ceil(missing/float64(l.rate)*float64(time.Second))))
}

func (l *limits[K]) limiter(key K, now time.Time) *rate.Limiter {
	s := &l.shards[maphash.Comparable(l.seed, key)%limitShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[key]
	if b == nil {
		if len(s.buckets) >= s.sweepAt {
			s.sweep(now)
		}
		b = &bucket{limiter: rate.NewLimiter(rate.Limit(l.rate), l.rate*burstSeconds)}
		s.buckets[key] = b
	}
	b.used = now
	return b.limiter
}

func (s *limitShard[K]) sweep(now time.Time) {
	for k, b := range s.buckets {
		if now.Sub(b.used) >= burstSeconds*time.Second {
			delete(s.buckets, k)
		}
	}
	if len(s.buckets) > maxBuckets/2 {
		for k := range s.buckets {
			if len(s.buckets) <= maxBuckets/2 {
				break
			}
			delete(s.buckets, k)
		}
	}
	// The next sweep comes when twice as many are there, so that it costs the same
	// per new key however many there are.
	s.sweepAt = max(64, 2*len(s.buckets))
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
	wait := x.limit.takeN(x.caller.Principal, n, rt.now())
	if wait <= 0 {
		return nil
	}
	msg := "each request of a batch counts against the rate limit; wait as long as Retry-After says, or send a smaller batch"
	if burst := x.limit.rate * burstSeconds; n >= burst {
		msg = fmt.Sprintf("a batch of %d requests is larger than the rate limit ever allows; send at most %d in one batch", n+1, burst)
	}
	return x.limit.refusal(x.rec.Header(), wait, msg)
}
