package cache

import (
	"context"
	"errors"
	"sync"
)

// Flights makes concurrent callers of the same key share one computation: the first computes
// the value, the others wait for it. The zero value is ready to use.
type Flights[K comparable, V any] struct {
	mu sync.Mutex
	m  map[K]*Flight[K, V]
}

// Flight is one computation.
type Flight[K comparable, V any] struct {
	flights *Flights[K, V]
	key     K
	done    chan struct{}
	value   V // value and err are set before done is closed
	err     error
}

// ErrAbandoned is the error of waiters if the first caller gave up.
var ErrAbandoned = errors.New("cache: the computation was abandoned")

// Join returns the flight of a key. If first is true, the caller must compute the value and call
// Land or Abandon, by defer if it can panic.
func (f *Flights[K, V]) Join(key K) (flight *Flight[K, V], first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if flight = f.m[key]; flight != nil {
		return flight, false
	}
	if f.m == nil {
		f.m = map[K]*Flight[K, V]{}
	}
	flight = &Flight[K, V]{flights: f, key: key, done: make(chan struct{})}
	f.m[key] = flight
	return flight, true
}

// Land passes the result to the waiters. Only the first call has an effect.
func (f *Flight[K, V]) Land(value V, err error) {
	f.flights.mu.Lock()
	defer f.flights.mu.Unlock()
	if f.flights.m[f.key] != f {
		return
	}
	delete(f.flights.m, f.key)
	f.value, f.err = value, err
	close(f.done)
}

// Abandon ends the flight with ErrAbandoned. It has no effect after Land.
func (f *Flight[K, V]) Abandon() {
	var none V
	f.Land(none, ErrAbandoned)
}

// Wait waits for the result or the end of ctx.
func (f *Flight[K, V]) Wait(ctx context.Context) (value V, err error) {
	select {
	case <-f.done:
		return f.value, f.err
	default:
	}
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}
