package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/stream"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/trace"
)

// board is the state that Tasks and Workers share: it writes tasks and notifies this node
// and the others of changes.
type board struct {
	write TaskWriter
	read  TaskReader
	now   func() time.Time
	newID func(prefix string) string

	limits  task.Limits
	node    string
	onError func(error)
	tracer  *trace.Tracer

	hub        *stream.Hub
	cache      stream.Cache
	desk       *desk
	queues     *signals
	hosts      *hosts
	running    *running
	deliveries *delivery.Service
	bus        Bus

	stopping context.Context // canceled by stop; not the context of a request
	stop     context.CancelFunc
}

func newBoard(o *Options) *board {
	stopping, stop := context.WithCancel(context.Background())
	return &board{
		write: o.Stores.Write, read: o.Stores.Read, now: o.Now, newID: o.NewID,
		limits: o.Limits, node: o.Node, onError: o.OnError, tracer: o.Tracer,
		hub: stream.NewHub(o.Stores.Log, stopping.Done()), cache: stream.NewCache(),
		desk: newDesk(), queues: newSignals(), hosts: newHosts(), running: newRunning(), bus: o.Bus,
		deliveries: o.Deliveries,
		stopping:   stopping, stop: stop,
	}
}

// Topics of hints between nodes.
const (
	taskTopic  = "t:" // + org + "/" + uid
	queueTopic = "q:" // + org + "/" + agent
)

// publish notifies readers, workers and other nodes of a committed change.
func (b *board) publish(c task.Change) {
	if c.Task.Push {
		b.deliveries.Nudge()
	}
	if len(c.Events) == 0 {
		return
	}
	b.cache.Drop(c.Task.Key())
	b.hub.Publish(c.Task.Ref(), c.Events)
	for i := range c.Events {
		e := &c.Events[i]
		switch {
		case e.Ended != "":
			b.running.stop(c.Task.UID, e.Lease)
		case e.Kind == task.TurnEvent && e.Seq > 1:
			b.running.tell(c.Task.UID)
		}
	}
	if c.Task.State.Terminal() {
		b.hosts.ended(&c.Task)
	}
	if b.bus != nil {
		b.bus.Publish(taskTopic + c.Task.Org + "/" + c.Task.UID)
	}
	if c.Task.Queued {
		b.queueChanged(task.AgentKey{Org: c.Task.Org, ID: c.Task.Agent})
	}
}

// queueChanged wakes the workers of an agent.
func (b *board) queueChanged(agent task.AgentKey) {
	b.queues.fire(agent)
	b.hosts.backlog(agent)
	if b.bus != nil {
		b.bus.Publish(queueTopic + agent.Org + "/" + agent.ID)
	}
}

// signals wakes those who wait for work of an agent.
type signals struct {
	mu sync.Mutex
	m  map[task.AgentKey]chan struct{}
}

func newSignals() *signals { return &signals{m: map[task.AgentKey]chan struct{}{}} }

// wait returns a channel that is closed by the next fire. Call it before looking for work,
// so that no change is missed.
func (s *signals) wait(key task.AgentKey) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.m[key]
	if c == nil {
		c = make(chan struct{})
		s.m[key] = c
	}
	return c
}

func (s *signals) fire(key task.AgentKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.m[key]; c != nil {
		close(c)
		delete(s.m, key)
	}
}

func (s *signals) fireAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, c := range s.m {
		close(c)
		delete(s.m, key)
	}
}
