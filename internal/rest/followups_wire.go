package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/followup"
)

// Followup is a follow-up.
type Followup struct {
	ID                 string   `json:"id" doc:"Assigned by the service." example:"fup-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Title              string   `json:"title" doc:"One line that names the work." example:"Retry webhook deliveries"`
	Description        string   `json:"description" doc:"What to do." example:"Retry with exponential backoff for a day."`
	ProposalID         *string  `json:"proposal_id" doc:"The proposal whose approval created it; null if made by hand." example:"prop-01k5x8r2m4v7c9w3q6z1t0h8ye"`
	TextHash           *string  `json:"text_hash" doc:"The hash of the text that was approved; null if made by hand." example:"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	Status             string   `json:"status" doc:"Where the work stands." example:"open"`
	Assignee           *string  `json:"assignee" doc:"Who does it; null if nobody." example:"agent:fixer"`
	A2ATask            *A2ATask `json:"a2a_task" doc:"The task that an agent works on it with; null if none."`
	CreatedBy          string   `json:"created_by" doc:"Who created it." example:"user:ada"`
	CreatedAt          string   `json:"created_at" format:"date-time" doc:"When it was created." example:"2026-03-02T10:00:00.000000Z"`
	UpdatedAt          string   `json:"updated_at" format:"date-time" doc:"When it last changed." example:"2026-03-02T10:00:00.000000Z"`
	AllowedTransitions []string `json:"allowed_transitions" nullable:"false" doc:"The statuses that may follow." example:"[\"in_progress\",\"done\",\"canceled\"]"`
}

// A2ATask is how an agent's work on a follow-up is found.
type A2ATask struct {
	UID   string `json:"uid" doc:"The platform's id of the task; its messages and artifacts are at /api/v1/orgs/<org>/a2a/tasks/<uid>." example:"01k5xb7d2n8f4j6s0a9g3r5w1c"`
	State string `json:"state" doc:"Where it stands." example:"working"`
}

// TransformSchema takes the list from the domain.
func (Followup) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "status", oneOf(followup.Statuses))
	oneOf(followup.Statuses)(s.Properties["allowed_transitions"].Items)
	s.Properties["a2a_task"] = orNothing(s.Properties["a2a_task"])
	return s
}

// FollowupList is one page of follow-ups.
type FollowupList struct {
	Followups []Followup `json:"followups" nullable:"false" doc:"The page, newest first; empty past the end."`
	Total     int64      `json:"total" doc:"How many match in all." example:"5"`
	Page      int        `json:"page" doc:"The number of this page." example:"1"`
}

// FollowupCreation is the body that makes a follow-up by hand.
type FollowupCreation struct {
	Title       string  `json:"title" doc:"One line that names the work." example:"Write the runbook"`
	Description *string `json:"description,omitempty" doc:"What to do."`
	Assignee    *string `json:"assignee,omitempty" doc:"Who does it: user:ID or agent:ID. An agent needs svc:a2a:write that reaches it." example:"user:ada"`
}

// TransformSchema takes the limits from the domain.
func (FollowupCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	followupSchema(s)
	return s
}

// FollowupPatch is the body of a change to a follow-up.
type FollowupPatch struct {
	Title       *string `json:"title,omitempty" doc:"A new title."`
	Description *string `json:"description,omitempty" doc:"A new description."`
	Status      *string `json:"status,omitempty" doc:"The status to go to." example:"in_progress"`
	Assignee    *string `json:"assignee,omitempty" doc:"Who does it; an empty string unassigns." example:"agent:fixer"`
}

// TransformSchema takes lists and limits from the domain.
func (FollowupPatch) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	followupSchema(s)
	property(s, "status", oneOf(followup.Statuses))
	one := 1
	s.MinProperties = &one
	return s
}

func followupSchema(s *huma.Schema) {
	property(s, "title", length(1, followup.MaxTitle), matching(titlePattern()))
	property(s, "description", length(0, followup.MaxDescription), matching(prosePattern()))
	property(s, "assignee", matching(assigneePattern))
}

func followupOf(f *followup.Followup) Followup {
	out := Followup{
		ID: f.ID, Title: f.Title, Description: f.Description, ProposalID: orNull(f.ProposalID), TextHash: orNull(f.TextHash),
		Status: string(f.Status), Assignee: orNull(f.Assignee), CreatedBy: f.CreatedBy,
		CreatedAt: stamp(f.CreatedAt), UpdatedAt: stamp(f.UpdatedAt), AllowedTransitions: names(f.Status.Next()),
	}
	if f.TaskUID != "" {
		out.A2ATask = &A2ATask{UID: f.TaskUID, State: f.TaskState}
	}
	return out
}
