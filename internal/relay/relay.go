// Package relay lets remote A2A agents do the work of agents of this platform.
//
// A relay is an agent with the URL of a remote agent. Service registers relays: it reads the
// remote's card, which says how to reach the remote and what it can do. Engine runs the relays of
// this node: it hosts each of them in package dispatch, so that a relayed task has the same queue,
// leases and events as any other.
//
// The way of a task:
//
//  1. The host claims the task. Its lease is the right to follow the remote's task, so no two nodes
//     follow the same one.
//  2. After the remote's first response a Link is stored. It says which task of the remote is ours,
//     and what the remote has got. Whoever claims the task later continues there. If the node is
//     lost before, the message is sent again with the same id.
//  3. The messages of the sender are forwarded, and events of the remote become reports
//     (follow.go). After a broken stream or on another node, the remote's task is read as a whole,
//     compared with what is stored, and only the difference is reported (snapshot.go).
//  4. A task that ends here before the remote has finished is canceled there (cancel.go).
//
// A breaker for each relay and node (breaker.go) keeps tasks in the queue while the remote is down.
//
// Remotes are not trusted: they choose neither where requests go (package outbound), nor how much
// is read (transport.go), nor where a credential goes (card.go). The package contains no SQL and no
// routes.
package relay

import (
	"context"
	"time"

	"github.com/parley-dev/parley/internal/agent"
	"github.com/parley-dev/parley/internal/task"
)

// Relay is a registered relay and its state.
type Relay struct {
	Org, Agent string
	agent.Relay

	CheckedAt time.Time // when the card was last read, or an attempt was made
	Problem   string    // why the remote cannot be used; empty: it can
	UpdatedAt time.Time
}

// Key returns the key of the agent.
func (r *Relay) Key() task.AgentKey { return task.AgentKey{Org: r.Org, ID: r.Agent} }

// Link connects a task with a task of the remote. It exists from the remote's first response until
// the remote has nothing left to do. Most tasks that end at once never have one.
type Link struct {
	Org, UID  string
	Agent     string
	Task      string // id of the remote's task; empty: not known yet
	Context   string // of the remote's task
	Forwarded int    // messages of the sender that the remote has got
	Attempt   int
	EndedAt   time.Time // since when the remote's task is to be canceled; zero: the task is not over
	CreatedAt time.Time
}

// relay returns the key of the relay.
func (l *Link) relay() task.AgentKey { return task.AgentKey{Org: l.Org, ID: l.Agent} }

// Store keeps relays and links. Package agent writes the registration of a relay, with its agent.
type Store interface {
	// Relays lists the relays of all orgs whose agents are enabled.
	Relays(ctx context.Context) ([]Relay, error)
	// Relay returns one relay, or NotFound.
	Relay(ctx context.Context, org, agent string) (Relay, error)
	// BeginCheck records that a node reads the card now. It returns false if another node has begun
	// to since the time of the last check.
	BeginCheck(ctx context.Context, k task.AgentKey, last, now time.Time) (bool, error)
	// SetHealth records the result of a check, or why tasks cannot be sent.
	SetHealth(ctx context.Context, k task.AgentKey, problem string, at time.Time) error

	// Link returns the link of a task. ok is false if it has none.
	Link(ctx context.Context, org, uid string) (l Link, ok bool, err error)
	// SaveLink stores a link. It replaces one of an earlier attempt, and updates what the remote has
	// got if the stored link has the same remote task or none.
	SaveLink(ctx context.Context, l Link) error
	// DeleteLink deletes a link, but not that of a later attempt at the task.
	DeleteLink(ctx context.Context, l Link) error
	// HurryLink makes the link of a task due, if it has one.
	HurryLink(ctx context.Context, org, uid string) error
	// DueLinks looks at up to most links that are due, and returns those whose task is over. None of
	// them is due again before again, so that nodes do not get the same one. With more, others may be
	// due.
	DueLinks(ctx context.Context, now, again time.Time, most int) (ended []Link, more bool, err error)
}
