package relay

import "sync"

// breaker decides how many tasks a relay takes: all while the remote works, none while it is down,
// and one after a successful probe.
type breaker struct {
	mu       sync.Mutex
	state    breakerState
	failures int // in a row
}

type breakerState string

const (
	closed   breakerState = "closed" // the zero value means this, too
	open     breakerState = "open"
	halfOpen breakerState = "half-open"
)

// tolerated is how many requests in a row may fail before the breaker opens.
const tolerated = 3

// failed counts a failed request, and reports whether the breaker has opened by it.
func (b *breaker) failed() (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	if b.state == open || b.state != halfOpen && b.failures < tolerated {
		return false
	}
	b.state = open
	return true
}

// trip opens the breaker at once, and reports whether it was not open before.
func (b *breaker) trip() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.state
	b.state = open
	return was != open
}

// succeeded reports whether the breaker has closed by a successful request. While it is open, only a
// probe counts: the request may have begun before.
func (b *breaker) succeeded() (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == open {
		return false
	}
	changed = b.state == halfOpen
	b.state, b.failures = closed, 0
	return changed
}

// probed lets one task through after a successful probe, and reports whether the breaker was open.
func (b *breaker) probed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != open {
		return false
	}
	b.state, b.failures = halfOpen, 0
	return true
}

// isOpen reports whether the remote is down.
func (b *breaker) isOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == open
}
