package task

import (
	"context"
	"sync"
	"time"
)

// desk is where a new task meets a worker that is waiting on the same node, so
// that sending and claiming can be one write.
type desk struct {
	mu      sync.Mutex
	waiting map[AgentKey][]*seat // first come first served
}

// seat is one waiting worker. It is taken at most once; who takes it must either
// serve it or free it.
type seat struct {
	agent  AgentKey
	lease  Lease // its worker; the token is chosen by whoever takes the seat
	length time.Duration
	served chan *Task // buffered; nil: nothing came of it
}

func newDesk() *desk { return &desk{waiting: map[AgentKey][]*seat{}} }

// sit adds a waiting worker.
func (d *desk) sit(agent AgentKey, worker string, length time.Duration) *seat {
	s := &seat{agent: agent, lease: Lease{Worker: worker}, length: length, served: make(chan *Task, 1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[agent] = append(d.waiting[agent], s)
	return s
}

// take reserves a waiting worker, if there is one.
func (d *desk) take(agent AgentKey) *seat {
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

// waits reports whether somebody waits for the agent's tasks.
func (d *desk) waits(agent AgentKey) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting[agent]) > 0
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

func (d *desk) set(agent AgentKey, q []*seat) {
	if len(q) == 0 {
		delete(d.waiting, agent)
		return
	}
	d.waiting[agent] = q
}

// serve gives the task to the worker; nil means that nothing came of it.
func (s *seat) serve(t *Task) { s.served <- t }

// Assignment is a task as a worker gets it.
type Assignment struct {
	Task   Task // with its history
	Lease  Lease
	Number int // of the attempt, from 1
}

// Runner is an agent that runs inside this process. It gets what a worker gets
// and reports as one.
type Runner interface {
	// Run works on one task. ctx ends when the task is canceled, the lease is lost
	// or the server stops. An error fails the task.
	Run(ctx context.Context, a Assignment, report func(context.Context, Report) error) error
}

// Waiting tells how many workers of an agent wait on this node.
func (s *Tasks) Waiting(agent AgentKey) int {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	return len(s.desk.waiting[agent])
}
