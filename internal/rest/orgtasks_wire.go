package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/trace"
)

// OrgTask is a task of one of the org's agents, as in a list.
type OrgTask struct {
	UID        string  `json:"uid" doc:"Assigned by the platform." example:"01k5xb7d2n8f4j6s0a9g3r5w1c"`
	ID         string  `json:"id" doc:"The sender's id of the task." example:"crm-4711"`
	Agent      string  `json:"agent" doc:"Agent that it was sent to." example:"scout"`
	Sender     string  `json:"sender" doc:"Org, kind and id of the sender." example:"acme/user:ada"`
	ContextID  string  `json:"context_id" doc:"Context that groups tasks." example:"ctx-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	State      string  `json:"state" doc:"Current state." example:"working"`
	Attempt    int     `json:"attempt" doc:"Number of the attempt, from 1." example:"1"`
	Attempts   int     `json:"max_attempts" doc:"Attempts at most." example:"3"`
	Deadline   *string `json:"deadline" format:"date-time" doc:"When it fails unless it is over; null if never."`
	CreatedAt  string  `json:"created_at" format:"date-time" doc:"When it was sent."`
	UpdatedAt  string  `json:"updated_at" format:"date-time" doc:"When it last changed."`
	FollowupID *string `json:"followup_id" doc:"Follow-up that it works on; null if none." example:"fup-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Trace      string  `json:"traceparent,omitempty" doc:"Trace that the task belongs to (W3C Trace Context); absent if none." example:"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`
}

// TransformSchema adds the enumeration of the domain.
func (OrgTask) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(task.States))
	return s
}

// OrgTaskDetail is a task with its messages and artifacts.
type OrgTaskDetail struct {
	OrgTask
	StatusMessage nullableMessage `json:"status_message" doc:"The agent's message about the state; null without one."`
	History       messageList     `json:"history" doc:"All messages, oldest first."`
	Artifacts     artifactList    `json:"artifacts" doc:"Outputs of the task."`
}

// TransformSchema adds the enumeration of the domain.
func (OrgTaskDetail) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(task.States))
	return s
}

// OrgTaskList is a page of tasks.
type OrgTaskList struct {
	Tasks      []OrgTask `json:"tasks" nullable:"false" doc:"Tasks, newest first; empty past the end."`
	NextCursor *string   `json:"next_cursor" doc:"Cursor of the next page; null on the last page."`
}

func orgTaskOf(t *task.Task) OrgTask {
	return OrgTask{
		UID: t.UID, ID: t.ID, Agent: t.Agent, Sender: fullRef(t.Sender), ContextID: t.ContextID,
		State:   string(t.State),
		Attempt: t.Attempt(), Attempts: t.Policy.Retries().Attempts, Deadline: stampOrNull(t.Policy.Deadline),
		CreatedAt: stamp(t.CreatedAt), UpdatedAt: stamp(t.UpdatedAt),
		FollowupID: orNull(t.FollowupID), Trace: trace.FromString(t.Trace).Parent,
	}
}

// fullRef returns the org, kind and id of a principal.
func fullRef(p identity.Principal) string { return p.Org + "/" + p.Ref() }
