package httpx

import (
	"hash/maphash"
	"sync"
)

// shares counts what each key holds at the moment. A key that holds nothing costs
// nothing.
type shares[K comparable] struct {
	seed   maphash.Seed
	shards [limitShards]shareShard[K]
}

type shareShard[K comparable] struct {
	mu   sync.Mutex
	held map[K]int
}

func newShares[K comparable]() *shares[K] {
	s := &shares[K]{seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i].held = map[K]int{}
	}
	return s
}

func (s *shares[K]) shard(key K) *shareShard[K] {
	return &s.shards[maphash.Comparable(s.seed, key)%limitShards]
}

// take adds one to what the key holds, unless it holds most already.
func (s *shares[K]) take(key K, most int) bool {
	sh := s.shard(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	n := sh.held[key]
	if n >= most {
		return false
	}
	sh.held[key] = n + 1
	return true
}

// give takes one from what the key holds.
func (s *shares[K]) give(key K) {
	sh := s.shard(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if n := sh.held[key]; n > 1 {
		sh.held[key] = n - 1
	} else {
		delete(sh.held, key)
	}
}
