// Package dispatch brings tasks from senders to workers, and what workers report back to
// the log, where senders read it.
//
// It has two sides, over one board: Tasks is what senders, and the admins of an agent's org,
// do with tasks; Workers is what the processes do that work for an agent. A new task meets a
// worker that waits on the same node at the desk, and is written and leased at once; else it
// waits in the store's queue. What is decided comes from package task, and is written by a
// store; readers are served by package stream, and pushes are delivered by package delivery.
// The package knows no wire form, no HTTP and no SQL.
package dispatch

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/task"
)

// Options are what the service is made of.
type Options struct {
	Stores    Stores
	Directory Directory
	Bus       Bus // nil: this is the only node
	Now       func() time.Time
	NewID     func(prefix string) string
	Limits    task.Limits
	Quotas    task.Quotas
	Node      string // names this process in leases of agents that run in it
	OnError   func(error)

	Push PushOptions
}

// PushOptions say how events are pushed.
type PushOptions struct {
	// URL says whether events may be pushed to an address, in words that follow the
	// field's name; nil: push notifications are off.
	URL func(rawURL string) error
	// Encode makes what is pushed of an event. In form 0.3, which sends the task, it is
	// folded up to the event; in form 1.0 it has its names and no messages or artifacts,
	// so that a push costs what it sends and not what the task holds.
	Encode func(p *task.PushConfig, t *task.Task, e *task.Event) (header map[string]string, body []byte)
	Sender delivery.Sender // nil: nothing is pushed from here
	Retry  delivery.Retry
	// OnAttempt is told of every attempt; nil: nobody is.
	OnAttempt func(delivery.Outcome)
}

// Service is both sides of the board, and the work behind them (background.go).
type Service struct {
	*Tasks
	*Workers

	board   *board
	queue   Queue
	mailbox Mailbox
	stock   Stock
}

// New makes the service; Run must be running for leases to expire and hints to
// be followed up.
func New(o Options) *Service {
	if o.Limits == (task.Limits{}) {
		o.Limits = task.DefaultLimits
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	b := newBoard(&o)
	workers := &Workers{
		board: b, directory: o.Directory, store: o.Stores.Workers, mailbox: o.Stores.Mailbox, keys: o.Stores.Keys,
		queue: o.Stores.Queue, log: o.Stores.Log, limit: o.Quotas.Workers,
		seen: newSightings(), refused: newRefusals(), loads: &loads{},
	}
	tasks := &Tasks{
		board: b, directory: o.Directory, mailbox: o.Stores.Mailbox, pushes: o.Stores.Pushes, pushURL: o.Push.URL,
		presence: workers.Presence, quotas: newQuotas(&o), replays: newReplays(),
	}
	return &Service{
		Tasks: tasks, Workers: workers,
		board: b, queue: o.Stores.Queue, mailbox: o.Stores.Mailbox, stock: o.Stores.Stock,
	}
}

// Bus carries hints between nodes. A hint may be lost: the log is the truth, and
// a slow poll finds what a hint did not tell.
type Bus interface {
	Publish(topic string)
}

// Directory finds agents; an unknown or disabled one is NotFound.
type Directory interface {
	// Target returns the agent that callers of an org reach under an id: its own one or
	// else the public one. hidden is the public agent of another org that the own one
	// hides; nil: there is none.
	Target(ctx context.Context, org, id string) (t Target, hidden *Target, err error)
	// Own returns an agent of the org.
	Own(ctx context.Context, org, id string) (Target, error)
}

// Target is an agent as tasks see it.
type Target struct {
	ID     string
	Org    string
	Public bool // reachable from other orgs
}

// Key names the agent.
func (t Target) Key() task.AgentKey { return task.AgentKey{Org: t.Org, ID: t.ID} }
