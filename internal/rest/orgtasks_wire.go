package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// OrgTask is one task of the org's agents, as the list shows it.
type OrgTask struct {
	UID        string  `json:"uid" doc:"The platform's own id of the task." example:"01k5xb7d2n8f4j6s0a9g3r5w1c"`
	ID         string  `json:"id" doc:"The sender's id of the task." example:"crm-4711"`
	Agent      string  `json:"agent" doc:"The agent it was sent to." example:"scout"`
	Sender     string  `json:"sender" doc:"Who sent it: org, kind and id." example:"acme/user:ada"`
	ContextID  string  `json:"context_id" doc:"The context that groups tasks." example:"ctx-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	State      string  `json:"state" doc:"Where it stands." example:"working"`
	Attempt    int     `json:"attempt" doc:"The number of the attempt to do it, from 1." example:"1"`
	CreatedAt  string  `json:"created_at" format:"date-time" doc:"When it was sent." example:"2026-03-02T10:00:00.000000Z"`
	UpdatedAt  string  `json:"updated_at" format:"date-time" doc:"When it last changed." example:"2026-03-02T10:00:00.000000Z"`
	FollowupID *string `json:"followup_id" doc:"The follow-up it works on; null if none." example:"fup-01k5xb7d2n8f4j6s0a9g3r5w1c"`
}

// TransformSchema takes the list from the domain.
func (OrgTask) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(task.States))
	return s
}

// OrgTaskDetail is one task with everything that was said and made.
type OrgTaskDetail struct {
	OrgTask
	StatusMessage nullableMessage `json:"status_message" doc:"What the agent says about its state; null if nothing."`
	History       messageList     `json:"history" doc:"All messages, oldest first."`
	Artifacts     artifactList    `json:"artifacts" doc:"The outputs."`
}

// TransformSchema takes the list from the domain.
func (OrgTaskDetail) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "state", oneOf(task.States))
	return s
}

// OrgTaskList is one page of tasks.
type OrgTaskList struct {
	Tasks      []OrgTask `json:"tasks" nullable:"false" doc:"The page, newest first; empty past the end."`
	NextCursor *string   `json:"next_cursor" doc:"Continues the list as the parameter cursor; null on the last page."`
}

func orgTaskOf(t *task.Task) OrgTask {
	return OrgTask{
		UID: t.UID, ID: t.ID, Agent: t.Agent, Sender: fullRef(t.Sender), ContextID: t.ContextID, State: string(t.State),
		Attempt: min(t.Attempts+1, task.MaxAttempts), CreatedAt: stamp(t.CreatedAt), UpdatedAt: stamp(t.UpdatedAt),
		FollowupID: orNull(t.FollowupID),
	}
}

// fullRef names a principal of any org.
func fullRef(p identity.Principal) string { return p.Org + "/" + p.Ref() }
