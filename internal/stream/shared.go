package stream

import (
	"context"
	"errors"
	"sync"
)

// shared keeps values that several readers use at the same time, once for all of
// them. A value is made by the first who asks for it, and dropped when no one uses it
// any more: it is no cache.
type shared[K comparable, V any] struct {
	mu sync.Mutex
	m  map[K]*sharedValue[V]
}

type sharedValue[V any] struct {
	users int
	ready chan struct{} // closed when the fields below are set
	value V
	drop  func()
	err   error
}

// use returns the value of a key, made by fresh if there is none. done must be called
// once, unless there is an error. drop, as fresh returns it, is called when the last
// user is done.
func (s *shared[K, V]) use(
	ctx context.Context, key K, fresh func(context.Context) (value V, drop func(), err error),
) (value V, done func(), err error) {
	for {
		v, first := s.join(key)
		if first {
			s.fill(ctx, key, v, fresh)
		}
		select {
		case <-v.ready:
		case <-ctx.Done():
			s.leave(key, v)
			return value, nil, ctx.Err()
		}
		if v.err == nil {
			return v.value, func() { s.leave(key, v) }, nil
		}
		s.leave(key, v)
		if first || ctx.Err() != nil {
			return value, nil, v.err
		}
		// It failed for the one that made it, who may have gone away or be out of its own
		// share; this one tries for itself.
	}
}

// fill makes the value of an entry. If that fails, or panics, whoever comes later tries
// again.
func (s *shared[K, V]) fill(ctx context.Context, key K, v *sharedValue[V], fresh func(context.Context) (V, func(), error)) {
	v.err = errNotMade
	defer func() {
		if v.err != nil {
			s.forget(key, v)
		}
		close(v.ready)
	}()
	v.value, v.drop, v.err = fresh(ctx)
}

var errNotMade = errors.New("a value that several readers share could not be made")

// join returns the entry of a key; first says that the caller must fill it.
func (s *shared[K, V]) join(key K) (v *sharedValue[V], first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v = s.m[key]; v == nil {
		v, first = &sharedValue[V]{ready: make(chan struct{})}, true
		if s.m == nil {
			s.m = map[K]*sharedValue[V]{}
		}
		s.m[key] = v
	}
	v.users++
	return v, first
}

func (s *shared[K, V]) leave(key K, v *sharedValue[V]) {
	s.mu.Lock()
	v.users--
	last := v.users == 0
	if last && s.m[key] == v {
		delete(s.m, key)
	}
	s.mu.Unlock()
	if last && v.drop != nil {
		v.drop()
	}
}

func (s *shared[K, V]) forget(key K, v *sharedValue[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m[key] == v {
		delete(s.m, key)
	}
}
