package dispatch

import (
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/task"
)

// place is where a new task can be worked on at once: a worker that waits on this
// node, or a free slot of an agent that runs in it. A nil place is none.
type place struct {
	lease  task.Lease
	length time.Duration
	seat   *seat
	host   *host
}

// place reserves one for a new task, if there is any.
func (b *board) place(agent task.AgentKey, uid string, now time.Time) *place {
	if h, hosted := b.hosts.take(agent); h != nil {
		return &place{lease: b.newLease(uid, h.name, now.Add(hostLease)), length: hostLease, host: h}
	} else if hosted {
		return nil
	}
	if s := b.desk.take(agent); s != nil {
		return &place{lease: b.newLease(uid, s.worker, now.Add(s.length)), length: s.length, seat: s}
	}
	return nil
}

// leased is the lease of the task and how long it lasts; nil: there is no place.
func (p *place) leased() (*task.Lease, time.Duration) {
	if p == nil {
		return nil, 0
	}
	return &p.lease, p.length
}

// free gives the place up.
func (p *place) free() {
	switch {
	case p == nil:
	case p.seat != nil:
		p.seat.serve(nil)
	default:
		p.host.release()
	}
}

// start begins the work.
func (p *place) start(t task.Task) {
	switch {
	case p == nil:
	case p.seat != nil:
		p.seat.serve(&t)
	default:
		p.host.start(assignment(t))
	}
}

// desk is where a new task meets a worker that is waiting on the same node, so
// that sending and claiming can be one write.
type desk struct {
	mu      sync.Mutex
	waiting map[task.AgentKey][]*seat // first come first served
}

// seat is one waiting worker. It is taken at most once; who takes it must either
// serve it or free it.
type seat struct {
	agent  task.AgentKey
	worker string
	length time.Duration   // of the lease that it wants
	served chan *task.Task // buffered; nil: nothing came of it
}

func newDesk() *desk { return &desk{waiting: map[task.AgentKey][]*seat{}} }

// sit adds a waiting worker.
func (d *desk) sit(agent task.AgentKey, worker string, length time.Duration) *seat {
	s := &seat{agent: agent, worker: worker, length: length, served: make(chan *task.Task, 1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[agent] = append(d.waiting[agent], s)
	return s
}

// take reserves a waiting worker, if there is one.
func (d *desk) take(agent task.AgentKey) *seat {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.waiting[agent]
	if len(q) == 0 {
		return nil
	}
	s := q[0]
	d.set(agent, q[1:])
	return s
}

// waits is how many workers wait for the agent's tasks.
func (d *desk) waits(agent task.AgentKey) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting[agent])
}

// leave takes a worker off the desk. It returns false if the seat was taken
// meanwhile: then something will be served.
func (d *desk) leave(s *seat) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.waiting[s.agent]
	for i := range q {
		if q[i] == s {
			d.set(s.agent, append(q[:i:i], q[i+1:]...))
			return true
		}
	}
	return false
}

func (d *desk) set(agent task.AgentKey, q []*seat) {
	if len(q) == 0 {
		delete(d.waiting, agent)
		return
	}
	d.waiting[agent] = q
}

// serve gives the task to the worker; nil means that nothing came of it.
func (s *seat) serve(t *task.Task) { s.served <- t }
