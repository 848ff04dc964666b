package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Retry bounds how a request is repeated.
type Retry struct {
	// Attempts is how often a request is sent at most; 5 if zero. 1 turns retries off.
	Attempts int
	// MinWait is the pause before the second attempt, which doubles up to MaxWait: 200 ms
	// and 3 s if zero. Pauses vary at random by half.
	MinWait, MaxWait time.Duration
	// MaxRetryAfter is the longest Retry-After that is waited for; 30 s if zero. A server
	// that asks for more gets no repetition.
	MaxRetryAfter time.Duration
	// OnRetry, if set, is called before each pause.
	OnRetry func(Retrying)
}

// Retrying is a repetition that is about to happen.
type Retrying struct {
	Err    error         // why
	Wait   time.Duration // the pause before
	Stream bool          // a stream continues after its last event
}

func (r Retry) withDefaults() Retry {
	if r.Attempts <= 0 {
		r.Attempts = 5
	}
	if r.MinWait <= 0 {
		r.MinWait = 200 * time.Millisecond
	}
	if r.MaxWait <= 0 {
		r.MaxWait = 3 * time.Second
	}
	r.MaxWait = max(r.MaxWait, r.MinWait)
	if r.MaxRetryAfter <= 0 {
		r.MaxRetryAfter = 30 * time.Second
	}
	return r
}

// repeat runs try until it succeeds or another attempt is no use.
func (c *Client) repeat(ctx context.Context, r *call, try func() ([]byte, error)) ([]byte, error) {
	for attempt := 1; ; attempt++ {
		body, err := try()
		if err == nil || ctx.Err() != nil || r.single || attempt >= c.retry.Attempts {
			return body, err
		}
		wait, again := c.retry.after(err, attempt, r.repeatable())
		if !again {
			return nil, err
		}
		if err := c.pause(ctx, Retrying{Err: err, Wait: wait}); err != nil {
			return nil, err
		}
	}
}

func (c *Client) pause(ctx context.Context, r Retrying) error {
	if c.retry.OnRetry != nil {
		c.retry.OnRetry(r)
	}
	return c.sleep(ctx, r.Wait)
}

// after decides whether a failed request is sent again, and after which pause. A request
// that is not repeatable is sent again only if it certainly was not carried out.
func (r Retry) after(err error, attempt int, repeatable bool) (time.Duration, bool) {
	wait := r.MaxWait
	if attempt < 30 {
		wait = min(r.MinWait<<(attempt-1), r.MaxWait)
	}
	wait = wait/2 + rand.N(wait)
	var refused *Error
	var lost *ConnectionError
	switch {
	case errors.As(err, &refused):
		return max(wait, refused.RetryAfter), refused.RetryAfter <= r.MaxRetryAfter && refused.passes(repeatable)
	case errors.As(err, &lost):
		return wait, repeatable || lost.NotSent()
	}
	return 0, false
}

// passes reports whether the same request may succeed later. Only Parley's own refusals,
// which have a code, say that the request was not carried out; a proxy may send the same
// status for a request that was.
func (e *Error) passes(repeatable bool) bool {
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return repeatable || e.Code != ""
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return repeatable
	}
	return false
}

func parseRetryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(s); err == nil && n >= 0 {
		return time.Duration(min(n, 1<<20)) * time.Second
	}
	if t, err := http.ParseTime(s); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}
