package worker

import (
	"slices"
	"sync"
)

// keptIDs is how many direct messages are remembered to recognize a second delivery.
const keptIDs = 1000

// mail keeps which direct messages have been received. Several requests may deliver the same one
// until a request has acknowledged it.
type mail struct {
	mu   sync.Mutex
	acks []string // received, and not acknowledged yet
	seen []string // the latest ones, oldest first
}

func (m *mail) unacknowledged() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.acks)
}

// receive processes the response to a request that acknowledged some messages. It returns those
// that are new.
func (m *mail) receive(acked []string, messages []DirectMessage) []DirectMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acks = slices.DeleteFunc(m.acks, func(id string) bool { return slices.Contains(acked, id) })
	var fresh []DirectMessage
	for _, msg := range messages {
		if slices.Contains(m.seen, msg.ID) {
			continue
		}
		fresh = append(fresh, msg)
		m.acks, m.seen = append(m.acks, msg.ID), append(m.seen, msg.ID)
	}
	m.seen = m.seen[max(0, len(m.seen)-keptIDs):]
	return fresh
}
