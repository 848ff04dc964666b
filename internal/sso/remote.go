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
	askWithin   = 10 * time.Second // how long a provider may take for one answer
	maxResponse = 1 << 20
)

// newClient makes the client for requests to providers: each takes a bounded time,
// reads a bounded answer, and stays at the host that the operator or the provider
// itself has named.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone() // with the environment's proxy, as operators expect
	t.MaxIdleConnsPerHost = 4
	return &http.Client{Timeout: askWithin, Transport: bounded{t}, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > 3 || r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme {
			return errors.New("the provider redirects elsewhere, which is not followed")
		}
		return nil
	}}
}

// bounded lets answers have maxResponse bytes.
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
		return 0, fmt.Errorf("the provider's answer is larger than %d bytes", maxResponse)
	}
	return n, err
}

// remote is something that a provider publishes. It is read when it is first needed,
// by one reader for all who wait, and again in the background when it is old. When
// that fails, what is known stays in use.
type remote[T any] struct {
	load  func(context.Context) (T, error)
	now   func() time.Time
	fresh time.Duration // how old it may get before it is read again
	pause time.Duration // between two attempts, whoever asks for them

	mu       sync.Mutex
	value    T
	loaded   time.Time // zero: never
	tried    time.Time
	err      error         // of the last attempt
	underway chan struct{} // nil: nobody reads
}

// errTooSoon is the refusal to ask the provider again so soon.
var errTooSoon = errors.New("the provider was asked a moment ago")

// get returns what is known, or waits for it.
func (r *remote[T]) get(ctx context.Context) (T, error) {
	r.mu.Lock()
	if !r.loaded.IsZero() {
		if r.now().Sub(r.loaded) >= r.fresh {
			r.start(false) // nobody waits for it
		}
		defer r.mu.Unlock()
		return r.value, nil
	}
	return r.wait(ctx, false)
}

// renew waits for what is newer than the call. Unless the caller insists, the
// provider is not asked again within the pause: then it is errTooSoon.
func (r *remote[T]) renew(ctx context.Context, insist bool) (T, error) {
	r.mu.Lock()
	return r.wait(ctx, insist)
}

// wait is called with the lock, and gives it back.
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

// start has one goroutine read, with a time of its own: that one who waits goes away
// must not spoil it for the others. It returns nil when it is too soon.
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
