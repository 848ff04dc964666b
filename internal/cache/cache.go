// Package cache keeps values in memory within a limit. It evicts the least recently used
// values, and those that are too old.
//
// A value that was read during a change must not be cached. Take a Mark before the read: Put
// stores nothing if a key in the same shard was dropped since. Flights makes concurrent callers
// share one computation. The package knows nothing about the values.
package cache

import (
	"container/list"
	"hash/maphash"
	"sync"
	"time"
)

// Options configure a cache.
type Options[K comparable, V any] struct {
	// Max limits the sum of the sizes of all values.
	Max int64
	// Size returns the size of a value. By default each value counts 1.
	Size func(K, V) int64
	// For is how long a value is kept. 0 means no limit.
	For time.Duration
	Now func() time.Time // default time.Now
	// Shards is the number of locks, by default 16. Each shard has its part of Max, so a cache
	// of few or large values needs few shards.
	Shards int
}

// Cache keeps values by key. Callers share the values and must not change them.
type Cache[K comparable, V any] struct {
	o      Options[K, V]
	seed   maphash.Seed
	shards []shard[K, V]
}

type shard[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]*list.Element
	order   list.List // of *entry, the most recently used first
	size    int64
	drops   uint64 // number of drops

	hits, misses uint64
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int64
	at    time.Time
}

// New returns an empty cache.
func New[K comparable, V any](o Options[K, V]) *Cache[K, V] {
	if o.Shards == 0 {
		o.Shards = 16
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Size == nil {
		o.Size = func(K, V) int64 { return 1 }
	}
	c := &Cache[K, V]{o: o, seed: maphash.MakeSeed(), shards: make([]shard[K, V], o.Shards)}
	for i := range c.shards {
		c.shards[i].entries = map[K]*list.Element{}
	}
	return c
}

func (c *Cache[K, V]) shard(key K) *shard[K, V] {
	if len(c.shards) == 1 {
		return &c.shards[0]
	}
	return &c.shards[maphash.Comparable(c.seed, key)%uint64(len(c.shards))]
}

// Get returns the cached value of a key.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	el := s.entries[key]
	if el == nil {
		s.misses++
		return value, false
	}
	e := el.Value.(*entry[K, V])
	if c.o.For > 0 && c.o.Now().Sub(e.at) >= c.o.For {
		s.misses++
		s.remove(el)
		return value, false
	}
	s.hits++
	s.order.MoveToFront(el)
	return e.value, true
}

// Peek is Get for a second look at the same key: it changes neither Stats nor what is evicted next.
func (c *Cache[K, V]) Peek(key K) (value V, ok bool) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	el := s.entries[key]
	if el == nil {
		return value, false
	}
	e := el.Value.(*entry[K, V])
	if c.o.For > 0 && c.o.Now().Sub(e.at) >= c.o.For {
		return value, false
	}
	return e.value, true
}

// Mark is a point in time of a cache.
type Mark struct {
	drops uint64
	at    time.Time
}

// Mark returns a mark to take before the value of the key is read from its source.
func (c *Cache[K, V]) Mark(key K) Mark {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return Mark{drops: s.drops, at: c.at()}
}

// at returns the time of a new value, or zero if values do not expire.
func (c *Cache[K, V]) at() (now time.Time) {
	if c.o.For > 0 {
		now = c.o.Now()
	}
	return now
}

// Put stores a value that was read after the mark, unless a key of the shard was dropped since.
// Its age counts from the mark.
func (c *Cache[K, V]) Put(key K, value V, m Mark) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drops == m.drops {
		c.keep(s, &entry[K, V]{key: key, value: value, at: m.at})
	}
}

// Set stores a value unconditionally.
func (c *Cache[K, V]) Set(key K, value V) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.keep(s, &entry[K, V]{key: key, value: value, at: c.at()})
}

func (c *Cache[K, V]) keep(s *shard[K, V], e *entry[K, V]) {
	if old := s.entries[e.key]; old != nil {
		s.remove(old)
	}
	most := c.o.Max / int64(len(c.shards))
	if e.size = c.o.Size(e.key, e.value); e.size > most {
		return
	}
	for s.size+e.size > most {
		s.remove(s.order.Back())
	}
	s.entries[e.key] = s.order.PushFront(e)
	s.size += e.size
}

func (s *shard[K, V]) remove(el *list.Element) {
	e := s.order.Remove(el).(*entry[K, V])
	delete(s.entries, e.key)
	s.size -= e.size
}

// Drop removes a key whose value has changed.
func (c *Cache[K, V]) Drop(key K) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops++
	if el := s.entries[key]; el != nil {
		s.remove(el)
	}
}

// DropFunc removes all keys for which drop returns true. It visits every key.
func (c *Cache[K, V]) DropFunc(drop func(K) bool) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.drops++
		for key, el := range s.entries {
			if drop(key) {
				s.remove(el)
			}
		}
		s.mu.Unlock()
	}
}

// Clear removes all values.
func (c *Cache[K, V]) Clear() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.drops++
		clear(s.entries)
		s.order.Init()
		s.size = 0
		s.mu.Unlock()
	}
}

// Len returns the number of values.
func (c *Cache[K, V]) Len() (n int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n += len(s.entries)
		s.mu.Unlock()
	}
	return n
}

// Stats counts the look-ups of a cache.
type Stats struct{ Hits, Misses uint64 }

// Stats returns how many calls of Get found a value, and how many did not.
func (c *Cache[K, V]) Stats() (out Stats) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		out.Hits += s.hits
		out.Misses += s.misses
		s.mu.Unlock()
	}
	return out
}
