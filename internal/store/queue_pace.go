package store

import (
	"sync"
	"time"
)

const (
	// manyWaiting is how many waiting writes are worth a batch beside one that runs.
	manyWaiting = 64
	// slowBatch is how long a batch can run before another one may start beside it, such as one that
	// waits for a lock.
	slowBatch = 50 * time.Millisecond
	// busyBatch is the size of a batch after which the next one waits a little for more writes, and
	// maxGathering is how long at most.
	busyBatch    = 8
	maxGathering = 10 * time.Millisecond
)

// pace makes batches large on PostgreSQL, where each costs the database as much as some twenty
// writes, and where several nodes share the database. A batch starts while another one runs only if
// many writes wait or the other one is slow. Under load a batch waits for more writes, for a fraction
// of the time that the last one took. A nil pace does nothing.
type pace struct {
	leading chan struct{} // has a token while a worker waits for the writes of the next batch
	running chan struct{} // has a token while a batch runs
	crowded chan struct{} // buffered; signals that a crowd waits

	mu   sync.Mutex
	last struct { // the batch that ended last
		writes int
		took   time.Duration
	}
}

func newPace() *pace {
	return &pace{leading: make(chan struct{}, 1), running: make(chan struct{}, 1), crowded: make(chan struct{}, 1)}
}

// lead waits until this worker is the one that takes the next write and waits for more. If several
// did, each would take some of the writes that belong in one batch. The result lets another worker
// lead.
func (p *pace) lead() (followed func()) {
	if p == nil {
		return func() {}
	}
	p.leading <- struct{}{}
	return func() { <-p.leading }
}

// arrived notes how many writes wait.
func (p *pace) arrived(waiting int) {
	if p == nil || waiting < manyWaiting {
		return
	}
	select {
	case p.crowded <- struct{}{}:
	default:
	}
}

// begin waits until a batch should start. The result must be called when the batch has ended, with
// the number of its writes and its duration.
func (p *pace) begin() (end func(writes int, took time.Duration)) {
	if p == nil {
		return func(int, time.Duration) {}
	}
	release := p.take()
	p.mu.Lock()
	last := p.last
	p.mu.Unlock()
	if last.writes >= busyBatch {
		p.wait(min(last.took/2, maxGathering))
	}
	select {
	case <-p.crowded: // the batch takes them
	default:
	}
	return func(writes int, took time.Duration) {
		p.mu.Lock()
		p.last.writes, p.last.took = writes, took
		p.mu.Unlock()
		release()
	}
}

// take waits for the end of the running batch, for a crowd, or until the batch is slow.
func (p *pace) take() (release func()) {
	release = func() { <-p.running }
	select {
	case p.running <- struct{}{}:
		return release
	default:
	}
	slow := time.NewTimer(slowBatch)
	defer slow.Stop()
	select {
	case p.running <- struct{}{}:
		return release
	case <-p.crowded:
	case <-slow.C:
	}
	return func() {}
}

// wait waits for a crowd, at most so long.
func (p *pace) wait(most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-p.crowded:
	case <-timer.C:
	}
}
