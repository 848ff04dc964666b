package httpx

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

const shareShards = 16

// shares counts what each key holds at the moment. Counting takes a read lock only, so that many
// requests of one key do not wait for each other.
type shares[K comparable] struct {
	seed   maphash.Seed
	shards [shareShards]shareShard[K]
}

type shareShard[K comparable] struct {
	mu      sync.RWMutex
	held    map[K]*atomic.Int64
	sweepAt int // size at which keys that hold nothing are dropped
}

func newShares[K comparable]() *shares[K] {
	s := &shares[K]{seed: maphash.MakeSeed()}
	for i := range s.shards {
		s.shards[i] = shareShard[K]{held: map[K]*atomic.Int64{}, sweepAt: 64}
	}
	return s
}

// take adds one to the count of the key and returns the count, which the caller decrements when
// done. It returns nil if the key holds most already.
func (s *shares[K]) take(key K, most int) *atomic.Int64 {
	sh := &s.shards[maphash.Comparable(s.seed, key)%shareShards]
	sh.mu.RLock()
	n := sh.held[key]
	if n != nil {
		n = takeOne(n, most)
		sh.mu.RUnlock()
		return n
	}
	sh.mu.RUnlock()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if n = sh.held[key]; n == nil {
		if len(sh.held) >= sh.sweepAt {
			sh.sweep()
		}
		n = new(atomic.Int64)
		sh.held[key] = n
	}
	return takeOne(n, most)
}

func takeOne(n *atomic.Int64, most int) *atomic.Int64 {
	if n.Add(1) > int64(most) {
		n.Add(-1)
		return nil
	}
	return n
}

// sweep drops keys that hold nothing. Counts are only incremented under the lock, so none is lost.
func (sh *shareShard[K]) sweep() {
	for k, n := range sh.held {
		if n.Load() == 0 {
			delete(sh.held, k)
		}
	}
	sh.sweepAt = max(64, 2*len(sh.held))
}
