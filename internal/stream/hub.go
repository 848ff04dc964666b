// Package stream serves the readers of tasks' logs on this node: many readers of one task,
// each with a cursor of its own, cost one look at the log.
//
// A Hub keeps the newest events of followed tasks in memory and wakes their readers; who is
// too far behind reads the log, page by page, and shares what was read with those at the
// same place. The log is the truth: a lost hint costs time and never an event. The package
// knows nothing of sends, leases and wires, and writes nothing.
package stream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/task"
)

// Log is what happened to tasks, as a store has it.
type Log interface {
	// Events returns up to most events of a task after the given one: none only if there
	// are none, but fewer if they are large.
	Events(ctx context.Context, org, uid string, after int64, most int) ([]task.Event, error)
	// EventsSize returns about how many bytes Events would return.
	EventsSize(ctx context.Context, org, uid string, after int64, most int) (int64, error)
	// Seqs returns the last event's number of each task that is still there.
	Seqs(ctx context.Context, refs []task.Ref) (map[task.Ref]int64, error)
}

// Hub tells readers on this node what happens to tasks. One topic per followed
// task keeps the latest events in memory, so that ten thousand readers are not
// ten thousand queries; each reader has a cursor of its own and falls back to the
// log when it is too far behind. A reader that stalls costs only itself.
type Hub struct {
	log      Log
	stopping <-chan struct{}
	kept     atomic.Int64                  // bytes of events in all topics
	room     sync.Mutex                    // held while events are dropped to make room
	pages    shared[pageKey, []task.Event] // of logs, while readers are at them

	encodings shared[encodingKey, Encoding]

	mu     sync.Mutex
	topics map[task.Ref]*Topic
	owners map[string]*owner // by org
}

// NewHub makes a hub over a log. Readers stop when stopping is closed.
func NewHub(log Log, stopping <-chan struct{}) *Hub {
	return &Hub{log: log, stopping: stopping, topics: map[task.Ref]*Topic{}, owners: map[string]*owner{}}
}

// Follow joins the topic of a task whose events up to known the caller has. What is kept
// for it counts for the owner, an org. Leave must be called.
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

// Publish hands events that were just committed to the readers on this node. If
// they do not join on to what is known, as when two commits overtake each other
// on the way here, the log is read instead.
func (h *Hub) Publish(ref task.Ref, events []task.Event) {
	if t := h.topic(ref); t != nil && len(events) > 0 && !t.append(events) {
		go h.Hint(context.Background(), ref)
	}
}

// Hint says that a task may have changed where Publish could not tell: the log is
// read once for all readers here.
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

// HintAll is Hint for every task that is followed: hints may have been lost.
func (h *Hub) HintAll(ctx context.Context) {
	for _, ref := range h.refs() {
		h.Hint(ctx, ref)
	}
}

// Poll is beneath the hints: every interval it compares the followed tasks with
// the log, so that a lost hint costs time and never an event.
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
