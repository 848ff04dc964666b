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

// once sends a request once: whether a claim or a report may be repeated, and how it then
// has to look, only the worker knows.
var once = client.WithoutRetry()

// isStale reports that the lease is not live any more.
func isStale(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusConflict
}

// mayHaveArrived reports that a request without a good response may have been carried out.
func mayHaveArrived(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Status >= 500
	}
	var op *net.OpError
	return !errors.As(err, &op) || op.Op != "dial"
}

// backoff makes growing pauses between tries.
type backoff struct{ tries int }

func (b *backoff) reset() { b.tries = 0 }

// next is how long to wait before the next try; false: no try can help.
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
	// Spread, so that workers do not come back all at once.
	return max(after, pause/2+rand.N(pause/2)), true
}

// sleep waits; false: ctx ended first.
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
