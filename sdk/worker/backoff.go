package worker

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/parley-dev/parley/sdk/client"
)

const (
	reportTimeout = 15 * time.Second
	firstPause    = 200 * time.Millisecond
	longestPause  = 10 * time.Second
	longestAfter  = time.Minute // of Retry-After
	// stuckAfter is how long a handler may take to notice that its context ended.
	stuckAfter = 5 * time.Second
)

// once sends a request once: only the worker knows whether a claim or a report may be repeated, and
// how the repetition differs.
var once = client.WithoutRetry()

// isStale reports whether the lease is no longer valid.
func isStale(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusConflict
}

// mayHaveArrived reports whether the server may have carried out a failed request.
func mayHaveArrived(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Status >= 500
	}
	var op *net.OpError
	return !errors.As(err, &op) || op.Op != "dial"
}

// backoff computes growing pauses between attempts.
type backoff struct{ tries int }

func (b *backoff) reset() { b.tries = 0 }

// next returns how long to wait before the next attempt, or false if none can help.
func (b *backoff) next(err error) (time.Duration, bool) {
	var after time.Duration
	var e *Error
	if errors.As(err, &e) {
		after = min(e.RetryAfter, longestAfter)
		passing := e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout || e.Status >= 500
		if !passing {
			return 0, false
		}
	}
	var unsendable *json.MarshalerError
	if errors.As(err, &unsendable) {
		return 0, false
	}
	pause := min(firstPause<<min(b.tries, 10), longestPause)
	b.tries++
	// Spread the pauses, so that workers do not come back all at once.
	return max(after, pause/2+rand.N(pause/2)), true
}

// sleep waits. It reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
