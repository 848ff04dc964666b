// Package stream serves readers of task logs on this node. Many readers of one task, each with
// its own cursor, cost one read of the log.
//
// A Hub keeps the newest events of followed tasks in memory and wakes their readers. A reader
// that is too far behind reads the log page by page, and shares pages with readers at the same
// position. The log is authoritative: a lost hint delays events but never loses one.
//
// The package knows nothing about sending tasks, leases and wire formats. It writes nothing.
package stream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/task"
)

// Log reads the events of tasks from a store.
type Log interface {
	// Events returns up to most events of a task after the given one. May return fewer if events
	// are large, but at least one if any exist.
	Events(ctx context.Context, org, uid string, after int64, most int) ([]task.Event, error)
	// EventsSize returns an estimate of the bytes that Events would return.
	EventsSize(ctx context.Context, org, uid string, after int64, most int) (int64, error)
	// Seqs returns the number of the last event of each task. Deleted tasks are omitted.
	Seqs(ctx context.Context, refs []task.Ref) (map[task.Ref]int64, error)
}

// Hub distributes events of tasks to readers on this node. It has a topic for each followed
// task, which keeps the latest events in memory, so that ten thousand readers do not need ten
// thousand queries. Each reader has its own cursor, and reads the log when it is too far behind.
// A slow reader does not affect others.
type Hub struct {
	log      Log
	stopping <-chan struct{}
	kept     atomic.Int64                  // bytes of events in all topics
	room     sync.Mutex                    // held while events are dropped to make room
	pages    shared[pageKey, []task.Event] // pages of logs in use

	encodings shared[encodingKey, Encoding]

	mu     sync.Mutex
	topics map[task.Ref]*Topic
	owners map[string]*owner // by org
}

// NewHub returns a hub over a log. Readers stop when stopping is closed.
func NewHub(log Log, stopping <-chan struct{}) *Hub {
	return &Hub{log: log, stopping: stopping, topics: map[task.Ref]*Topic{}, owners: map[string]*owner{}}
}

// Follow joins the topic of a task. known is the last event that the caller has. The events that
// the topic keeps count for the owner, an org. The caller must call Leave.
func (h *Hub) Follow(ref task.Ref, owner string, known int64) *Topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[ref]
	if t == nil {
		t = &Topic{hub: h, ref: ref, last: known, changed: make(chan struct{})}
		h.topics[ref] = t
		h.own(owner, t)
	}
	t.readers++
	return t
}

func (h *Hub) topic(ref task.Ref) *Topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.topics[ref]
}

// refs lists the followed tasks.
func (h *Hub) refs() []task.Ref {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]task.Ref, 0, len(h.topics))
	for ref := range h.topics {
		out = append(out, ref)
	}
	return out
}

// Publish passes committed events to the readers on this node. If they do not continue the
// known events, for example because two commits arrive in the wrong order, the log is read
// instead.
func (h *Hub) Publish(ref task.Ref, events []task.Event) {
	if t := h.topic(ref); t != nil && len(events) > 0 && !t.append(events) {
		go h.Hint(context.Background(), ref)
	}
}

// Hint reads the log of a task that may have changed, once for all readers on this node.
func (h *Hub) Hint(ctx context.Context, ref task.Ref) {
	t := h.topic(ref)
	if t == nil || !t.startReading() {
		return
	}
	for {
		t.mu.Lock()
		last := t.last
		t.mu.Unlock()
		events, err := h.log.Events(ctx, ref.Org, ref.UID, last, maxRecent)
		if len(events) > 0 {
			t.append(events)
			continue
		}
		if t.stopReading(err != nil) {
			return
		}
	}
}

// HintAll calls Hint for every followed task, because hints may have been lost.
func (h *Hub) HintAll(ctx context.Context) {
	for _, ref := range h.refs() {
		h.Hint(ctx, ref)
	}
}

// Poll compares the followed tasks with the log at every interval, in case a hint was lost.
func (h *Hub) Poll(ctx context.Context, interval time.Duration, onError func(error)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		refs := h.refs()
		for len(refs) > 0 {
			n := min(len(refs), 500)
			seqs, err := h.log.Seqs(ctx, refs[:n])
			if err != nil {
				if ctx.Err() == nil {
					onError(err)
				}
				break
			}
			for ref, seq := range seqs {
				if t := h.topic(ref); t != nil && t.behind(seq) {
					h.Hint(ctx, ref)
				}
			}
			refs = refs[n:]
		}
	}
}
