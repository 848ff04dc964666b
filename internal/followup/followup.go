// Package followup holds the rules of follow-ups: the work that approved proposals
// lead to, and what people add beside it. A task is always an A2A task; a follow-up
// that is assigned to an agent is sent to it as one.
//
// The package knows no HTTP, no SQL, and nothing of proposals but an id.
package followup

import (
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// Status is where a follow-up stands.
type Status string

// The statuses.
const (
	Open       Status = "open"
	InProgress Status = "in_progress"
	Done       Status = "done"
	Canceled   Status = "canceled"
)

// Statuses lists every status.
var Statuses = []Status{Open, InProgress, Done, Canceled}

// transitions: work can be taken up, put back, finished and dropped; what is
// over can only be opened again.
var transitions = map[Status][]Status{
	Open:       {InProgress, Done, Canceled},
	InProgress: {Open, Done, Canceled},
	Done:       {Open},
	Canceled:   {Open},
}

// Next lists the statuses that may follow s.
func (s Status) Next() []Status { return transitions[s] }

// Followup is one piece of work.
type Followup struct {
	Org         string
	ID          string
	Title       string
	Description string
	ProposalID  string // empty: made by hand
	TextHash    string // of the approved text; empty: made by hand
	Status      Status
	Assignee    string // a ref; empty: nobody
	CreatedBy   string // a ref
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Version     int64
	TaskUID     string // the A2A task that an agent works on it with; empty: none
	TaskState   string // of that task
}

// Mirror is the follow-up as its A2A task's state makes it: what an agent works on
// is in progress, what it finished is done, and what it could not do is open
// again for somebody else. What people ended meanwhile stays ended.
func (f Followup) Mirror(taskUID, state string, now time.Time) Followup {
	f.TaskUID, f.TaskState, f.UpdatedAt = taskUID, state, now
	switch {
	case f.over():
	case state == "working" || state == "input-required" || state == "auth-required":
		f.Status = InProgress
	case state == "completed":
		f.Status = Done
	default:
		f.Status = Open
	}
	return f
}

// TakeOver is the follow-up with a new task of an agent, unless somebody has ended it
// meanwhile, or an agent is at work on it and the new task does not replace that one's.
func (f Followup) TakeOver(agent, taskUID, state, replaces string, now time.Time) (Followup, error) {
	switch {
	case f.over():
		return f, f.errOver()
	case f.atWork() && f.TaskUID != replaces:
		return f, errTakenOver
	}
	f.Assignee = identity.Principal{Kind: identity.Agent, ID: agent}.Ref()
	return f.Mirror(taskUID, state, now), nil
}

// over reports whether nobody is to work on it any more, unless it is opened again.
func (f *Followup) over() bool { return f.Status == Done || f.Status == Canceled }

// atWork reports whether an agent's task is still under way.
func (f *Followup) atWork() bool {
	switch f.TaskState {
	case "submitted", "working", "input-required", "auth-required":
		return f.TaskUID != ""
	}
	return false
}

// Limits, in characters.
const (
	MaxTitle       = 200
	MaxDescription = 20_000
	DefaultLimit   = 20
	MaxLimit       = 100
)

// All stands for "no filter".
const All = "all"
