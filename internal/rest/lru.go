package rest

import (
	"container/list"
	"hash/maphash"
	"sync"
)

const lruShards = 16

// lru keeps pages up to a number of bytes and forgets the least recently used
// first. It is cut into shards, so that readers on several cores seldom meet.
type lru struct {
	seed   maphash.Seed
	shards [lruShards]lruShard
}

type lruShard struct {
	mu      sync.Mutex
	entries map[pageKey]*list.Element
	order   list.List // of *lruEntry, the most recently used in front
	bytes   int64
	limit   int64
}

type lruEntry struct {
	key  pageKey
	page *page
	size int64
}

func newLRU(limit int64) *lru {
	l := &lru{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].entries = map[pageKey]*list.Element{}
		l.shards[i].limit = limit / lruShards
	}
	return l
}

func (l *lru) shard(key pageKey) *lruShard {
	return &l.shards[maphash.Comparable(l.seed, key)%lruShards]
}

func (l *lru) get(key pageKey) *page {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	el := s.entries[key]
	if el == nil {
		return nil
	}
	s.order.MoveToFront(el)
	return el.Value.(*lruEntry).page
}

// entryOverhead is what an entry costs beside its strings and its body.
const entryOverhead = 512

func (l *lru) put(key pageKey, p *page) {
	size := int64(len(p.body)+len(key.keyID)+len(key.path)+len(key.query)) + entryOverhead
	for _, link := range p.link {
		size += int64(len(link))
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if el := s.entries[key]; el != nil {
		s.remove(el)
	}
	if size > s.limit {
		return
	}
	s.entries[key] = s.order.PushFront(&lruEntry{key: key, page: p, size: size})
	s.bytes += size
	for s.bytes > s.limit {
		s.remove(s.order.Back())
	}
}

func (s *lruShard) remove(el *list.Element) {
	e := s.order.Remove(el).(*lruEntry)
	delete(s.entries, e.key)
	s.bytes -= e.size
}
