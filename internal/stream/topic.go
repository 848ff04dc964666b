package stream

import (
	"slices"
	"sync"

	"github.com/parley-dev/parley/internal/task"
)

// Topic is the tail of one task's log. It exists while it has readers.
type Topic struct {
	hub     *Hub
	ref     task.Ref
	owner   *owner
	readers int

	mu      sync.Mutex
	last    int64         // seq of the newest known event
	recent  []task.Event  // up to last, without gaps
	sizes   []int64       // of the events in recent, in bytes
	size    int64         // sum of sizes
	left    bool          // the last reader has left; keep nothing
	changed chan struct{} // closed when last grows
	reading bool          // a goroutine reads the log
	again   bool          // that goroutine must read once more
}

// Limits of what one topic keeps in memory, in events and in bytes, and of what all topics keep
// together. Other events are read from the log.
const (
	maxRecent     = 64
	maxRecentSize = 128 << 10
	maxKept       = 32 << 20
	fewEvents     = 5 // that most tasks have: a turn, its states and an artifact
)

// Leave ends the use of the topic. When the last reader leaves, its events are dropped.
func (t *Topic) Leave() {
	h := t.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.readers--; t.readers == 0 {
		delete(h.topics, t.ref)
		h.disown(t)
		t.mu.Lock()
		t.left = true
		t.forget(len(t.recent))
		t.mu.Unlock()
	}
}

// append adds the events that follow the newest known one. It reports whether all of the events
// are known now.
func (t *Topic) append(events []task.Event) bool {
	known := t.add(events)
	t.hub.makeRoom()
	return known
}

func (t *Topic) add(events []task.Event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.last
	if t.recent == nil {
		t.recent, t.sizes = make([]task.Event, 0, fewEvents), make([]int64, 0, fewEvents)
	}
	for _, e := range events {
		if e.Seq == t.last+1 {
			t.keep(e)
			t.last = e.Seq
		}
	}
	if t.last > before {
		t.wake()
	}
	return events[len(events)-1].Seq <= t.last
}

// keep adds the newest event and drops the oldest ones beyond the limits. If the event itself
// cannot be kept, all are dropped, because there must be no gap.
func (t *Topic) keep(e task.Event) {
	size := e.Size()
	if e.Kind == task.TurnEvent && size > largeEvent {
		e.Message, size = nil, 0 // streams do not show it, and waiting callers read it again
	}
	if t.left || size > largeEvent {
		t.forget(len(t.recent))
		return
	}
	t.recent, t.sizes = append(t.recent, e), append(t.sizes, size)
	t.size += size
	t.hub.kept.Add(size)
	t.owner.kept.Add(size)
	drop, left := 0, t.size
	for n := len(t.recent); left > maxRecentSize || n > 2*maxRecent && n-drop > maxRecent; drop++ {
		left -= t.sizes[drop]
	}
	t.forget(drop)
}

// forget drops the oldest n events. Readers may hold the slice, so it copies the rest.
func (t *Topic) forget(n int) {
	if n == 0 {
		return
	}
	before := t.size
	for _, size := range t.sizes[:n] {
		t.size -= size
	}
	t.hub.kept.Add(t.size - before)
	t.owner.kept.Add(t.size - before)
	t.recent, t.sizes = slices.Clone(t.recent[n:]), slices.Clone(t.sizes[n:])
}

func (t *Topic) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// after returns the events after a cursor from memory, and a channel that is closed when there
// are more. ok is false if the caller must read the log.
func (t *Topic) after(cursor int64) (events []task.Event, changed <-chan struct{}, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cursor >= t.last {
		return nil, t.changed, true
	}
	first := t.last - int64(len(t.recent)) + 1
	if cursor+1 < first {
		return nil, t.changed, false
	}
	tail := t.recent[cursor+1-first:]
	return tail[:len(tail):len(tail)], t.changed, true
}

// startReading reports whether the caller must read the log. If another goroutine reads it
// already, that one reads once more.
func (t *Topic) startReading() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.again = t.reading
	was := t.reading
	t.reading = true
	return !was
}

// stopReading ends the reading, unless startReading was called meanwhile. After an error it
// always ends; Poll tries again.
func (t *Topic) stopReading(failed bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.again && !failed {
		t.again = false
		return false
	}
	t.reading, t.again = false, false
	return true
}

func (t *Topic) behind(seq int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last < seq
}
