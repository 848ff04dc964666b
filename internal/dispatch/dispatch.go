// Package dispatch assigns tasks to workers and writes their reports to the tasks' logs.
//
// It has two services that share a board. Tasks is for senders and for the admins of an
// agent's org. Workers is for the processes that do an agent's work. If a worker waits on the
// same node, a new task is written and leased to it in one write; otherwise the task waits in
// the store's queue.
//
// Package task makes the decisions, package stream serves readers of the logs, and package
// delivery delivers push notifications. The package contains no wire format, HTTP or SQL.
package dispatch

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/delivery"
	"github.com/parley-dev/parley/internal/policy"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/trace"
)

// Options configure a Service.
type Options struct {
	Stores    Stores
	Directory Directory
	Bus       Bus // nil if this is the only node
	Now       func() time.Time
	NewID     func(prefix string) string
	Limits    task.Limits
	Quotas    task.Quotas
	// MaxCallDepth is how many calls of agents may lead to a task; 0: chain.DefaultDepth.
	MaxCallDepth int
	// Platform is the id of this installation in the chains of relayed tasks; may be empty.
	Platform string
	Node     string // the name of this process in leases of agents that run in it
	OnError  func(error)
	Tracer   *trace.Tracer // nil: no spans

	// Deliveries delivers push notifications; see NewPushSource.
	Deliveries *delivery.Service
	// CheckPushURL refuses a URL that must not be pushed to, in words that follow the name
	// of the field. If it is nil, push notifications are turned off.
	CheckPushURL func(rawURL string) error
}

// Service combines Tasks and Workers with the background work (background.go).
type Service struct {
	*Tasks
	*Workers

	board   *board
	queue   Queue
	mailbox Mailbox
	stock   Stock

	expired atomic.Int64 // leases
}

// New returns a Service. Run must be running for leases to expire and for hosted agents to
// work.
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
		queue: o.Stores.Queue, stock: o.Stores.Stock, log: o.Stores.Log, limit: o.Quotas.Workers,
		seen: newSightings(), refused: newRefusals(), loads: &loads{},
	}
	tasks := &Tasks{
		board: b, directory: o.Directory, mailbox: o.Stores.Mailbox, pushes: o.Stores.Pushes, pushURL: o.CheckPushURL,
		stock: o.Stores.Stock, presence: workers.Presence, quotas: newQuotas(&o), replays: newReplays(), log: o.Stores.Log,
		usage: o.Stores.Usage, maxDepth: o.MaxCallDepth, platform: o.Platform,
	}
	return &Service{
		Tasks: tasks, Workers: workers,
		board: b, queue: o.Stores.Queue, mailbox: o.Stores.Mailbox, stock: o.Stores.Stock,
	}
}

// Bus carries hints between nodes. Hints may be lost: the log is authoritative, and a slow
// poll finds changes that no hint announced.
type Bus interface {
	Publish(topic string)
}

// Directory finds agents. For an unknown or disabled agent the error is NotFound.
type Directory interface {
	// Target returns the agent that callers of an org reach under an id: the org's own
	// agent, or else the public one. hidden is the public agent of another org that the own
	// agent hides, or nil.
	Target(ctx context.Context, org, id string) (t Target, hidden *Target, err error)
	// Own returns an agent of the org.
	Own(ctx context.Context, org, id string) (Target, error)
}

// Target is an agent that tasks can be sent to.
type Target struct {
	ID     string
	Org    string
	Public bool          // reachable from other orgs
	Relay  bool          // a remote agent does its work
	Policy policy.Policy // of tasks whose sender gives none
	Quota  agent.Quota   // of each other org
}

// Key returns the key of the agent.
func (t Target) Key() task.AgentKey { return task.AgentKey{Org: t.Org, ID: t.ID} }
