package client

import (
	"context"
	"iter"
	"time"
)

// FollowupsService works on follow-ups, the work that approved proposals lead to.
type FollowupsService struct{ service }

// FollowupStatus is the status of a follow-up.
type FollowupStatus string

// The statuses of follow-ups.
const (
	FollowupOpen       FollowupStatus = "open"
	FollowupInProgress FollowupStatus = "in_progress"
	FollowupDone       FollowupStatus = "done"
	FollowupCanceled   FollowupStatus = "canceled"
)

// followups is the name of the resource in paths and lists.
const followups = "followups"

// Followup is work that resulted from a proposal, or was created by hand.
type Followup struct {
	ID                 string           `json:"id"`
	Title              string           `json:"title"`
	Description        string           `json:"description"`
	ProposalID         string           `json:"proposal_id"` // empty: none
	Status             FollowupStatus   `json:"status"`
	Assignee           string           `json:"assignee"` // empty: none
	CreatedBy          string           `json:"created_by"`
	CreatedAt          time.Time        `json:"created_at"`
	UpdatedAt          time.Time        `json:"updated_at"`
	AllowedTransitions []FollowupStatus `json:"allowed_transitions"`
	TextHash           string           `json:"text_hash"` // of the approved text
	Task               *FollowupTask    `json:"a2a_task"`  // the task of the agent that works on it; nil: none
}

// FollowupTask is the A2A task of an agent for a follow-up.
type FollowupTask struct {
	UID   string    `json:"uid"`
	State TaskState `json:"state"`
}

// FollowupListParams filters a list of follow-ups. Zero fields do not filter.
type FollowupListParams struct {
	Status     string `url:"status"`   // a status, or all (default)
	Assignee   string `url:"assignee"` // a principal, or none
	ProposalID string `url:"proposal_id"`
	Page       int    `url:"page"`
	Limit      int    `url:"limit"`
}

func (s *FollowupsService) list(p FollowupListParams) listing[Followup] {
	r := read(followups)
	r.query = values(p)
	return listing[Followup]{c: s.c, call: r, member: followups, paging: byNumber}
}

// List returns one page of follow-ups, newest first.
func (s *FollowupsService) List(ctx context.Context, p FollowupListParams, opts ...Option) (*Page[Followup], error) {
	return s.list(p).page(ctx, opts)
}

// All iterates over the follow-ups of all pages.
func (s *FollowupsService) All(ctx context.Context, p FollowupListParams, opts ...Option) iter.Seq2[Followup, error] {
	return s.list(p).all(ctx, opts)
}

// FollowupCreation is a new follow-up.
type FollowupCreation struct {
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Assignee    string `json:"assignee,omitempty"` // user:<id> or agent:<id>
}

// Create creates a follow-up by hand.
func (s *FollowupsService) Create(ctx context.Context, f FollowupCreation, opts ...Option) (*Followup, error) {
	return fetch[Followup](ctx, s.c, post(f, followups), opts)
}

// Get returns one follow-up.
func (s *FollowupsService) Get(ctx context.Context, id string, opts ...Option) (*Followup, error) {
	return fetch[Followup](ctx, s.c, read(followups, id), opts)
}

// FollowupPatch changes a follow-up. Nil fields do not change.
type FollowupPatch struct {
	Title       *string         `json:"title,omitempty"`
	Description *string         `json:"description,omitempty"`
	Status      *FollowupStatus `json:"status,omitempty"`
	Assignee    *string         `json:"assignee,omitempty"` // empty: unassign
}

// Update changes a follow-up. An agent that becomes the assignee gets it as a task.
func (s *FollowupsService) Update(ctx context.Context, id string, p FollowupPatch, opts ...Option) (*Followup, error) {
	return fetch[Followup](ctx, s.c, patch(p, followups, id), opts)
}
