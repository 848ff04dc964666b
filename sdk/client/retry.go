package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Retry configures how a request is repeated.
type Retry struct {
	// Attempts is the maximum number of attempts; 5 if zero. 1 turns retries off.
	Attempts int
	// MinWait is the pause before the second attempt, which doubles up to MaxWait: 200 ms
	// and 3 s if zero. Pauses vary at random by half.
	MinWait, MaxWait time.Duration
	// MaxRetryAfter is the longest Retry-After that the client waits for; 30 s if zero. If the
	// server asks for more, the request is not repeated.
	MaxRetryAfter time.Duration
	// OnRetry, if set, is called before each pause.
	OnRetry func(Retrying)
}

// Retrying describes a repetition that is about to happen.
type Retrying struct {
	Err     error         // the reason
	Wait    time.Duration // the pause before
	Left    time.Duration // this pause and all that may follow take no longer, if the server asks for no more
	Attempt int           // 1 for the first repetition; a stream counts anew after each event
	Stream  bool          // a stream continues after its last event
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

// repeat runs try until it succeeds or another attempt cannot help.
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
		left := c.retry.left(err, wait, attempt, c.retry.Attempts)
		if err := c.pause(ctx, Retrying{Err: err, Wait: wait, Left: left, Attempt: attempt}); err != nil {
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

// after decides whether a failed request is sent again, and after which pause. A request that is
// not repeatable is sent again only if it certainly was not carried out.
func (r Retry) after(err error, attempt int, repeatable bool) (time.Duration, bool) {
	wait := r.backoff(attempt)
	wait = wait/2 + rand.N(wait)
	var refused *Error
	var lost *ConnectionError
	switch {
	case errors.As(err, &refused):
		again := refused.RetryAfter <= r.MaxRetryAfter && refused.passes(repeatable)
		return max(wait, refused.RetryAfter), again
	case errors.As(err, &lost):
		return wait, !lost.Permanent() && (repeatable || lost.NotSent())
	}
	return 0, false
}

// backoff returns the mean pause after so many attempts.
func (r Retry) backoff(attempt int) time.Duration {
	if attempt < 30 {
		return min(r.MinWait<<(attempt-1), r.MaxWait)
	}
	return r.MaxWait
}

// left returns the longest time that a pause and those after it take.
func (r Retry) left(err error, wait time.Duration, attempt, attempts int) time.Duration {
	var least time.Duration
	var refused *Error
	if errors.As(err, &refused) {
		least = refused.RetryAfter
	}
	for a := attempt + 1; a < attempts; a++ {
		wait += max(least, r.backoff(a)*3/2)
	}
	return wait
}

// passes reports whether the same request may succeed later. Only refusals of Parley, which have a
// code, mean that the request was not carried out; a proxy may send the same status for a request
// that was.
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
