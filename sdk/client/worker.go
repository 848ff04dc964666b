package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// WorkerClient calls the API for the workers of one agent. Package worker builds on it: it keeps
// leases alive, reports in order and stops cleanly.
type WorkerClient struct {
	c     *Client
	agent string
}

// Worker returns the worker API of an agent of the key's org. The key needs the scope
// svc:a2a:serve.
func (c *Client) Worker(agent string) *WorkerClient { return &WorkerClient{c, agent} }

func (w *WorkerClient) path(segments ...string) string {
	return escape(append([]string{"api", "v1", "agents", w.agent}, segments...)...)
}

// ClaimRequest asks for work.
type ClaimRequest struct {
	Worker       string   `json:"worker,omitempty"` // distinguishes the agent's workers
	Max          int      `json:"max"`              // maximum number of tasks; 0 asks for direct messages alone
	WaitSeconds  int      `json:"wait_seconds"`     // how long to wait for work
	LeaseSeconds int      `json:"lease_seconds,omitempty"`
	Capacity     int      `json:"capacity,omitempty"` // how many tasks the worker runs at a time
	Ack          []string `json:"ack,omitempty"`      // ids of received direct messages
}

// Claim is the result of a claim.
type Claim struct {
	Tasks    []ClaimedTask   `json:"tasks"`
	Messages []DirectMessage `json:"messages"`
}

// ClaimedTask is a task that a worker has a lease for.
type ClaimedTask struct {
	ID                  string          `json:"id"` // the platform's id
	Lease               string          `json:"lease"`
	LeaseExpiresAt      time.Time       `json:"lease_expires_at"`
	Attempt             int             `json:"attempt"` // from 1
	MaxAttempts         int             `json:"max_attempts"`
	Deadline            time.Time       `json:"deadline"` // when the task fails and its lease ends; zero: never
	Sender              Sender          `json:"sender"`
	SenderTaskID        string          `json:"sender_task_id"`
	ContextID           string          `json:"context_id"`
	Message             Message         `json:"message"` // the sender's latest message
	History             []Message       `json:"history"`
	Metadata            json.RawMessage `json:"metadata"`
	AcceptedOutputModes []string        `json:"accepted_output_modes"`
	Seen                int64           `json:"seen"` // for the next report
	Trace                               // that the task belongs to
}

// DirectMessage is a message to the agent that is not a task: the sender expects no response, and
// none can be sent.
type DirectMessage struct {
	ID      string    `json:"id"`
	From    Sender    `json:"from"`
	Message Message   `json:"message"`
	At      time.Time `json:"at"`
}

// Text returns the message's text.
func (m *DirectMessage) Text() string { return m.Message.Text() }

// Claim takes tasks from the agent's queue. It is not repeated after a lost response: its tasks are
// delivered again when their leases expire.
func (w *WorkerClient) Claim(ctx context.Context, r ClaimRequest, opts ...Option) (*Claim, error) {
	return fetch[Claim](ctx, w.c, call{
		method: http.MethodPost, path: w.path("claim"), in: r, waits: time.Duration(r.WaitSeconds) * time.Second,
	}, opts)
}

// WorkReport reports on a task. A report without a status and content keeps the lease alive.
type WorkReport struct {
	Status        TaskState        `json:"status,omitempty"`
	Message       *Message         `json:"message,omitempty"`
	Reply         bool             `json:"reply,omitempty"` // the message is the whole result
	Artifacts     []WorkerArtifact `json:"artifacts,omitempty"`
	ExtendSeconds int              `json:"extend_seconds,omitempty"`
	Seen          int64            `json:"seen,omitempty"` // from the claim, or from the last response
}

// WorkerArtifact is an output, or a chunk of one.
type WorkerArtifact struct {
	ID        string `json:"artifact_id,omitempty"`
	Type      string `json:"type,omitempty"`
	Name      string `json:"name,omitempty"`
	Parts     []Part `json:"parts"`
	Append    bool   `json:"append,omitempty"` // to the earlier chunks with the same id
	LastChunk bool   `json:"last_chunk,omitempty"`
}

// WorkProgress is the response to a report.
type WorkProgress struct {
	State          TaskState `json:"state"`
	Canceled       bool      `json:"canceled"`         // by the sender
	LeaseExpiresAt time.Time `json:"lease_expires_at"` // zero: the lease is over
	Messages       []Message `json:"messages"`         // further messages of the sender
	More           bool      `json:"more"`             // more messages wait
	Seen           int64     `json:"seen"`             // for the next report
}

// Report reports on a task under its lease. A refusal with 409 means that the lease is over.
func (w *WorkerClient) Report(
	ctx context.Context, lease string, r WorkReport, opts ...Option,
) (*WorkProgress, error) {
	c := call{method: http.MethodPost, path: w.path("leases", lease), in: r, keyed: true}
	return fetch[WorkProgress](ctx, w.c, c, opts)
}

// Return hands a task back to the queue. It does not count as an attempt.
func (w *WorkerClient) Return(ctx context.Context, lease string, opts ...Option) error {
	return w.c.do(ctx, call{method: http.MethodDelete, path: w.path("leases", lease)}, nil, opts)
}
