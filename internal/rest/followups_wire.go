package rest

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/followup"
)

// Followup is a follow-up of the org.
type Followup struct {
	ID                 string   `json:"id" doc:"Assigned by the service." example:"fup-01k5xb7d2n8f4j6s0a9g3r5w1c"`
	Title              string   `json:"title" doc:"One line that names the work." example:"Retry webhook deliveries"`
	Description        string   `json:"description" doc:"What to do." example:"Retry with exponential backoff for a day."`
	ProposalID         *string  `json:"proposal_id" doc:"Proposal whose approval created it; null if created manually."`
	TextHash           *string  `json:"text_hash" doc:"Hash of the approved text; null if created manually."`
	Status             string   `json:"status" doc:"Current status." example:"open"`
	Assignee           *string  `json:"assignee" doc:"Assigned user or agent; null if unassigned." example:"agent:fixer"`
	A2ATask            *A2ATask `json:"a2a_task" doc:"A2A task of the assigned agent; null if there is none."`
	CreatedBy          string   `json:"created_by" doc:"Who created it." example:"user:ada"`
	CreatedAt          string   `json:"created_at" format:"date-time" doc:"When it was created."`
	UpdatedAt          string   `json:"updated_at" format:"date-time" doc:"When it last changed."`
	AllowedTransitions []string `json:"allowed_transitions" nullable:"false" doc:"Statuses that it can change to."`
}

// A2ATask identifies the A2A task in which an agent works on a follow-up.
type A2ATask struct {
	UID   string `json:"uid" doc:"Task uid, for /api/v1/orgs/<org>/a2a/tasks/<uid>." example:"01k5xb7d2n8f4j6s0a9g3r5w1c"`
	State string `json:"state" doc:"Current state." example:"working"`
}

// Examples that are too long for a struct tag.
const (
	exampleProposalID = "prop-01k5x8r2m4v7c9w3q6z1t0h8ye"
	exampleTextHash   = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

// TransformSchema adds the enumeration of the domain, and examples.
func (Followup) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	property(s, "status", oneOf(followup.Statuses))
	property(s, "proposal_id", exampleOf(exampleProposalID))
	property(s, "text_hash", exampleOf(exampleTextHash))
	property(s, "allowed_transitions", exampleOf([]string{"in_progress", "done", "canceled"}))
	oneOf(followup.Statuses)(s.Properties["allowed_transitions"].Items)
	s.Properties["a2a_task"] = orNothing(s.Properties["a2a_task"])
	return s
}

// FollowupList is a page of follow-ups.
type FollowupList struct {
	Followups []Followup `json:"followups" nullable:"false" doc:"Follow-ups, newest first; empty past the end."`
	Total     int64      `json:"total" doc:"Number of matches." example:"5"`
	Page      int        `json:"page" doc:"Page number." example:"1"`
}

// FollowupCreation is the body that creates a follow-up.
type FollowupCreation struct {
	Title       string  `json:"title" doc:"One line that names the work." example:"Write the runbook"`
	Description *string `json:"description,omitempty" doc:"What to do."`
	Assignee    *string `json:"assignee,omitempty" doc:"user:ID or agent:ID. An agent requires svc:a2a:write." example:"user:ada"`
}

// TransformSchema adds the limits of the domain.
func (FollowupCreation) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	followupSchema(s)
	return s
}

// FollowupPatch is the body of a change to a follow-up.
type FollowupPatch struct {
	Title       *string `json:"title,omitempty" doc:"A new title."`
	Description *string `json:"description,omitempty" doc:"A new description."`
	Status      *string `json:"status,omitempty" doc:"A new status." example:"in_progress"`
	Assignee    *string `json:"assignee,omitempty" doc:"A new assignee; an empty string unassigns." example:"agent:fixer"`
}

// TransformSchema adds the enumeration and limits of the domain.
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
		ID: f.ID, Title: f.Title, Description: f.Description, ProposalID: orNull(f.ProposalID),
		TextHash: orNull(f.TextHash), Status: string(f.Status), Assignee: orNull(f.Assignee), CreatedBy: f.CreatedBy,
		CreatedAt: stamp(f.CreatedAt), UpdatedAt: stamp(f.UpdatedAt), AllowedTransitions: names(f.Status.Next()),
	}
	if f.TaskUID != "" {
		out.A2ATask = &A2ATask{UID: f.TaskUID, State: f.TaskState}
	}
	return out
}
