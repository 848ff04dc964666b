package rest

import (
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/trace"
	"github.com/parley-dev/parley/internal/wire"
)

// ClaimRequest is the body of a claim.
type ClaimRequest struct {
	Worker       *string  `json:"worker,omitempty" doc:"Name of the worker process; default: the key's principal." example:"host-1"`
	Max          *int     `json:"max,omitempty" doc:"Maximum number of tasks; default 1. 0: only messages." example:"1"`
	WaitSeconds  *int     `json:"wait_seconds,omitempty" doc:"How long to wait for work; default 20." example:"20"`
	LeaseSeconds *int     `json:"lease_seconds,omitempty" doc:"Duration of the lease, unless extended; default 30." example:"30"`
	Capacity     *int     `json:"capacity,omitempty" doc:"Number of tasks that the worker can run at once; default 1." example:"4"`
	Ack          []string `json:"ack,omitempty" nullable:"false" doc:"Ids of received direct messages." example:"[\"msg-01k5xb7d2n8f\"]"`
}

// TransformSchema adds the limits of the domain.
func (ClaimRequest) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "worker", length(0, dispatch.MaxWorker), matching(plainPattern()))
	property(s, "max", between(0, dispatch.MaxClaim))
	property(s, "wait_seconds", between(0, int(dispatch.MaxWait/time.Second)))
	property(s, "lease_seconds", between(int(task.MinLease/time.Second), int(task.MaxLease/time.Second)))
	property(s, "capacity", between(1, dispatch.MaxCapacity))
	property(s, "ack", items(0, dispatch.MaxAck), eachItem(length(0, task.MaxID), matching(idText)))
	return s
}

// Claim is the response to a claim.
type Claim struct {
	Tasks    []ClaimedTask   `json:"tasks" nullable:"false" doc:"Claimed tasks."`
	Messages []DirectMessage `json:"messages" nullable:"false" doc:"Direct messages to the agent, oldest first."`
}

// ClaimedTask is a task for a worker.
type ClaimedTask struct {
	ID             string      `json:"id" doc:"Assigned by the platform." example:"01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Lease          string      `json:"lease" doc:"Lease token; required on every report." example:"lease-01k5xb7d2n8f4j6s0a9g3r5w1c-01k5xb7e3p9g5k7t1b0h4s6x2d"`
	LeaseExpiresAt string      `json:"lease_expires_at" format:"date-time" doc:"When the lease expires, unless extended."`
	Attempt        int         `json:"attempt" doc:"Number of the attempt, from 1." example:"1"`
	MaxAttempts    int         `json:"max_attempts" doc:"Attempts at most. After the last one the task fails." example:"3"`
	Deadline       string      `json:"deadline,omitempty" format:"date-time" doc:"When the task fails and its lease ends; absent if never."`
	Sender         string      `json:"sender" doc:"Org, kind and id of the sender." example:"acme/user:ada"`
	ContextID      string      `json:"context_id" doc:"Context that groups tasks." example:"ctx-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Message        message     `json:"message" doc:"Latest message of the sender."`
	History        messageList `json:"history" doc:"All messages, oldest first."`
	Seen           int64       `json:"seen" doc:"Sequence number of the shown state; send it with the next report." example:"2"`
	SenderTaskID   string      `json:"sender_task_id" doc:"The sender's id of the task." example:"crm-4711"`
	Metadata       anything    `json:"metadata" doc:"Metadata of the sender's latest request that had any; null if none had."`
	OutputModes    []string    `json:"accepted_output_modes" nullable:"false" doc:"Media types that the sender accepts; empty if not given."`
	Traceparent    string      `json:"traceparent,omitempty" example:"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`
	Tracestate     string      `json:"tracestate,omitempty" doc:"The tracestate that belongs to traceparent; absent if none." example:"vendor=value"`
}

// TransformSchema adds an example and a description.
func (ClaimedTask) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "traceparent", describedAs("Trace that the task belongs to (W3C Trace Context); absent if "+
		"none. Send it as the header traceparent, or that of a span below it, with each report."))
	property(s, "accepted_output_modes", exampleOf([]string{"text/plain"}))
	return s
}

// DirectMessage is a message without a task.
type DirectMessage struct {
	ID      string  `json:"id" doc:"Id to acknowledge it with." example:"msg-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	From    string  `json:"from" doc:"Org, kind and id of the sender." example:"acme/user:ada"`
	Message message `json:"message" doc:"The message."`
	At      string  `json:"at" format:"date-time" doc:"When it was sent."`
}

// WorkReport is the body of a report.
type WorkReport struct {
	Status        *string         `json:"status,omitempty" example:"completed"`
	Message       reportMessage   `json:"message,omitempty" doc:"Message of the agent about the status."`
	Reply         *bool           `json:"reply,omitempty" example:"false"`
	Artifacts     reportArtifacts `json:"artifacts,omitempty" doc:"New artifacts or further chunks; at most 100."`
	ExtendSeconds *int            `json:"extend_seconds,omitempty" doc:"New duration of the lease from now." example:"30"`
	Seen          *int64          `json:"seen,omitempty" minimum:"0" example:"2"`
}

// TransformSchema adds the enumeration and limits of the domain, and descriptions.
func (WorkReport) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "status", oneOf(task.ReportableStates), describedAs("New state of the task. All except working end the lease. "+
		"After failed the task may be tried again, as its policy says. canceled confirms that the sender canceled the task."))
	property(s, "reply", describedAs("With completed and a message: the message is the whole result. "+
		"A waiting client of A2A 0.3 or 1.0 receives the message instead of a task."))
	property(s, "seen", describedAs("seen of the claim, or of the last response that arrived. The response then has all messages of "+
		"the sender since, even if an earlier response was lost. Without it, each message is in one response only."))
	property(s, "extend_seconds", between(int(task.MinLease/time.Second), int(task.MaxLease/time.Second)))
	property(s, "artifacts", items(0, dispatch.MaxClaim))
	// A reply is the whole result of a completed task.
	reply := map[string]*huma.Schema{"reply": {Enum: []any{true}}}
	done := map[string]*huma.Schema{
		"status": {Enum: []any{string(task.Completed)}}, "artifacts": {MaxItems: new(int)}, "message": {},
	}
	extend(s, "if", &huma.Schema{Required: []string{"reply"}, Properties: reply})
	extend(s, "then", &huma.Schema{Required: []string{"status", "message"}, Properties: done})
	return s
}

// WorkProgress is the response to a report.
type WorkProgress struct {
	State          string      `json:"state" doc:"Current state of the task." example:"working"`
	Canceled       bool        `json:"canceled" doc:"The sender canceled the task: stop working on it." example:"false"`
	LeaseExpiresAt *string     `json:"lease_expires_at" format:"date-time" doc:"When the lease expires; null if it is over."`
	Messages       messageList `json:"messages" doc:"Messages of the sender since the claim or the last report."`
	Seen           int64       `json:"seen" doc:"Sequence number of the shown state; send it with the next report." example:"3"`
	More           bool        `json:"more" example:"false"`
}

// TransformSchema adds the enumeration of the domain, and a description.
func (WorkProgress) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(task.States))
	property(s, "more", describedAs("There are more messages, which were left out because the server is short of memory. "+
		"Report again to get them."))
	return s
}

func progressOf(p *dispatch.Progress) WorkProgress {
	return WorkProgress{
		State: string(p.State), Canceled: p.Canceled, LeaseExpiresAt: stampOrNull(p.ExpiresAt),
		Messages: wire.AppendWorkMessages(nil, p.Turns), Seen: p.Seen, More: p.More,
	}
}

func schemaOf[T any](a *api) *huma.Schema {
	return a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}

// appendClaim encodes a Claim. It is written by hand because every task passes here.
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
	b = append(b, `,"max_attempts":`...)
	b = strconv.AppendInt(b, int64(t.Policy.Retries().Attempts), 10)
	if !t.Policy.Deadline.IsZero() {
		b = wire.AppendTime(append(b, `,"deadline":`...), t.Policy.Deadline)
	}
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
	// Fields that the sender controls come last: simple workers look for the first "text".
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
	b = append(b, ']')
	if t.Trace != "" {
		c := trace.FromString(t.Trace)
		b = appendText(b, `,"traceparent":`, c.Parent)
		if c.State != "" {
			b = appendText(b, `,"tracestate":`, c.State)
		}
	}
	return append(b, '}')
}
