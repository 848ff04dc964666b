package httpx

import (
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/limit"
)

// Throttle limits rare actions per key, such as logins and registrations.
type Throttle struct {
	every time.Duration
	now   func() time.Time
	keys  *limit.Keyed[string]
}

const maxThrottled = 20_000

// NewThrottle lets a key act burst times at once, then once per interval every.
func NewThrottle(every time.Duration, burst int, now func() time.Time) *Throttle {
	return &Throttle{every: every, now: now, keys: limit.New[string](1/every.Seconds(), burst, maxThrottled)}
}

// Take uses one turn of the key. It returns an error if there is none left.
func (t *Throttle) Take(key string) error { return t.refusal(t.keys.Take(key, 1, t.now())) }

// GiveBack undoes a Take, for an attempt that does not count.
func (t *Throttle) GiveBack(key string) { t.keys.GiveBack(key, 1, t.now()) }

// Check is like Take but uses no turn.
func (t *Throttle) Check(key string) error { return t.refusal(t.keys.Check(key, t.now())) }

func (t *Throttle) refusal(wait time.Duration) error {
	if wait == 0 {
		return nil
	}
	e := errs.New(errs.RateLimited, "request.rate_limited", "too many attempts; wait a moment and try again")
	e.RetryAfter = t.every
	return e
}
