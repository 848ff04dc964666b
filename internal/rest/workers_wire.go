package rest

import (
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// ClaimRequest is the body of a claim.
type ClaimRequest struct {
	Worker       *string  `json:"worker,omitempty" doc:"A name of the process, to tell the workers of an agent apart; the key's principal unless given." example:"host-1"`
	Max          *int     `json:"max,omitempty" doc:"How many tasks to take at most; 0 asks for direct messages only; 1 if left out." example:"1"`
	WaitSeconds  *int     `json:"wait_seconds,omitempty" doc:"How long to wait for work; 20 if left out." example:"20"`
	LeaseSeconds *int     `json:"lease_seconds,omitempty" doc:"How long a task is the worker's, unless it reports; 30 if left out." example:"30"`
	Capacity     *int     `json:"capacity,omitempty" doc:"How many tasks the worker can do at once; the agent is busy when all of it is used; 1 if left out." example:"4"`
	Ack          []string `json:"ack,omitempty" nullable:"false" doc:"The ids of direct messages that have arrived." example:"[\"msg-01k5xb7d2n8f4j6s0a9g3r5w1c\"]"`
}

// TransformSchema takes the limits from the domain.
func (ClaimRequest) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "worker", length(0, dispatch.MaxWorker), matching(idText))
	property(s, "max", between(0, dispatch.MaxClaim))
	property(s, "wait_seconds", between(0, int(dispatch.MaxWait/time.Second)))
	property(s, "lease_seconds", between(int(task.MinLease/time.Second), int(task.MaxLease/time.Second)))
	property(s, "capacity", between(1, dispatch.MaxCapacity))
	property(s, "ack", items(0, dispatch.MaxAck), eachItem(length(0, task.MaxID), matching(idText)))
	return s
}

// Claim is what a worker gets.
type Claim struct {
	Tasks    []ClaimedTask   `json:"tasks" nullable:"false" doc:"What to do."`
	Messages []DirectMessage `json:"messages" nullable:"false" doc:"Direct messages to the agent, oldest first."`
}

// ClaimedTask is a task as its worker gets it.
type ClaimedTask struct {
	ID             string      `json:"id" doc:"The platform's own id of the task." example:"01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Lease          string      `json:"lease" doc:"Proves to be the one who works on it." example:"lease-01k5xb7d2n8f4j6s0a9g3r5w1c-01k5xb7d2n8f4j6s0a9g3r5w1d"`
	LeaseExpiresAt string      `json:"lease_expires_at" format:"date-time" doc:"Until when, unless the worker extends it." example:"2026-03-02T10:00:00.000000Z"`
	Attempt        int         `json:"attempt" doc:"The number of the attempt, from 1." example:"1"`
	Sender         string      `json:"sender" doc:"Who sent it: org, kind and id." example:"acme/user:ada"`
	ContextID      string      `json:"context_id" doc:"The context that groups tasks." example:"ctx-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Message        message     `json:"message" doc:"The latest message of the sender."`
	History        messageList `json:"history" doc:"All messages, oldest first."`
	Seen           int64       `json:"seen" doc:"How much of the task this shows, for the next report." example:"2"`
	SenderTaskID   string      `json:"sender_task_id" doc:"The id under which the sender knows the task." example:"crm-4711"`
	Metadata       anything    `json:"metadata" doc:"The metadata of the sender's latest request that had any; null if none had."`
	OutputModes    []string    `json:"accepted_output_modes" nullable:"false" doc:"The media types that the sender accepts; empty if it does not say." example:"[\"text/plain\"]"`
}

// DirectMessage is a message that no task tracks.
type DirectMessage struct {
	ID      string  `json:"id" doc:"To acknowledge it by." example:"msg-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	From    string  `json:"from" doc:"Who sent it: org, kind and id." example:"acme/user:ada"`
	Message message `json:"message" doc:"What it says."`
	At      string  `json:"at" format:"date-time" doc:"When it was sent." example:"2026-03-02T10:00:00.000000Z"`
}

// WorkReport is the body of a report.
type WorkReport struct {
	Status        *string         `json:"status,omitempty" doc:"Where the task stands now; all but working end the lease. canceled confirms that the sender canceled the task." example:"completed"`
	Message       reportMessage   `json:"message,omitempty" doc:"What the agent says about it."`
	Reply         *bool           `json:"reply,omitempty" doc:"With completed and a message: the message is all there is to tell. A client of the official protocol that waits gets it instead of a task." example:"false"`
	Artifacts     reportArtifacts `json:"artifacts,omitempty" doc:"What the agent made, or further pieces of it; at most 100."`
	ExtendSeconds *int            `json:"extend_seconds,omitempty" doc:"Makes the lease last that long from now." example:"30"`
	Seen          *int64          `json:"seen,omitempty" minimum:"0" doc:"The number that the claim, or the last answer that arrived, had: what the sender said since then is in the answer, also if an answer got lost. Without it, each message is in one answer only." example:"2"`
}

// TransformSchema takes lists and limits from the domain.
func (WorkReport) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "status", oneOf(task.ReportableStates))
	property(s, "extend_seconds", between(int(task.MinLease/time.Second), int(task.MaxLease/time.Second)))
	property(s, "artifacts", items(0, dispatch.MaxClaim))
	// A reply is all that a completed task has to tell.
	reply := map[string]*huma.Schema{"reply": {Enum: []any{true}}}
	done := map[string]*huma.Schema{"status": {Enum: []any{string(task.Completed)}}, "artifacts": {MaxItems: new(int)}, "message": {}}
	extend(s, "if", &huma.Schema{Required: []string{"reply"}, Properties: reply})
	extend(s, "then", &huma.Schema{Required: []string{"status", "message"}, Properties: done})
	return s
}

// WorkProgress is the answer to a report.
type WorkProgress struct {
	State          string      `json:"state" doc:"Where the task stands." example:"working"`
	Canceled       bool        `json:"canceled" doc:"The sender canceled the task: stop working on it." example:"false"`
	LeaseExpiresAt *string     `json:"lease_expires_at" format:"date-time" doc:"Until when the lease lasts; null: it is over." example:"2026-03-02T10:00:00.000000Z"`
	Messages       messageList `json:"messages" doc:"What the sender said since the claim or the last report."`
	Seen           int64       `json:"seen" doc:"How much of the task the worker knows with this, for the next report." example:"3"`
	More           bool        `json:"more" doc:"The sender said more than messages holds, because the server was short of memory: report again to get the rest." example:"false"`
}

// TransformSchema takes the list from the domain.
func (WorkProgress) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(task.States))
	return s
}

func schemaOf[T any](a *api) *huma.Schema {
	return a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}

// appendClaim writes a Claim; it is on the path of every task, hence by hand.
func appendClaim(b []byte, c *dispatch.Claim) []byte {
	b = append(b, `{"tasks":[`...)
	for i := range c.Assignments {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendAssignment(b, &c.Assignments[i])
	}
	b = append(b, `],"messages":[`...)
	for i := range c.Messages {
		if i > 0 {
			b = append(b, ',')
		}
		m := &c.Messages[i]
		b = append(b, `{"id":`...)
		b = wire.AppendString(b, m.ID)
		b = append(b, `,"from":`...)
		b = wire.AppendString(b, fullRef(m.From))
		b = append(b, `,"message":`...)
		b = wire.AppendWorkMessage(b, &m.Message)
		b = append(b, `,"at":`...)
		b = wire.AppendTime(b, m.At)
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

func appendAssignment(b []byte, a *dispatch.Assignment) []byte {
	t := &a.Task
	b = append(b, `{"id":`...)
	b = wire.AppendString(b, t.UID)
	b = append(b, `,"lease":`...)
	b = wire.AppendString(b, a.Lease.Token)
	b = append(b, `,"lease_expires_at":`...)
	b = wire.AppendTime(b, a.Lease.ExpiresAt)
	b = append(b, `,"attempt":`...)
	b = strconv.AppendInt(b, int64(a.Number), 10)
	b = append(b, `,"sender":`...)
	b = wire.AppendString(b, fullRef(t.Sender))
	b = append(b, `,"context_id":`...)
	b = wire.AppendString(b, t.ContextID)
	b = append(b, `,"message":`...)
	latest := len(t.History) - 1
	for latest > 0 && t.History[latest].Role != task.RoleUser {
		latest--
	}
	b = wire.AppendWorkMessage(b, &t.History[latest])
	b = append(b, `,"history":`...)
	b = wire.AppendWorkMessages(b, t.History)
	b = append(b, `,"seen":`...)
	b = strconv.AppendInt(b, t.Seq, 10)
	// What the sender chose comes last: the smallest workers look for the first "text".
	b = append(b, `,"sender_task_id":`...)
	b = wire.AppendString(b, t.ID)
	metadata := t.RequestMetadata
	if metadata == nil {
		metadata = t.Metadata
	}
	b = append(b, `,"metadata":`...)
	if len(metadata) > 0 {
		b = append(b, metadata...)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"accepted_output_modes":[`...)
	for i, mode := range t.OutputModes {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, mode)
	}
	return append(b, "]}"...)
}
