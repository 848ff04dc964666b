// Package task defines A2A tasks: their messages and artifacts, the transitions between their
// states, and the limits of their content.
//
// Everything that happens to a task is an event in its log. The log is authoritative: messages
// and artifacts are folded from it. Decisions (decide.go) are pure functions from a task and a
// command to a Change, which a store writes in a transaction.
//
// The package calls no store, starts no goroutine, and contains no wire format, HTTP or SQL.
package task

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/policy"
)

// State is the state of a task.
type State string

// The states. The first five are in the specification; the others come from the official
// protocol.
const (
	Submitted     State = "submitted"
	Working       State = "working"
	Completed     State = "completed"
	Failed        State = "failed"
	Canceled      State = "canceled"
	InputRequired State = "input-required"
	AuthRequired  State = "auth-required"
	Rejected      State = "rejected"
)

// States lists every state.
var States = []State{Submitted, Working, Completed, Failed, Canceled, InputRequired, AuthRequired, Rejected}

// transitions lists the allowed transitions. A state that is not a key is terminal. Working may
// follow itself: a worker reports progress, or the task waits for its next attempt.
var transitions = map[State][]State{
	Submitted:     {Working, Canceled, Failed, Rejected},
	Working:       {Working, Completed, Failed, Canceled, InputRequired, AuthRequired, Rejected},
	InputRequired: {Working, Canceled, Failed},
	AuthRequired:  {Working, Canceled, Failed},
}

// Next lists the states that may follow s.
func (s State) Next() []State { return transitions[s] }

// Terminal reports whether no state follows s.
func (s State) Terminal() bool { return len(transitions[s]) == 0 }

// Interrupted reports whether the task waits for a message of its sender.
func (s State) Interrupted() bool { return s == InputRequired || s == AuthRequired }

// Rests reports whether a caller need not wait any longer: the task has ended, or it waits for
// the caller.
func (s State) Rests() bool { return s.Terminal() || s.Interrupted() }

// Role is the author of a message.
type Role string

// The roles.
const (
	RoleUser  Role = "user"
	RoleAgent Role = "agent"
)

// PartKind is the kind of a part.
type PartKind string

// The kinds of parts.
const (
	TextPart PartKind = "text"
	DataPart PartKind = "data"
	FilePart PartKind = "file"
)

// Part is a piece of a message or an artifact.
type Part struct {
	Kind      PartKind
	Text      string          `json:",omitempty"`
	Data      json.RawMessage `json:",omitempty"` // any JSON value
	Name      string          `json:",omitempty"` // usually of a file
	MediaType string          `json:",omitempty"`
	Bytes     []byte          `json:",omitempty"` // content of a file, or
	URL       string          `json:",omitempty"` // its URL
	Metadata  json.RawMessage `json:",omitempty"` // a JSON object

	Left int64 `json:"-"` // omitted bytes of the content, see Content.Clip
}

// Message is one turn of the conversation about a task, or a direct message.
type Message struct {
	ID         string `json:",omitempty"` // chosen by the author, or derived from the position in the log
	Role       Role
	Parts      []Part
	Metadata   json.RawMessage `json:",omitempty"`
	Extensions []string        `json:",omitempty"` // URIs of the extensions that the metadata uses
	References []string        `json:",omitempty"` // ids of related tasks
}

// Artifact is an output of a task.
type Artifact struct {
	ID          string
	Type        string `json:",omitempty"`
	Name        string `json:",omitempty"`
	Description string `json:",omitempty"`
	Parts       []Part
	Metadata    json.RawMessage `json:",omitempty"`
	Extensions  []string        `json:",omitempty"`
}

// EventKind is the kind of an event.
type EventKind string

// The kinds of events. A turn is a message of the sender. Streams omit turns, because the
// sender has them.
const (
	StatusEvent   EventKind = "status"
	ArtifactEvent EventKind = "artifact"
	TurnEvent     EventKind = "turn"
)

// Event is one entry of a task's log.
type Event struct {
	Seq     int64     `json:"-"` // starts at 1, without gaps
	At      time.Time `json:"-"`
	Kind    EventKind `json:"-"`
	State   State     `json:",omitempty"` // of a status
	Message *Message  `json:",omitempty"` // of a status or a turn
	Reply   bool      `json:",omitempty"` // the message is the whole result, and may replace the task
	// Of a turn: the other fields of the request. Metadata of the first message is in the
	// task's row instead.
	OutputModes []string        `json:",omitempty"`
	Metadata    json.RawMessage `json:",omitempty"`
	// Of an artifact. Append adds the parts to the artifact with the same id.
	Artifact  *Artifact `json:",omitempty"`
	Append    bool      `json:",omitempty"`
	LastChunk bool      `json:",omitempty"`
	// The lease that a status starts or ends. It is logged to show that no two leases were
	// live at the same time. Worker is the name of the worker that a lease starts for.
	Lease   string   `json:",omitempty"`
	Worker  string   `json:",omitempty"`
	Attempt int      `json:",omitempty"`
	Beats   int      `json:",omitempty"` // heartbeats of a lease that ended
	Ended   LeaseEnd `json:",omitempty"`
}

// LeaseEnd is the way in which a lease ended.
type LeaseEnd string

// The ends of a lease.
const (
	LeaseDone     LeaseEnd = "done"     // the worker finished, failed, rejected or asked for input
	LeaseReturned LeaseEnd = "returned" // the worker handed the task back, or never got it
	LeaseExpired  LeaseEnd = "expired"
	LeaseCanceled LeaseEnd = "canceled" // the sender canceled
	LeaseFailed   LeaseEnd = "failed"   // the worker failed, and another attempt follows
	LeaseOverdue  LeaseEnd = "overdue"  // the deadline of the task passed
)

// Task is a tracked unit of work: its row, and the messages and artifacts from its log.
type Task struct {
	UID        string             // internal id, unique across the platform
	Org        string             // of the agent
	Agent      string             // id, unique in its org
	Sender     identity.Principal // the owner of the task
	ID         string             // chosen by the sender, unique for (agent, sender)
	ContextID  string
	FollowupID string // the follow-up that the task works on; may be empty
	State      State
	Queued     bool // waits for a claim
	Seq        int64
	StatusSeq  int64 // of the event that set the status; 0 if unknown
	Size       int64 // of all messages and artifacts as JSON, in bytes
	Lease      Lease // zero if no worker holds the task
	Attempts   int   // attempts that ended with a lost worker, or failed and were followed by another
	Delivered  int64 // seq of the last turn that was delivered to the holder of the lease
	LastTurn   string
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Message    *Message        // of the current status
	Reply      bool            // Message is the whole result
	Metadata   json.RawMessage // from the sender, unchanged
	Push       bool            // the task has or had push configurations
	Trace      string          // the trace that the latest turn belongs to, see package trace; may be empty
	Policy     policy.Policy   // of the sender and its agent; mostly zero
	WakeAt     time.Time       // when DecideWake has something to do; zero: never

	History   []Message  // folded from the log
	Artifacts []Artifact // folded from the log
	// For the worker, folded with the history: the media types that the sender accepts, and
	// the metadata of the latest message that had any, except for the first message.
	OutputModes     []string
	RequestMetadata json.RawMessage
}

// Lease is the right to work on one task until a time. The token is a fencing token: a report
// with another token changes nothing.
type Lease struct {
	Token     string
	Worker    string
	ExpiresAt time.Time
	Beats     int // how often the worker has extended it
}

// HostPrefix begins the worker names of agents that run in a server.
const HostPrefix = "server:"

// hosted reports whether an agent that runs in a server holds the lease.
func (l Lease) hosted() bool { return strings.HasPrefix(l.Worker, HostPrefix) }

// Live reports whether a worker holds the lease. It does not check the time.
func (l Lease) Live() bool { return !l.ExpiresAt.IsZero() }

// Lease durations that a worker may ask for.
const (
	DefaultLease = 30 * time.Second
	MinLease     = time.Second
	MaxLease     = time.Hour
)

// MaxAhead is how far in the future a lease may end: the longest lease, and a minute for small
// corrections of the clock.
const MaxAhead = MaxLease + time.Minute

// over reports whether the lease has expired. A lease that ends later than MaxAhead was made
// before the clock was set back, and is treated as expired: otherwise it would last too long.
func (l Lease) over(clock time.Time) bool {
	return !clock.Before(l.ExpiresAt) || l.ExpiresAt.Sub(clock) > MaxAhead
}

// Apply folds an event into the task's messages, artifacts and status. It writes into the task's
// slices, so it must not be called on a shared task, such as a cached one.
func (t *Task) Apply(e *Event) {
	t.Seq = e.Seq
	switch e.Kind {
	case TurnEvent:
		if e.Message != nil { // streams omit large messages
			t.History = append(t.History, *e.Message)
		}
		if e.OutputModes != nil {
			t.OutputModes = e.OutputModes
		}
		if e.Metadata != nil {
			t.RequestMetadata = e.Metadata
		}
	case StatusEvent:
		t.State, t.UpdatedAt, t.Message, t.Reply, t.StatusSeq = e.State, e.At, e.Message, e.Reply, e.Seq
		if e.Message != nil {
			t.History = append(t.History, *e.Message)
		}
	case ArtifactEvent:
		t.UpdatedAt = e.At
		i := slices.IndexFunc(t.Artifacts, func(a Artifact) bool { return a.ID == e.Artifact.ID })
		switch {
		case i < 0:
			a := *e.Artifact
			a.Parts = slices.Clip(a.Parts) // appending must not change the event
			t.Artifacts = append(t.Artifacts, a)
		default:
			a := *e.Artifact
			if e.Append {
				a = t.Artifacts[i]
				a.Parts = append(a.Parts, e.Artifact.Parts...)
			}
			t.Artifacts[i] = a
		}
	}
}
