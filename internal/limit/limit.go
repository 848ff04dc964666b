// Package limit counts what each key does and says when it has done too much: one token
// bucket for each key, and a bound on the number of keys. It knows neither HTTP nor what a
// key is; the caller turns a wait into a refusal.
package limit

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const shards = 16

// Keyed holds one token bucket for each key. A nil *Keyed allows everything.
//
// A bucket that is full equals a new one, so forgetting it loses nothing. Only a flood of
// keys can reach the bound; then half of the buckets are dropped, which forgives each at
// most one burst.
type Keyed[K comparable] struct {
	rate   rate.Limit
	burst  int
	most   int // buckets of one shard
	seed   maphash.Seed
	shards [shards]shard[K]
}

type shard[K comparable] struct {
	mu      sync.Mutex
	buckets map[K]*rate.Limiter
	sweepAt int // the size at which full buckets are looked for
}

const firstSweep = 64

// New lets a key act burst times at once, and perSecond times a second after that. It
// remembers about as many keys as given. A rate of 0 or less makes nil.
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

// Take uses n tokens of the key, or none: then it returns how long to wait for them.
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

// Check is Take of one token that uses nothing up.
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
		l.bucket(key, now).AllowN(now, -n) // the bucket holds no more than the burst
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
	// The next sweep comes when twice as many are there, so that it costs the same
	// per new key however many there are.
	s.sweepAt = min(l.most, max(firstSweep, 2*len(s.buckets)))
}
