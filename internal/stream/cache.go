package stream

import (
	"slices"

	"github.com/parley-dev/parley/internal/cache"
	"github.com/parley-dev/parley/internal/task"
)

// Cache keeps whole tasks that were read lately, because callers poll. It is correct if every
// writer drops the task before it responds and, where other processes write too, if only tasks
// that have ended are put, which never change.
type Cache struct {
	*cache.Cache[task.Key, task.Task]
}

const (
	maxCached = 32 << 20 // bytes, all tasks
	maxEntry  = 64 << 10 // bytes, one task
)

// NewCache returns an empty cache.
func NewCache() Cache {
	return Cache{cache.New(cache.Options[task.Key, task.Task]{
		Max: maxCached, Size: func(_ task.Key, t task.Task) int64 { return t.Footprint() },
	})}
}

// Put stores a task that was read after the mark, unless it is large.
func (c Cache) Put(k task.Key, t task.Task, m cache.Mark) {
	if t.Footprint() > maxEntry {
		return
	}
	// Callers that append to the slices must not write into the shared arrays.
	t.History, t.Artifacts = slices.Clip(t.History), slices.Clip(t.Artifacts)
	c.Cache.Put(k, t, m)
}
