// Package followup has the rules for follow-ups: the work that approved proposals lead to, and
// work that people add by hand. A follow-up that is assigned to an agent is sent to it as an A2A
// task.
//
// The package contains no HTTP and no SQL. Of proposals it knows only the id.
package followup

import (
	"time"

	"github.com/parley-dev/parley/internal/identity"
)

// Status is the status of a follow-up.
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

// transitions lists the allowed transitions. A done or canceled follow-up can only be reopened.
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
	ProposalID  string // empty if it was created by hand
	TextHash    string // of the approved text; empty if it was created by hand
	Status      Status
	Assignee    string // a ref; may be empty
	CreatedBy   string // a ref
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Version     int64
	TaskUID     string // the A2A task of the agent that works on it; may be empty
	TaskState   string // of that task
}

// Mirror returns the follow-up after its A2A task changed its state: in progress while the agent
// works, done if it completed, and open again if it failed. A follow-up that people ended
// meanwhile stays ended.
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

// TakeOver returns the follow-up with a new task of an agent. It refuses if the follow-up has
// ended meanwhile, or if an agent works on it under a task that the new one does not replace.
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

// over reports whether the follow-up is done or canceled.
func (f *Followup) over() bool { return f.Status == Done || f.Status == Canceled }

// atWork reports whether an agent's task is still active.
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

// All is the value of a filter that matches all.
const All = "all"
