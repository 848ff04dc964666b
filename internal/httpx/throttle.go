package httpx

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/parley-dev/parley/internal/errs"
)

// Throttle slows down what each key does, far below the rates of requests: logins
// and registrations.
type Throttle struct {
	every time.Duration
	burst int
	now   func() time.Time

	mu   sync.Mutex
	keys map[string]*rate.Limiter
}

const maxThrottled = 20_000

// NewThrottle lets a key act burst times at once, and once more after each every.
func NewThrottle(every time.Duration, burst int, now func() time.Time) *Throttle {
	return &Throttle{every: every, burst: burst, now: now, keys: map[string]*rate.Limiter{}}
}

// Take uses one turn of the key; without one left it returns the refusal.
func (t *Throttle) Take(key string) error { return t.use(key, 1) }

// GiveBack undoes a Take of the key: the attempt was not one of those that are counted.
func (t *Throttle) GiveBack(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.keys[key]; l != nil {
		l.AllowN(t.now(), -1) // the limiter keeps it at the burst
	}
}

// Check is Take that uses nothing up.
func (t *Throttle) Check(key string) error { return t.use(key, 0) }

func (t *Throttle) use(key string, n int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	l := t.keys[key]
	if l == nil {
		if len(t.keys) >= maxThrottled {
			t.sweep(now)
		}
		l = rate.NewLimiter(rate.Every(t.every), t.burst)
		t.keys[key] = l
	}
	if l.TokensAt(now) >= 1 {
		l.AllowN(now, n)
		return nil
	}
	e := errs.New(errs.RateLimited, "request.rate_limited", "too many attempts; wait a moment and try again")
	e.RetryAfter = t.every
	return e
}

// sweep forgets keys that have all their turns back, and any if that is not enough.
func (t *Throttle) sweep(now time.Time) {
	for k, l := range t.keys {
		if l.TokensAt(now) >= float64(t.burst) {
			delete(t.keys, k)
		}
	}
	for k := range t.keys {
		if len(t.keys) < maxThrottled/2 {
			return
		}
		delete(t.keys, k)
	}
}
