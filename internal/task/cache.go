package task

import (
	"hash/maphash"
	"slices"
	"sync"
)

// cache keeps whole tasks that were read lately, because callers poll. It is
// sound: every write of this process passes publish, which drops the task before
// the write is answered, and where other processes write too, only tasks that
// ended are kept, which never change.
type cache struct {
	seed   maphash.Seed
	shards [16]shard
}

type shard struct {
	mu    sync.Mutex
	tasks map[Key]Task
	size  int64
	drops uint64 // grows with every drop; tells a read that it may be out of date
}

const (
	maxCached = 2 << 20  // bytes a shard
	maxEntry  = 64 << 10 // bytes of one task
	rowSize   = 1 << 10  // what a task takes beside its messages and artifacts, about
)

func newCache() *cache { return &cache{seed: maphash.MakeSeed()} }

func (c *cache) shard(k Key) *shard {
	return &c.shards[maphash.Comparable(c.seed, k)%uint64(len(c.shards))]
}

// get returns the task, or else the mark that put wants.
func (c *cache) get(k Key) (t Task, mark uint64, ok bool) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok = s.tasks[k]
	return t, s.drops, ok
}

// put keeps a task that was read after get gave the mark, unless something was
// dropped since: then it may be from before that write.
func (c *cache) put(k Key, t Task, mark uint64) {
	size := t.Size + rowSize
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
		s.tasks = map[Key]Task{}
	}
	if _, ok := s.tasks[k]; ok {
		return
	}
	for old, was := range s.tasks { // in no order, which is as good as any
		if s.size+size <= maxCached {
			break
		}
		delete(s.tasks, old)
		s.size -= was.Size + rowSize
	}
	// Whoever gets it may append, and must not write into what others have.
	t.History, t.Artifacts = slices.Clip(t.History), slices.Clip(t.Artifacts)
	s.tasks[k] = t
	s.size += size
}

// drop forgets a task that changes.
func (c *cache) drop(k Key) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops++
	if was, ok := s.tasks[k]; ok {
		delete(s.tasks, k)
		s.size -= was.Size + rowSize
	}
}

// clear forgets everything.
func (c *cache) clear() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.drops++
		s.tasks, s.size = nil, 0
		s.mu.Unlock()
	}
}

// key is how the task's sender names it.
func (t *Task) key() Key { return Key{Org: t.Org, Agent: t.Agent, Sender: t.Sender, ID: t.ID} }
