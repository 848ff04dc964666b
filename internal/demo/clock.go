package demo

import (
	"sync"
	"time"
)

// Clock is a clock that stands still at the time of the step that is being written.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock returns a clock that stands at the given time.
func NewClock(at time.Time) *Clock {
	c := &Clock{}
	c.set(at)
	return c
}

// Now returns the time at which the clock stands.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// set moves the clock. The store keeps microseconds.
func (c *Clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at.UTC().Truncate(time.Microsecond)
}
