// Package delivery brings events to receivers over HTTP, durably: what was accepted is
// delivered, in order and at least once, though receivers and servers are away for a while.
//
// A Subscription follows a list of numbered events with a cursor. What is due is claimed
// from the store for a short time, so that several nodes share the work and none of it is
// done twice (service.go); fairly, by the org that it is for (room.go); with back-off
// (retry.go); and signed (http.go, sign.go). What cannot be delivered is dead, and can be
// taken up again. Where the events come from, a Source knows: the package knows no tasks
// and no SQL.
package delivery

import (
	"context"
	"iter"
	"time"
)

// Key names a subscription.
type Key struct {
	Org   string // whose events they are
	Topic string // what the events are about, unique in the org
	ID    string // of the subscription, unique for the topic
}

// State is what becomes of a subscription.
type State string

// The states.
const (
	Active State = "active"
	Done   State = "done" // nothing will follow, and the receiver knows
	Dead   State = "dead" // given up; the cursor stays where it was
)

// States lists every state.
var States = []State{Active, Done, Dead}

// Progress is how far a subscription is.
type Progress struct {
	State         State
	Cursor        int64     // the last event that the receiver has
	Head          int64     // the last event there is
	DueAt         time.Time // zero: there is nothing to do
	ClaimedUntil  time.Time
	Attempts      int // to deliver the event after the cursor
	LastError     string
	LastAttemptAt time.Time
}

// Subscription says where events are sent, and how far that is.
type Subscription struct {
	Key
	Owner    string // the org in whose share of the node it is delivered
	Receiver string // scheme and host of the URL
	URL      string
	Token    string // signs, beside the key of the server; empty: none
	// Scheme and Credentials are the Authorization header that the receiver wants.
	Scheme      string
	Credentials string
	Form        string // in which the source encodes events
	Size        int64  // of what is sent at the most, in bytes, about
	Progress
}

// Event is one entry of what a subscription follows.
type Event struct {
	Seq  int64
	Last bool // nothing will follow
	// Encode makes what is sent. nil: the receiver is not told of this event.
	Encode func() (header map[string]string, body []byte)
}

// Source has the events of subscriptions.
type Source interface {
	// Events yields what a subscription is to get after its cursor, in order, as far as
	// it has happened.
	Events(ctx context.Context, s *Subscription) iter.Seq2[Event, error]
}

// Store keeps subscriptions.
type Store interface {
	// Claim takes what is due, as far as there is room for it; no one else gets it until
	// the claim is over.
	Claim(ctx context.Context, r Room) ([]Subscription, error)
	// Update locks a subscription, runs decide and writes the progress that it returns,
	// except for Head. One that was deleted is NotFound.
	Update(ctx context.Context, k Key, decide func(p Progress, clock time.Time) (Progress, error)) (Progress, error)
}

// Request is one event on its way to a receiver.
type Request struct {
	Subscription
	Seq     int64
	ID      string // the same for every attempt
	Attempt int    // from 1
	Header  map[string]string
	Body    []byte
}

// Sender sends requests to receivers. An error whose Permanent method answers true is not
// tried again; one with a RetryAfter not before that.
type Sender interface {
	Send(ctx context.Context, r *Request) error
}

// Outcome is what became of one attempt.
type Outcome string

// The outcomes of attempts.
const (
	Delivered Outcome = "delivered"
	Failed    Outcome = "failed"
	GivenUp   Outcome = "dead" // failed, and was the last
)

// Outcomes lists every outcome.
var Outcomes = []Outcome{Delivered, Failed, GivenUp}
