package cache

import (
	"context"
	"errors"
	"sync"
)

// Flights are values that are being made. Whoever asks for one that somebody makes already
// waits for it. The zero value is ready.
type Flights[K comparable, V any] struct {
	mu sync.Mutex
	m  map[K]*Flight[K, V]
}

// Flight is one value that is being made.
type Flight[K comparable, V any] struct {
	flights *Flights[K, V]
	key     K
	done    chan struct{}
	value   V // these two are read once done is closed
	err     error
}

// ErrAbandoned is what waiters get if whoever made the value gave up without a result.
var ErrAbandoned = errors.New("cache: making the value ended early")

// Join returns the flight of a key. The first who joins makes the value and must call Land
// or Abandon, by defer if making it can panic.
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

// Land gives the result to those who wait. Only the first call counts.
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

// Abandon lets those go on who wait, with ErrAbandoned. After Land it has no effect.
func (f *Flight[K, V]) Abandon() {
	var none V
	f.Land(none, ErrAbandoned)
}

// Wait returns the result. It waits no longer than ctx lasts.
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
