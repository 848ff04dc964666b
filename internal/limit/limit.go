// Package limit is a rate limiter with one token bucket per key and a bound on the number of keys.
// It knows neither HTTP nor what a key is; callers turn a wait into a refusal.
package limit

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const shards = 16

// Keyed holds one token bucket per key. A nil *Keyed has no limits.
//
// A full bucket equals a new one, so dropping it loses nothing. Only a flood of keys can reach the
// bound; then half of the buckets are dropped, which gives each of their keys at most one extra
// burst.
type Keyed[K comparable] struct {
	rate   rate.Limit
	burst  int
	most   int // maximum number of buckets in one shard
	seed   maphash.Seed
	shards [shards]shard[K]
}

type shard[K comparable] struct {
	mu      sync.Mutex
	buckets map[K]*rate.Limiter
	sweepAt int // size at which full buckets are dropped
}

const firstSweep = 64

// New lets a key act burst times at once, then perSecond times a second. It remembers about the
// given number of keys. It returns nil for a rate of 0 or less.
func New[K comparable](perSecond float64, burst, keys int) *Keyed[K] {
	if perSecond <= 0 {
		return nil
	}
	l := &Keyed[K]{rate: rate.Limit(perSecond), burst: burst, most: max(keys/shards, 2), seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i] = shard[K]{buckets: map[K]*rate.Limiter{}, sweepAt: min(firstSweep, l.most)}
	}
	return l
}

// Take uses n tokens of the key. If there are too few, it uses none and returns how long to wait.
func (l *Keyed[K]) Take(key K, n int, now time.Time) (wait time.Duration) {
	if l == nil {
		return 0
	}
	b := l.bucket(key, now)
	if b.AllowN(now, n) {
		return 0
	}
	return l.wait(b, n, now)
}

// Check is like Take of one token, but uses none.
func (l *Keyed[K]) Check(key K, now time.Time) (wait time.Duration) {
	if l == nil {
		return 0
	}
	b := l.bucket(key, now)
	if b.TokensAt(now) >= 1 {
		return 0
	}
	return l.wait(b, 1, now)
}

// GiveBack undoes a Take of n tokens.
func (l *Keyed[K]) GiveBack(key K, n int, now time.Time) {
	if l != nil {
		l.bucket(key, now).AllowN(now, -n) // a bucket never holds more than the burst
	}
}

func (l *Keyed[K]) wait(b *rate.Limiter, n int, now time.Time) time.Duration {
	missing := float64(n) - b.TokensAt(now)
	return max(time.Millisecond, time.Duration(math.Ceil(missing/float64(l.rate)*float64(time.Second))))
}

func (l *Keyed[K]) bucket(key K, now time.Time) *rate.Limiter {
	s := &l.shards[maphash.Comparable(l.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[key]
	if b == nil {
		if len(s.buckets) >= s.sweepAt {
			l.sweep(s, now)
		}
		b = rate.NewLimiter(l.rate, l.burst)
		s.buckets[key] = b
	}
	return b
}

func (l *Keyed[K]) sweep(s *shard[K], now time.Time) {
	for k, b := range s.buckets {
		if b.TokensAt(now) >= float64(l.burst) {
			delete(s.buckets, k)
		}
	}
	for k := range s.buckets {
		if len(s.buckets) <= l.most/2 {
			break
		}
		delete(s.buckets, k)
	}
	// Sweep again at twice the size, so that the cost per new key stays constant.
	s.sweepAt = min(l.most, max(firstSweep, 2*len(s.buckets)))
}
