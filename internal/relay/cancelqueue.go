package relay

import (
	"sync"

	"github.com/parley-dev/parley/internal/task"
)

// Limits of a cancelQueue.
const (
	maxCancels      = 256 // requests at once
	maxOrgCancels   = 32  // of them for the relays of one org
	maxRelayCancels = 8   // of them for one relay
	maxCancelQueue  = 512 // links that wait for one relay; more are found again later
)

// cancelQueue runs cancel for links. Each relay has a queue and some goroutines of its own, so that a
// remote that hangs delays no other one.
type cancelQueue struct {
	cancel func(Link)

	mu     sync.Mutex
	known  map[string]bool // uids of the links that wait or run
	relays map[task.AgentKey]*relayCancels
	orgs   map[string]int // goroutines
	sum    int            // goroutines
	work   sync.WaitGroup
}

// relayCancels are the links of one relay.
type relayCancels struct {
	waiting []Link
	running int // goroutines
}

func newCancelQueue(cancel func(Link)) *cancelQueue {
	return &cancelQueue{
		cancel: cancel, known: map[string]bool{}, relays: map[task.AgentKey]*relayCancels{}, orgs: map[string]int{},
	}
}

// add queues a link. It does nothing if the link is queued already, or if there is no room.
func (q *cancelQueue) add(l Link) {
	q.mu.Lock()
	defer q.mu.Unlock()
	k := l.relay()
	r := q.relays[k]
	if r == nil {
		r = &relayCancels{}
	}
	more := r.running < maxRelayCancels && q.orgs[l.Org] < maxOrgCancels && q.sum < maxCancels
	if q.known[l.UID] || len(r.waiting) >= maxCancelQueue || r.running == 0 && !more {
		return
	}
	q.relays[k] = r
	q.known[l.UID] = true
	r.waiting = append(r.waiting, l)
	if more {
		r.running++
		q.orgs[l.Org]++
		q.sum++
		q.work.Go(func() { q.run(k) })
	}
}

// run cancels the links of a relay until none waits.
func (q *cancelQueue) run(k task.AgentKey) {
	for {
		l, ok := q.next(k)
		if !ok {
			return
		}
		q.cancel(l)
		q.mu.Lock()
		delete(q.known, l.UID)
		q.mu.Unlock()
	}
}

// next takes the link that has waited longest. Without one it ends the goroutine that asks.
func (q *cancelQueue) next(k task.AgentKey) (l Link, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.relays[k]
	if len(r.waiting) > 0 {
		l, r.waiting = r.waiting[0], r.waiting[1:]
		return l, true
	}
	q.sum--
	if q.orgs[k.Org]--; q.orgs[k.Org] == 0 {
		delete(q.orgs, k.Org)
	}
	if r.running--; r.running == 0 {
		delete(q.relays, k)
	}
	return l, false
}

// wait waits until nothing runs.
func (q *cancelQueue) wait() { q.work.Wait() }
