package client

import (
	"context"
	"iter"
	"time"
)

// OrgTasksService reads the tasks of all senders to the agents of the org, for admins.
// [Client.Agent] works with the caller's own tasks.
type OrgTasksService struct{ service }

// OrgTask is a task to an agent of the org.
type OrgTask struct {
	UID        string    `json:"uid"` // the platform's id
	ID         string    `json:"id"`  // the sender's id
	Agent      string    `json:"agent"`
	Sender     Sender    `json:"sender"`
	ContextID  string    `json:"context_id"`
	State      TaskState `json:"state"`
	Attempt    int       `json:"attempt"`
	Attempts   int       `json:"max_attempts"`
	Deadline   time.Time `json:"deadline"`    // when it fails unless it is over; zero: never
	FollowupID string    `json:"followup_id"` // empty: none
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
	Trace      string    `json:"traceparent"` // W3C traceparent; empty: none
	// The content is in the record of one task, not in lists.
	StatusMessage *Message   `json:"status_message"`
	History       []Message  `json:"history"`
	Artifacts     []Artifact `json:"artifacts"`
}

// OrgTaskListParams filters a list of tasks. Zero fields do not filter.
type OrgTaskListParams struct {
	Agent     string    `url:"agent"`
	State     TaskState `url:"state"`
	ContextID string    `url:"context_id"`
	Cursor    string    `url:"cursor"`
	Limit     int       `url:"limit"`
}

func (s *OrgTasksService) list(p OrgTaskListParams) listing[OrgTask] {
	r := read("a2a", "tasks")
	r.query = values(p)
	return listing[OrgTask]{c: s.c, call: r, member: "tasks"}
}

// List returns one page of tasks, newest first.
func (s *OrgTasksService) List(ctx context.Context, p OrgTaskListParams, opts ...Option) (*Page[OrgTask], error) {
	return s.list(p).page(ctx, opts)
}

// All iterates over the tasks of all pages.
func (s *OrgTasksService) All(ctx context.Context, p OrgTaskListParams, opts ...Option) iter.Seq2[OrgTask, error] {
	return s.list(p).all(ctx, opts)
}

// Get returns one task with its content.
func (s *OrgTasksService) Get(ctx context.Context, uid string, opts ...Option) (*OrgTask, error) {
	return fetch[OrgTask](ctx, s.c, read("a2a", "tasks", uid), opts)
}

// Rerun sends a task again that failed, was rejected or canceled, for its sender. The new task has
// its own id, and names the old one in its metadata.
func (s *OrgTasksService) Rerun(ctx context.Context, uid string, opts ...Option) (*OrgTask, error) {
	return fetch[OrgTask](ctx, s.c, post(nil, "a2a", "tasks", uid, "rerun"), opts)
}

// PushState is the progress of the pushes to one receiver.
type PushState struct {
	ID            string    `json:"id"`
	TaskUID       string    `json:"task_uid"`
	TaskID        string    `json:"task_id"`
	Receiver      string    `json:"receiver"`
	Form          string    `json:"form"`       // version of A2A
	State         string    `json:"state"`      // active, done or dead
	Cursor        int64     `json:"cursor"`     // the last delivered event
	LastEvent     int64     `json:"last_event"` // the last event of the task
	Attempts      int       `json:"attempts"`
	LastError     string    `json:"last_error"`
	LastAttemptAt time.Time `json:"last_attempt_at"`
	DueAt         time.Time `json:"due_at"`
	CreatedAt     time.Time `json:"created_at"`
}

// PushListParams filters a list of push configs. Zero fields do not filter.
type PushListParams struct {
	State  string `url:"state"` // active, done or dead
	Cursor string `url:"cursor"`
	Limit  int    `url:"limit"`
}

func (s *OrgTasksService) pushes(p PushListParams) listing[PushState] {
	r := read("a2a", "push")
	r.query = values(p)
	return listing[PushState]{c: s.c, call: r, member: "configs"}
}

// Pushes returns one page of the push configs of all tasks.
func (s *OrgTasksService) Pushes(ctx context.Context, p PushListParams, opts ...Option) (*Page[PushState], error) {
	return s.pushes(p).page(ctx, opts)
}

// AllPushes iterates over the push configs of all tasks.
func (s *OrgTasksService) AllPushes(ctx context.Context, p PushListParams, opts ...Option) iter.Seq2[PushState, error] {
	return s.pushes(p).all(ctx, opts)
}

// TaskPushes returns the push configs of one task.
func (s *OrgTasksService) TaskPushes(ctx context.Context, uid string, opts ...Option) ([]PushState, error) {
	return items(listing[PushState]{c: s.c, call: read("a2a", "tasks", uid, "push"), member: "configs"}.page(ctx, opts))
}

// RetryPush resumes pushes that were given up.
func (s *OrgTasksService) RetryPush(ctx context.Context, uid, id string, opts ...Option) (*PushState, error) {
	return fetch[PushState](ctx, s.c, post(nil, "a2a", "tasks", uid, "push", id, "retry"), opts)
}
