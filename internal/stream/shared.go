package stream

import (
	"context"
	"errors"
	"sync"
)

// shared holds values that several readers use at the same time. The first reader makes a
// value, and it is dropped when the last one is done. It differs from cache.Flights in that a
// value lives as long as it is used, and holds memory from the budget meanwhile.
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

// use returns the value of a key and calls fresh to make it if there is none. The caller must
// call done once, unless there is an error. The drop function that fresh returns is called when
// the last user is done.
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
		// The reader that made it failed. It may have disconnected or used up its share of
		// memory, so this reader tries itself.
	}
}

// fill makes the value of an entry. If that fails or panics, the entry is removed, so that the
// next reader tries again.
func (s *shared[K, V]) fill(
	ctx context.Context, key K, v *sharedValue[V], fresh func(context.Context) (V, func(), error),
) {
	v.err = errNotMade
	defer func() {
		if v.err != nil {
			s.forget(key, v)
		}
		close(v.ready)
	}()
	v.value, v.drop, v.err = fresh(ctx)
}

var errNotMade = errors.New("stream: making a shared value failed")

// join returns the entry of a key. If first is true, the caller must fill it.
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
