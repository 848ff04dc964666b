// Package delivery sends events to receivers over HTTP, durably: in order, at least once,
// and across restarts of the receiver and of this server.
//
// A Subscription follows a list of numbered events with a cursor. A node claims due
// subscriptions from the store for a short time, so that several nodes share the work
// (service.go, inflight.go), within limits per org and receiver (room.go). Receivers that fail or
// respond slowly have a lane of their own, so that others do not wait for them. A node sends one
// event after the other (attempt.go), backs off after a failure (retry.go) and signs each request
// (http.go, sign.go). A subscription that keeps failing is dead until it is retried.
//
// Each kind of subscription has a Source that reads its events. The package must not know
// what the events are about, and contains no SQL.
package delivery

import (
	"context"
	"iter"
	"time"

	"github.com/parley-dev/parley/internal/trace"
)

// Kind says what a subscription follows. It selects the Source of its events.
type Kind string

// Key identifies a subscription.
type Key struct {
	Kind  Kind
	Org   string // the org whose events these are
	Topic string // what the events are about; unique within the org, across all kinds
	ID    string // unique within the topic
}

// State is the state of a subscription.
type State string

// The states.
const (
	Active State = "active"
	Done   State = "done" // the last event was delivered
	Dead   State = "dead" // given up; the cursor stays at the last delivered event
)

// States lists every state.
var States = []State{Active, Done, Dead}

// Progress records how far a subscription has been delivered.
type Progress struct {
	State         State
	Cursor        int64     // the last event that was delivered or passed
	Head          int64     // the last event that exists
	DueAt         time.Time // zero if there is nothing to deliver
	ClaimedUntil  time.Time
	Attempts      int // failed attempts to deliver the event after the cursor
	LastError     string
	LastAttemptAt time.Time
	FailingSince  time.Time // the first of a series of failures; see Retry
	// Tried is the attempt that led to this progress, for stores that keep a log of attempts.
	Tried *Attempt
}

// Attempt is the record of one request to a receiver.
type Attempt struct {
	Seq      int64
	EventID  string // see Event
	Type     string
	At       time.Time // when it was recorded
	Number   int       // starts at 1 for each event
	Latency  time.Duration
	Response Response
	Error    string // empty if it was delivered
	Outcome  Outcome
}

// Response is what a receiver responded.
type Response struct {
	Status int    // 0: there was no response
	Text   string // the first bytes of the body, as one line
}

// Subscription is a receiver of events, and its progress.
type Subscription struct {
	Key
	Owner    string // the org whose share of the node's capacity it uses
	Receiver string // scheme and host of the URL
	URL      string
	Token    string // shared secret for a second signature; may be empty
	// Scheme and Credentials make up the Authorization header; both may be empty.
	Scheme      string
	Credentials string
	Form        string // the encoding that the Source uses
	Size        int64  // upper estimate of a request body, in bytes
	Progress
}

// Event is one entry of the list that a subscription follows.
type Event struct {
	Seq  int64
	Last bool // no event follows
	// ID is the id of the request. If it is empty, the id is made from the subscription and Seq.
	ID   string
	Type string // for the record of the attempt
	// Trace is the trace that the event belongs to; it may be zero.
	Trace trace.Context
	// Sign returns the signatures of a request. If it is nil, the Sender signs with its own key.
	Sign func(id string, at time.Time, body []byte) string
	// Encode returns the request to send. It is nil for events that the receiver does not
	// get.
	Encode func() (header map[string]string, body []byte)
}

// Source reads the events of one kind of subscription.
type Source interface {
	// Events yields the events after the subscription's cursor, in order, up to the last
	// one that exists.
	Events(ctx context.Context, s *Subscription) iter.Seq2[Event, error]
}

// Store keeps subscriptions.
type Store interface {
	// Claim takes due subscriptions that fit into the room. No other node gets them until
	// the claim expires or is released.
	Claim(ctx context.Context, r Room) ([]Subscription, error)
	// Release makes due again what nodes that are gone had claimed.
	Release(ctx context.Context) error
	// Update locks a subscription, calls decide and writes the progress that it returns,
	// except for Head. It records p.Tried if it keeps a log. If the subscription was deleted, the error is NotFound.
	Update(ctx context.Context, k Key, decide func(p Progress, clock time.Time) (Progress, error)) (Progress, error)
}

// Request is one attempt to deliver an event.
type Request struct {
	Subscription
	Seq     int64
	ID      string // the same for every attempt
	Attempt int    // starts at 1
	Header  map[string]string
	Trace   trace.Context // sent in headers, unless it is zero
	Body    []byte
	Sign    func(id string, at time.Time, body []byte) string // see Event

	Response Response // set by the Sender
}

// Sender sends requests to receivers. An error with a Permanent method that returns true
// is not retried. An error with a RetryAfter method delays the next attempt.
type Sender interface {
	Send(ctx context.Context, r *Request) error
}

// Outcome is the result of one attempt.
type Outcome string

// The outcomes.
const (
	Delivered Outcome = "delivered"
	Failed    Outcome = "failed"
	GivenUp   Outcome = "dead" // failed, and will not be retried
)

// Outcomes lists every outcome.
var Outcomes = []Outcome{Delivered, Failed, GivenUp}
