package task

import "time"

// PushConfig says where the events of one task are to be sent, as its sender wants
// it. What is sent follows the task's log by a cursor of its own: nothing is lost
// when the receiver, or this server, is away for a while.
type PushConfig struct {
	ID     string // chosen by the sender, or ours
	TaskID string // the sender's id of the task
	URL    string
	Token  string // sent along, so that the receiver knows who it is
	// Scheme and Credentials are the Authorization header that the receiver wants.
	Scheme      string
	Credentials string
	Form        PushForm
	CreatedAt   time.Time
}

// PushForm is the form in which events are pushed: that of the dialect in which
// the sender asked for it.
type PushForm string

// The forms of pushes.
const (
	PushV1  PushForm = "1.0" // every event as it happens
	PushV03 PushForm = "0.3" // the whole task after every event
)
