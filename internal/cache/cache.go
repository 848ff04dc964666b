// Package cache keeps values in memory within a bound. It forgets the least recently used
// first, and what is too old.
//
// A value that was read while somebody changed what it was read from must not be kept: take
// a Mark before the read, and Put keeps nothing if the key's part of the cache was dropped
// from since.
package cache

import (
	"container/list"
	"hash/maphash"
	"sync"
	"time"
)

// Options are the bounds of a cache.
type Options[K comparable, V any] struct {
	// Max is the sum of the sizes of all values.
	Max int64
	// Size is what a value counts; nil: each counts one.
	Size func(K, V) int64
	// For is how long a value is kept; 0: as long as there is room.
	For time.Duration
	Now func() time.Time // nil: time.Now
	// Shards is how many locks there are. Each has its part of Max, so a cache of few or of
	// large values needs few. 0: 16.
	Shards int
}

// Cache keeps values by key. Values are shared by all who get them.
type Cache[K comparable, V any] struct {
	o      Options[K, V]
	seed   maphash.Seed
	shards []shard[K, V]
}

type shard[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]*list.Element
	order   list.List // of *entry, the most recently used in front
	size    int64
	drops   uint64 // grows with every drop
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int64
	at    time.Time
}

// New makes an empty cache.
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

// Get returns the value of a key.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	el := s.entries[key]
	if el == nil {
		return value, false
	}
	e := el.Value.(*entry[K, V])
	if c.o.For > 0 && c.o.Now().Sub(e.at) >= c.o.For {
		s.remove(el)
		return value, false
	}
	s.order.MoveToFront(el)
	return e.value, true
}

// Mark is a moment in the life of a cache.
type Mark struct {
	drops uint64
	at    time.Time
}

// Mark is taken before a value of the key is read from elsewhere.
func (c *Cache[K, V]) Mark(key K) Mark {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return Mark{drops: s.drops, at: c.at()}
}

// at is the time of a value that is kept; nobody looks at that of one that does not age.
func (c *Cache[K, V]) at() (now time.Time) {
	if c.o.For > 0 {
		now = c.o.Now()
	}
	return now
}

// Put keeps a value that was read after the mark, unless something was dropped since. Its
// age counts from the mark.
func (c *Cache[K, V]) Put(key K, value V, m Mark) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drops == m.drops {
		c.keep(s, &entry[K, V]{key: key, value: value, at: m.at})
	}
}

// Set keeps a value whatever was dropped.
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

// Drop forgets a key whose value has changed.
func (c *Cache[K, V]) Drop(key K) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops++
	if el := s.entries[key]; el != nil {
		s.remove(el)
	}
}

// DropFunc forgets all keys for which drop is true. It looks at every key.
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

// Clear forgets everything.
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

// Len is how many values are kept.
func (c *Cache[K, V]) Len() (n int) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n += len(s.entries)
		s.mu.Unlock()
	}
	return n
}
