package stream

import "sync/atomic"

// owner is an org whose tasks are followed on this node. When memory is short, the hub drops
// events of the largest owner, so that one org cannot displace the events of others.
type owner struct {
	org    string
	kept   atomic.Int64        // bytes of events in its topics
	topics map[*Topic]struct{} // guarded by the hub's mutex
}

// own makes the org the owner of a new topic. The caller holds the lock of the hub.
func (h *Hub) own(org string, t *Topic) {
	o := h.owners[org]
	if o == nil {
		o = &owner{org: org, topics: map[*Topic]struct{}{}}
		h.owners[org] = o
	}
	o.topics[t] = struct{}{}
	t.owner = o
}

// disown removes a topic without readers. The caller holds the lock of the hub.
func (h *Hub) disown(t *Topic) {
	if delete(t.owner.topics, t); len(t.owner.topics) == 0 {
		delete(h.owners, t.owner.org)
	}
}

// makeRoom drops events of the largest owner until the limit is kept. It drops a little more
// than necessary, so that it is needed less often. The caller must not hold the lock of a topic.
func (h *Hub) makeRoom() {
	if h.kept.Load() <= maxKept {
		return
	}
	h.room.Lock()
	defer h.room.Unlock()
	if h.kept.Load() <= maxKept {
		return // another goroutine made room
	}
	const enough = maxKept - maxKept/16
	for h.kept.Load() > enough {
		topics := h.largest()
		if len(topics) == 0 {
			return // all readers have left meanwhile
		}
		for _, t := range topics {
			t.mu.Lock()
			t.forget(len(t.recent))
			t.mu.Unlock()
			if h.kept.Load() <= enough {
				return
			}
		}
	}
}

// largest returns the topics of the owner with the most bytes.
func (h *Hub) largest() []*Topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	var most *owner
	for _, o := range h.owners {
		if n := o.kept.Load(); n > 0 && (most == nil || n > most.kept.Load()) {
			most = o
		}
	}
	if most == nil {
		return nil
	}
	out := make([]*Topic, 0, len(most.topics))
	for t := range most.topics {
		out = append(out, t)
	}
	return out
}
