package dispatch

import (
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/task"
)

// place is a worker that waits on this node, or a free slot of an agent that runs in it. Its
// methods do nothing on a nil place.
type place struct {
	lease task.Lease
	seat  *seat
	host  *host
}

// place reserves a place for a new task, and returns the lease of the task and its length.
// All are zero if there is no place.
func (b *board) place(agent task.AgentKey, uid string, now time.Time) (*place, *task.Lease, time.Duration) {
	if h, hosted := b.hosts.take(agent); h != nil {
		p := &place{lease: b.newLease(uid, h.name, now.Add(h.o.Lease)), host: h}
		return p, &p.lease, h.o.Lease
	} else if hosted {
		return nil, nil, 0
	}
	if s := b.desk.take(agent); s != nil {
		p := &place{lease: b.newLease(uid, s.worker, now.Add(s.length)), seat: s}
		return p, &p.lease, s.length
	}
	return nil, nil, 0
}

// free gives up the place.
func (p *place) free() {
	switch {
	case p == nil:
	case p.seat != nil:
		p.seat.serve(nil)
	default:
		p.host.release()
	}
}

// start hands over the task.
func (p *place) start(t task.Task) {
	switch {
	case p == nil:
	case p.seat != nil:
		p.seat.serve(&t)
	default:
		p.host.start(assignment(t))
	}
}

// desk holds the workers that wait on this node, so that sending a task and claiming it can
// be one write.
type desk struct {
	mu      sync.Mutex
	waiting map[task.AgentKey][]*seat // first come, first served
}

// seat is one waiting worker. It is taken at most once. The caller that takes it must call serve.
type seat struct {
	agent  task.AgentKey
	worker string
	length time.Duration   // of the lease that the worker asked for
	served chan *task.Task // buffered
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

// take reserves the worker that has waited longest. It returns nil if none waits.
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

// waits returns how many workers wait for tasks of the agent.
func (d *desk) waits(agent task.AgentKey) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting[agent])
}

// leave removes a waiting worker. It returns false if the seat was taken meanwhile; then
// the worker must receive from served.
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

// serve hands the task to the worker. A nil task means that it was not written.
func (s *seat) serve(t *task.Task) { s.served <- t }
