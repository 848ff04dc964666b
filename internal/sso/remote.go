package sso

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	askWithin   = 10 * time.Second // time limit of one request
	maxResponse = 1 << 20
)

// newClient returns the HTTP client for providers. Requests have a time limit, responses a
// size limit, and redirects to another host are not followed.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone() // uses the proxy of the environment
	t.MaxIdleConnsPerHost = 4
	sameHost := func(r *http.Request, via []*http.Request) error {
		if len(via) > 3 || r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme {
			return errors.New("the provider redirects to another host, which is not followed")
		}
		return nil
	}
	return &http.Client{Timeout: askWithin, Transport: bounded{t}, CheckRedirect: sameHost}
}

// bounded limits responses to maxResponse bytes.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.next.RoundTrip(r)
	if err == nil {
		res.Body = &boundedBody{res.Body, maxResponse}
	}
	return res, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the response of the provider is larger than %d bytes", maxResponse)
	}
	return n, err
}

// remote caches a document of a provider. The document is fetched when it is first needed, once
// for all callers that wait, and again in the background when it is old. If that fails, the old
// document stays in use.
type remote[T any] struct {
	load  func(context.Context) (T, error)
	now   func() time.Time
	fresh time.Duration // age at which it is fetched again
	pause time.Duration // minimum time between two attempts

	mu       sync.Mutex
	value    T
	loaded   time.Time // zero: never
	tried    time.Time
	err      error         // of the last attempt
	underway chan struct{} // closed when the running fetch ends; nil: none is running
}

// errTooSoon is the error for a renewal within the pause.
var errTooSoon = errors.New("the last request to the provider was too recent")

// get returns the cached document, or fetches it.
func (r *remote[T]) get(ctx context.Context) (T, error) {
	r.mu.Lock()
	if !r.loaded.IsZero() {
		if r.now().Sub(r.loaded) >= r.fresh {
			r.start(false) // in the background
		}
		defer r.mu.Unlock()
		return r.value, nil
	}
	return r.wait(ctx, false)
}

// renew fetches the document again. Within the pause it returns errTooSoon, unless the caller
// insists.
func (r *remote[T]) renew(ctx context.Context, insist bool) (T, error) {
	r.mu.Lock()
	return r.wait(ctx, insist)
}

// wait must be called with the lock held. It releases the lock.
func (r *remote[T]) wait(ctx context.Context, insist bool) (T, error) {
	var none T
	done := r.start(insist)
	if done == nil {
		defer r.mu.Unlock()
		if r.err != nil {
			return none, r.err
		}
		return none, errTooSoon
	}
	r.mu.Unlock()
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case <-done:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return none, r.err
	}
	return r.value, nil
}

// start fetches the document in a goroutine, unless one is running. The fetch does not depend
// on the context of a caller, since other callers wait for it, too. start returns nil within
// the pause.
func (r *remote[T]) start(insist bool) chan struct{} {
	if r.underway != nil {
		return r.underway
	}
	if now := r.now(); !insist && !r.tried.IsZero() && now.Sub(r.tried) < r.pause {
		return nil
	}
	r.tried = r.now()
	done := make(chan struct{})
	r.underway = done
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), askWithin)
		defer cancel()
		v, err := r.load(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.err = err; err == nil {
			r.value, r.loaded = v, r.now()
		}
		r.underway = nil
		close(done)
	}()
	return done
}
