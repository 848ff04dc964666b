package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// AgentClient calls one agent by A2A.
//
// Send and Stream let the sender choose the id of a task, so that a repeated send makes no second
// task. SendMessage and StreamMessage are the calls of A2A 1.0, where the server chooses the id:
// they have more options, but a send without a response is not repeated.
type AgentClient struct {
	c  *Client
	id string
	// parent is the task that the caller works on; see During.
	parent string
}

// During returns a client for an agent that calls while it works on a task of its own: the id of the
// task, or the token of its lease. The server counts such calls, and refuses those that go too deep.
// The key must be one that works for the task's agent.
func (a *AgentClient) During(task string) *AgentClient {
	return &AgentClient{a.c, a.id, task}
}

// Agent returns a client for an agent of the key's org, or for a public one.
func (c *Client) Agent(id string) *AgentClient { return &AgentClient{c: c, id: id} }

// rpc returns a call of one of the agent's methods.
func (a *AgentClient) rpc(method string, params any, repeat bool) call {
	r := call{method: http.MethodPost, path: escape("a2a", a.id), rpc: method, in: params, repeat: repeat}
	if a.parent != "" {
		r.set("Parley-Parent-Task", a.parent)
	}
	return r
}

// v1 returns a call of a method of A2A 1.0.
func (a *AgentClient) v1(method string, params any, repeat bool) call {
	r := a.rpc(method, params, repeat)
	r.set("A2A-Version", "1.0")
	return r
}

// Call calls any JSON-RPC method of the agent and returns the result. It is repeated only if the
// server certainly did not carry it out; see [WithRepeat].
func (a *AgentClient) Call(ctx context.Context, method string, params any, opts ...Option) (json.RawMessage, error) {
	raw, err := fetch[json.RawMessage](ctx, a.c, a.rpc(method, params, false), opts)
	if err != nil {
		return nil, err
	}
	return *raw, nil
}

// SendParams is a message to an agent.
type SendParams struct {
	// ID is the sender's id of the task; if empty, the client makes one. The id of a live task
	// sends a further message.
	ID string `json:"id"`
	// Message is the message; see [NewMessage].
	Message Message `json:"message"`
	// ContextID groups tasks.
	ContextID string `json:"contextId,omitempty"`
	// Metadata is a JSON object for the agent.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Policy is the deadline of a new task, and when it is tried again; nil: the agent's default.
	Policy *TaskPolicy `json:"-"`
	// HistoryLength is how many messages of the history the response has; none if nil.
	HistoryLength *int `json:"historyLength,omitempty"`
	// Wait is how long to wait for the task to rest, up to a minute. Zero returns at once.
	Wait time.Duration `json:"-"`
}

func (p *SendParams) complete() (err error) {
	if p.ID == "" {
		p.ID = NewTaskID("go-")
	}
	if p.Policy != nil {
		p.Metadata, err = p.Policy.Metadata(p.Metadata)
	}
	return err
}

// NewTaskID returns a random id for a task, with a prefix that shows its origin.
func NewTaskID(prefix string) string { return prefix + strings.ToLower(rand.Text()[:16]) }

// Send sends a task, or a further message on one, and returns the task.
func (a *AgentClient) Send(ctx context.Context, p SendParams, opts ...Option) (*Task, error) {
	if err := p.complete(); err != nil {
		return nil, err
	}
	r := a.rpc("tasks/send", p, true)
	if p.Wait > 0 {
		seconds := max(1, int(min(p.Wait, time.Minute)/time.Second))
		r.set("Prefer", fmt.Sprintf("wait=%d", seconds))
		r.waits = time.Duration(seconds) * time.Second
	}
	return fetch[Task](ctx, a.c, r, opts)
}

// taskParams name a task.
type taskParams struct {
	ID            string `json:"id"`
	HistoryLength *int   `json:"historyLength,omitempty"`
}

// GetParams selects what of a task to return.
type GetParams struct {
	HistoryLength *int // how many of the last messages; all if nil
}

// Get returns a task that the caller sent.
func (a *AgentClient) Get(ctx context.Context, id string, p GetParams, opts ...Option) (*Task, error) {
	return fetch[Task](ctx, a.c, a.v1("GetTask", taskParams{id, p.HistoryLength}, true), opts)
}

// Cancel cancels a task that the caller sent.
func (a *AgentClient) Cancel(ctx context.Context, id string, opts ...Option) (*Task, error) {
	return fetch[Task](ctx, a.c, a.v1("CancelTask", taskParams{ID: id}, false), opts)
}

// Rerun sends a task of the caller again that failed, was rejected or canceled. The new task has its
// own id, and names the old one in its metadata.
func (a *AgentClient) Rerun(ctx context.Context, id string, opts ...Option) (*OrgTask, error) {
	r := post(nil, "api", "v1", "agents", a.id, "tasks", id, "rerun")
	r.inOrg = false
	return fetch[OrgTask](ctx, a.c, r, opts)
}

// MessageReceipt acknowledges a direct message.
type MessageReceipt struct {
	ID string `json:"id"`
}

// Message sends the agent a message that is not a task: it cannot be queried later.
func (a *AgentClient) Message(ctx context.Context, m Message, opts ...Option) (*MessageReceipt, error) {
	m.ID = "" // with an id it would be a call of A2A 0.3, whose result is a task
	params := struct {
		Message Message `json:"message"`
	}{m}
	return fetch[MessageReceipt](ctx, a.c, a.rpc("message/send", params, false), opts)
}

// TaskListParams filters the caller's own tasks. Zero fields do not filter.
type TaskListParams struct {
	ContextID        string
	State            TaskState
	UpdatedAfter     time.Time
	HistoryLength    int // how many messages of each task
	IncludeArtifacts bool
	Limit            int // up to 100; 50 if zero
	Cursor           string
}

// List returns one page of the tasks that the caller sent to the agent, the latest change first.
func (a *AgentClient) List(ctx context.Context, p TaskListParams, opts ...Option) (*Page[Task], error) {
	params := map[string]any{}
	set := func(name string, value any, given bool) {
		if given {
			params[name] = value
		}
	}
	set("contextId", p.ContextID, p.ContextID != "")
	set("status", p.State.v1(), p.State != "")
	set("statusTimestampAfter", p.UpdatedAfter.UTC().Format(time.RFC3339Nano), !p.UpdatedAfter.IsZero())
	set("historyLength", p.HistoryLength, p.HistoryLength != 0)
	set("includeArtifacts", true, p.IncludeArtifacts)
	set("pageSize", p.Limit, p.Limit != 0)
	set("pageToken", p.Cursor, p.Cursor != "")
	list, err := fetch[struct {
		Tasks []Task `json:"tasks"`
		Next  string `json:"nextPageToken"`
		Total int64  `json:"totalSize"`
	}](ctx, a.c, a.v1("ListTasks", params, true), opts)
	if err != nil {
		return nil, err
	}
	return &Page[Task]{Items: list.Tasks, Next: list.Next, Total: list.Total}, nil
}

// All iterates over the tasks of all pages.
func (a *AgentClient) All(ctx context.Context, p TaskListParams, opts ...Option) iter.Seq2[Task, error] {
	return func(yield func(Task, error) bool) {
		if p.Limit == 0 {
			p.Limit = fullPage
		}
		for {
			page, err := a.List(ctx, p, opts...)
			if err != nil {
				yield(Task{}, err)
				return
			}
			for _, t := range page.Items {
				if !yield(t, nil) {
					return
				}
			}
			if p.Cursor = page.Next; p.Cursor == "" {
				return
			}
		}
	}
}

// PushConfig is a URL that gets the events of a task.
type PushConfig struct {
	ID     string `json:"id,omitempty"` // if empty, the server makes one; the same id replaces the config
	TaskID string `json:"taskId,omitempty"`
	URL    string `json:"url"`
	Token  string `json:"token,omitempty"` // sent with every push, to verify the sender
	// Authentication is the Authorization header of the pushes; nil: none.
	Authentication *PushAuthentication `json:"authentication,omitempty"`
}

// PushAuthentication is a scheme of HTTP authentication and its credentials.
type PushAuthentication struct {
	Scheme      string `json:"scheme"`
	Credentials string `json:"credentials,omitempty"`
}

// pushParams name a push config.
type pushParams struct {
	TaskID string `json:"taskId"`
	ID     string `json:"id,omitempty"`
}

// SetPush sends the events of a task to a URL from now on.
func (a *AgentClient) SetPush(ctx context.Context, p PushConfig, opts ...Option) (*PushConfig, error) {
	if p.ID == "" {
		p.ID = NewTaskID("push-") // so that a repetition replaces it
	}
	return fetch[PushConfig](ctx, a.c, a.v1("CreateTaskPushNotificationConfig", p, true), opts)
}

// GetPush returns one push config of a task.
func (a *AgentClient) GetPush(ctx context.Context, taskID, id string, opts ...Option) (*PushConfig, error) {
	return fetch[PushConfig](ctx, a.c, a.v1("GetTaskPushNotificationConfig", pushParams{taskID, id}, true), opts)
}

// ListPush returns all push configs of a task.
func (a *AgentClient) ListPush(ctx context.Context, taskID string, opts ...Option) ([]PushConfig, error) {
	list, err := fetch[struct {
		Configs []PushConfig `json:"configs"`
	}](ctx, a.c, a.v1("ListTaskPushNotificationConfigs", pushParams{TaskID: taskID}, true), opts)
	if err != nil {
		return nil, err
	}
	return list.Configs, nil
}

// DeletePush ends the pushes of one config.
func (a *AgentClient) DeletePush(ctx context.Context, taskID, id string, opts ...Option) error {
	_, err := fetch[struct{}](ctx, a.c, a.v1("DeleteTaskPushNotificationConfig", pushParams{taskID, id}, false), opts)
	return err
}

// Card returns the agent's card in the form of A2A 1.0.
func (a *AgentClient) Card(ctx context.Context, opts ...Option) (*AgentCard, error) {
	r := call{method: http.MethodGet, path: "/a2a/" + url.PathEscape(a.id)}
	r.set("A2A-Version", "1.0")
	return fetch[AgentCard](ctx, a.c, r, opts)
}

// ExtendedCard returns the agent's card for authenticated callers.
func (a *AgentClient) ExtendedCard(ctx context.Context, opts ...Option) (*AgentCard, error) {
	return fetch[AgentCard](ctx, a.c, a.v1("GetExtendedAgentCard", struct{}{}, true), opts)
}
