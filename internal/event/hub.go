package event

import (
	"context"
	"sync"
	"sync/atomic"
)

// hub has a topic for each org that is followed on this node, so that the log is read once for
// all readers of an org. A lost hint delays events, but loses none: the log is authoritative.
type hub struct {
	store Store
	kept  atomic.Int64 // bytes of events in all topics
	limit int64        // of kept
	room  sync.Mutex   // held while events are dropped to make room

	mu     sync.Mutex
	topics map[string]*topic // by org
}

func newHub(s Store) hub { return hub{store: s, limit: maxKept, topics: map[string]*topic{}} }

// maxKept limits the memory of all topics, in bytes.
const maxKept = 64 << 20

// join returns the topic of an org. The caller must call leave.
func (h *hub) join(org string) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[org]
	if t == nil {
		t = &topic{hub: h, org: org, changed: make(chan struct{})}
		h.topics[org] = t
	}
	t.readers++
	return t
}

// leave ends the use of the topic. When the last reader leaves, its events are dropped.
func (t *topic) leave() {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	if t.readers--; t.readers > 0 {
		return
	}
	delete(t.hub.topics, t.org)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = true
	t.drop(len(t.recent))
}

// changed counts a hint that the log of an org has grown. It returns a function that reads the
// log, or nil if the org has no followers here or is being read already.
func (h *hub) changed(org string) (read func(context.Context) error) {
	h.mu.Lock()
	t := h.topics[org]
	h.mu.Unlock()
	if t == nil || !t.beginRead() {
		return nil
	}
	return t.read
}

// orgs lists the followed orgs.
func (h *hub) orgs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]string, 0, len(h.topics))
	for org := range h.topics {
		out = append(out, org)
	}
	return out
}

// makeRoom drops events of the largest topics until the limit is kept, so that a large org does
// not displace the events of small ones. It drops a little more than necessary, so that it is
// needed less often. The caller must not hold the lock of a topic.
func (h *hub) makeRoom() {
	if h.kept.Load() <= h.limit {
		return
	}
	h.room.Lock()
	defer h.room.Unlock()
	for enough := h.limit - h.limit/16; h.kept.Load() > enough; {
		t := h.largest()
		if t == nil {
			return // all readers have left meanwhile
		}
		t.mu.Lock()
		t.drop((len(t.recent) + 1) / 2)
		t.mu.Unlock()
	}
}

// largest returns the topic with the most bytes, or nil if none has any.
func (h *hub) largest() (most *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	size := int64(0)
	for _, t := range h.topics {
		if n := t.size.Load(); n > size {
			most, size = t, n
		}
	}
	return most
}
