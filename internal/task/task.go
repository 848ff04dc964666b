// Package task says what an A2A task is: its messages and artifacts, which state follows
// which, and what its content may be.
//
// Everything that happens to a task is an event in its log. The log is the truth: a task's
// messages and artifacts are folded from it. Decisions are pure functions (decide.go) from
// a task and a command to a Change, which a store writes in a transaction. The package
// calls no store, starts no goroutine, and knows no wire form, no HTTP and no SQL.
package task

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// State is where a task stands.
type State string

// The states. The specification has the first five; the last three are the official
// protocol's.
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

// transitions is the table of states. A state that is not a key is terminal.
// Working may follow itself: a worker reports progress, or a task waits for its
// next attempt.
var transitions = map[State][]State{
	Submitted:     {Working, Canceled, Failed, Rejected},
	Working:       {Working, Completed, Failed, Canceled, InputRequired, AuthRequired, Rejected},
	InputRequired: {Working, Canceled, Failed},
	AuthRequired:  {Working, Canceled, Failed},
}

// Next lists the states that may follow s.
func (s State) Next() []State { return transitions[s] }

// Terminal reports whether nothing follows s.
func (s State) Terminal() bool { return len(transitions[s]) == 0 }

// Interrupted reports whether the task waits for a message of its sender.
func (s State) Interrupted() bool { return s == InputRequired || s == AuthRequired }

// Rests reports whether a caller that waits has waited long enough: the task is
// over, or it is the caller's turn.
func (s State) Rests() bool { return s.Terminal() || s.Interrupted() }

// Role says who speaks.
type Role string

// The roles.
const (
	RoleUser  Role = "user"
	RoleAgent Role = "agent"
)

// PartKind is the sort of a part.
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
	Name      string          `json:",omitempty"` // of a file, as a rule
	MediaType string          `json:",omitempty"`
	Bytes     []byte          `json:",omitempty"` // of a file, or
	URL       string          `json:",omitempty"` // where it is
	Metadata  json.RawMessage `json:",omitempty"` // a JSON object

	Left int64 `json:"-"` // bytes of the content that were left out, see Content.Clip
}

// Message is one turn of the conversation about a task, or a direct message.
type Message struct {
	ID         string `json:",omitempty"` // chosen by whoever sent it, or made from its place in the log
	Role       Role
	Parts      []Part
	Metadata   json.RawMessage `json:",omitempty"`
	Extensions []string        `json:",omitempty"` // URIs of what the metadata means
	References []string        `json:",omitempty"` // ids of tasks that it is about
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

// EventKind is the sort of an event.
type EventKind string

// The kinds of events. A turn is what the sender said; streams leave it out,
// because they tell the sender only what it does not know.
const (
	StatusEvent   EventKind = "status"
	ArtifactEvent EventKind = "artifact"
	TurnEvent     EventKind = "turn"
)

// Event is one entry of a task's log.
type Event struct {
	Seq     int64     `json:"-"` // from 1, without gaps
	At      time.Time `json:"-"`
	Kind    EventKind `json:"-"`
	State   State     `json:",omitempty"` // of a status
	Message *Message  `json:",omitempty"` // of a status or a turn
	Reply   bool      `json:",omitempty"` // the message is all there is: who can take it gets it instead of a task
	// Of a turn: what the request said beside its message. Metadata is that of a further
	// message; that of the first is in the task's row.
	OutputModes []string        `json:",omitempty"`
	Metadata    json.RawMessage `json:",omitempty"`
	// Of an artifact. Append adds the parts to the artifact with the same id.
	Artifact  *Artifact `json:",omitempty"`
	Append    bool      `json:",omitempty"`
	LastChunk bool      `json:",omitempty"`
	// Who held the task. A status that starts or ends a lease names it, so that the
	// log shows that no two were live at once.
	Lease   string   `json:",omitempty"`
	Attempt int      `json:",omitempty"`
	Ended   LeaseEnd `json:",omitempty"`
}

// LeaseEnd says how a lease ended.
type LeaseEnd string

// The ends of a lease.
const (
	LeaseDone     LeaseEnd = "done"     // the worker finished, failed, rejected or asked for input
	LeaseReturned LeaseEnd = "returned" // the worker handed the task back, or never got it
	LeaseExpired  LeaseEnd = "expired"
	LeaseCanceled LeaseEnd = "canceled" // the sender canceled
)

// Task is a tracked unit of work as its row has it; messages and artifacts come
// from its log.
type Task struct {
	UID        string             // our own id, unique across the platform
	Org        string             // of the agent
	Agent      string             // the agent's id, unique in its org
	Sender     identity.Principal // whose task it is
	ID         string             // chosen by the sender, unique for (agent, sender)
	ContextID  string
	FollowupID string // the follow-up it works on; empty: none
	State      State
	Queued     bool // waits to be claimed
	Seq        int64
	StatusSeq  int64 // of the event that set the status; 0: unknown
	Size       int64 // of all messages and artifacts as JSON, in bytes
	Lease      Lease // zero: nobody works on it
	Attempts   int   // that ended by a lost worker
	Delivered  int64 // seq of the last turn that the lease's holder was given
	LastTurn   string
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Message    *Message        // of the current status
	Reply      bool            // which is all there is to tell
	Metadata   json.RawMessage // from the sender, kept as it came
	Push       bool            // it has, or had, push configurations

	History   []Message  // folded from the log
	Artifacts []Artifact // folded from the log
	// Folded with the history, for the worker: the media types that the sender accepts, and
	// the metadata of its latest request that had any, unless that was the first.
	OutputModes     []string
	RequestMetadata json.RawMessage
}

// Lease is the right to work on one task until a time. Its token fences: a report
// under another token changes nothing.
type Lease struct {
	Token     string
	Worker    string
	ExpiresAt time.Time
}

// Live reports whether somebody holds the lease, as far as its row says.
func (l Lease) Live() bool { return !l.ExpiresAt.IsZero() }

// Lease durations that a worker may ask for.
const (
	DefaultLease = 30 * time.Second
	MinLease     = time.Second
	MaxLease     = time.Hour
)

// MaxAhead is how far ahead a lease can end: the longest one, and a minute for small
// corrections of the clock.
const MaxAhead = MaxLease + time.Minute

// over reports whether the lease has run out. One that ends further ahead than any
// lease can was made before the clock was set back: it would last for as long as the
// clock was wrong.
func (l Lease) over(clock time.Time) bool {
	return !clock.Before(l.ExpiresAt) || l.ExpiresAt.Sub(clock) > MaxAhead
}

// Apply folds an event into the task's messages, artifacts and status. It writes into
// the task's slices: a task that others hold, such as a cached one, must not be folded
// further.
func (t *Task) Apply(e *Event) {
	t.Seq = e.Seq
	switch e.Kind {
	case TurnEvent:
		if e.Message != nil { // a reader may be spared a large one
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
			a.Parts = slices.Clip(a.Parts) // the event keeps its own
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
