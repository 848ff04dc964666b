package stream

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/parley-dev/parley/internal/task"
)

// Cache keeps whole tasks that were read lately, because callers poll. It is sound if
// whoever writes a task drops it before the write is answered and, where other processes
// write too, only tasks that ended are put, which never change.
type Cache struct {
	seed   maphash.Seed
	shards [16]shard
}

type shard struct {
	mu    sync.Mutex
	tasks map[task.Key]task.Task
	size  int64
	drops uint64 // grows with every drop; tells a read that it may be out of date
}

const (
	maxCached = 2 << 20  // bytes a shard
	maxEntry  = 64 << 10 // bytes of one task
)

// NewCache makes an empty cache.
func NewCache() *Cache { return &Cache{seed: maphash.MakeSeed()} }

func (c *Cache) shard(k task.Key) *shard {
	return &c.shards[maphash.Comparable(c.seed, k)%uint64(len(c.shards))]
}

// Get returns the task, or else the mark that Put wants.
func (c *Cache) Get(k task.Key) (t task.Task, mark uint64, ok bool) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok = s.tasks[k]
	return t, s.drops, ok
}

// Put keeps a task that was read after Get gave the mark, unless something was
// dropped since: then it may be from before that write.
func (c *Cache) Put(k task.Key, t task.Task, mark uint64) {
	size := t.Footprint()
	if size > maxEntry {
		return
	}
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drops != mark {
		return
	}
	if s.tasks == nil {
		s.tasks = map[task.Key]task.Task{}
	}
	if _, ok := s.tasks[k]; ok {
		return
	}
	for old, was := range s.tasks { // in no order, which is as good as any
		if s.size+size <= maxCached {
			break
		}
		delete(s.tasks, old)
		s.size -= was.Footprint()
	}
	// Whoever gets it may append, and must not write into what others have.
	t.History, t.Artifacts = slices.Clip(t.History), slices.Clip(t.Artifacts)
	s.tasks[k] = t
	s.size += size
}

// Drop forgets a task that changes.
func (c *Cache) Drop(k task.Key) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops++
	if was, ok := s.tasks[k]; ok {
		delete(s.tasks, k)
		s.size -= was.Footprint()
	}
}

// Clear forgets everything.
func (c *Cache) Clear() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.drops++
		s.tasks, s.size = nil, 0
		s.mu.Unlock()
	}
}
