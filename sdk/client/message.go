package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"time"
)

// MessageParams is a message of A2A 1.0 to an agent.
type MessageParams struct {
	// TaskID continues a task; if empty, the server makes one.
	TaskID              string
	Message             Message // if it has no ID, the client makes one
	ContextID           string
	Metadata            json.RawMessage
	AcceptedOutputModes []string    // media types
	Push                *PushConfig // gets the events of the task from the first one on; nil: none
	HistoryLength       *int        // all if nil
	// ReturnImmediately does not wait for the task to rest, which can take up to a minute.
	ReturnImmediately bool
}

// SendResult is a task or, if the agent replied with only a message, that message.
type SendResult struct {
	Task    *Task    `json:"task"`
	Message *Message `json:"message"`
}

// v1Message is a message in the form of version 1.0.
type v1Message struct {
	ID               string          `json:"messageId"`
	Role             string          `json:"role"`
	Parts            []partJSON      `json:"parts"`
	TaskID           string          `json:"taskId,omitempty"`
	ContextID        string          `json:"contextId,omitempty"`
	ReferenceTaskIDs []string        `json:"referenceTaskIds,omitempty"`
	Extensions       []string        `json:"extensions,omitempty"`
	Metadata         json.RawMessage `json:"metadata,omitempty"`
}

type v1Send struct {
	Message       v1Message       `json:"message"`
	Configuration v1Configuration `json:"configuration"`
	Metadata      json.RawMessage `json:"metadata,omitempty"`
}

type v1Configuration struct {
	AcceptedOutputModes []string    `json:"acceptedOutputModes,omitempty"`
	Push                *PushConfig `json:"taskPushNotificationConfig,omitempty"`
	HistoryLength       *int        `json:"historyLength,omitempty"`
	ReturnImmediately   bool        `json:"returnImmediately,omitempty"`
}

func (p *MessageParams) v1() (*v1Send, error) {
	m := &p.Message
	out := &v1Send{
		Message: v1Message{
			ID: m.ID, Role: "ROLE_USER", TaskID: p.TaskID, ContextID: p.ContextID,
			ReferenceTaskIDs: m.ReferenceTaskIDs, Extensions: m.Extensions, Metadata: m.Metadata,
		},
		Configuration: v1Configuration{p.AcceptedOutputModes, p.Push, p.HistoryLength, p.ReturnImmediately},
		Metadata:      p.Metadata,
	}
	if m.ID == "" {
		out.Message.ID = rand.Text()
	}
	for i := range m.Parts {
		part, err := m.Parts[i].v1()
		if err != nil {
			return nil, err
		}
		out.Message.Parts = append(out.Message.Parts, part)
	}
	return out, nil
}

// SendMessage sends a message by A2A 1.0. It waits for the task to rest, up to a minute, unless
// ReturnImmediately is set.
func (a *AgentClient) SendMessage(ctx context.Context, p MessageParams, opts ...Option) (*SendResult, error) {
	params, err := p.v1()
	if err != nil {
		return nil, err
	}
	r := a.v1("SendMessage", params, false)
	if !p.ReturnImmediately {
		r.waits = time.Minute
	}
	return fetch[SendResult](ctx, a.c, r, opts)
}

// StreamMessage sends a message by A2A 1.0 and iterates over the results: the task, then its
// events. Once the task is known, the stream survives broken connections.
func (a *AgentClient) StreamMessage(ctx context.Context, p MessageParams, opts ...Option) iter.Seq2[Event, error] {
	params, err := p.v1()
	if err != nil {
		return func(yield func(Event, error) bool) { yield(Event{}, err) }
	}
	f := &follower{c: a.c, opts: opts, first: a.v1("SendStreamingMessage", params, false)}
	f.resume = func() call { return a.v1("SubscribeToTask", taskParams{ID: f.task}, true) }
	return f.events(ctx)
}
