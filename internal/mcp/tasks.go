package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-dev/parley/internal/budget"
	"github.com/parley-dev/parley/internal/chain"
	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/task"
)

// The longest and the default wait of send_task.
const (
	maxWait     = 60 * time.Second
	defaultWait = 20
)

type sendIn struct {
	Agent       string  `json:"agent" jsonschema:"The agent's id; find_agent and list_agents show them."`
	Message     *string `json:"message,omitempty" jsonschema:"The instructions for the agent, as text. Give either message or parts."`
	Parts       []part  `json:"parts,omitempty" jsonschema:"The instructions for the agent, in parts."`
	TaskID      *string `json:"task_id,omitempty"`
	ParentTask  *string `json:"parent_task,omitempty" jsonschema:"If you call while you work on a task of Parley: its uid or the token of its lease. Parley refuses calls that go too deep."`
	WaitSeconds *int    `json:"wait_seconds,omitempty" jsonschema:"How long to wait until the task ends or needs input; 0: return at once."`
}

type taskIn struct {
	Agent  string `json:"agent" jsonschema:"The agent's id."`
	TaskID string `json:"task_id" jsonschema:"The task's id from send_task."`
}

// part is a part of a message or of an artifact.
type part struct {
	Type      string `json:"type" jsonschema:"text, data or file."`
	Text      string `json:"text,omitempty" jsonschema:"For text."`
	Data      any    `json:"data,omitempty" jsonschema:"For data: any JSON value."`
	Name      string `json:"name,omitempty" jsonschema:"For a file."`
	MediaType string `json:"media_type,omitempty" jsonschema:"For a file."`
	Bytes     string `json:"bytes,omitempty" jsonschema:"For a file: its content in base64, or"`
	URL       string `json:"url,omitempty" jsonschema:"the URL of the file."`
}

type messageOut struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type artifactOut struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"`
	Parts []part `json:"parts"`
}

type taskOut struct {
	Agent     string        `json:"agent"`
	TaskID    string        `json:"task_id"`
	ContextID string        `json:"context_id"`
	State     string        `json:"state"`
	Final     bool          `json:"final" jsonschema:"Whether the task is over; if not, use get_task, or send_task if it needs input."`
	UpdatedAt string        `json:"updated_at"`
	Message   *messageOut   `json:"message" jsonschema:"The agent's last message; null: none."`
	Artifacts []artifactOut `json:"artifacts" jsonschema:"The outputs."`
}

func (s *server) addTasks(m *sdk.Server) {
	add(s, m, tool{
		name: "send_task", title: "Send a task to an agent", action: identity.CallAgent,
		effect: effect{openWorld: true},
		description: "Sends a task to an agent, or a further message on a task that needs input, " +
			"and waits for the result. The agent may have side effects. " +
			"Needs the scope svc:a2a:write, and a key that reaches the agent. " +
			"A repeat without task_id sends a second task; with the same task_id and message " +
			"it changes nothing and returns the task.",
		limits: func(s *jsonschema.Schema) {
			between(s, "wait_seconds", 0, int(maxWait/time.Second))
			byDefault(s, "wait_seconds", fmt.Sprint(defaultWait))
			length(s, "task_id", 1, task.MaxID)
			length(s, "parent_task", 1, task.MaxID)
			s.Properties["task_id"].Description = "An id of your choice, which makes a repeat safe, " +
				"or the id of a task that needs input, to send the input. Left out: a new task."
			parts, most := s.Properties["parts"], task.MaxParts
			parts.MaxItems = &most
			oneOf(parts.Items, "type", []task.PartKind{task.TextPart, task.DataPart, task.FilePart})
		},
	}, s.sendTask)
	add(s, m, tool{
		name: "get_task", title: "Get a task", action: identity.CallAgent,
		effect: effect{readOnly: true, idempotent: true},
		description: "Returns a task that you sent: its state, the agent's message and its outputs. " +
			"Changes nothing. Needs the scope svc:a2a:write, and a key that reaches the agent.",
	}, s.getTask)
	add(s, m, tool{
		name: "cancel_task", title: "Cancel a task", action: identity.CallAgent,
		effect: effect{idempotent: true, destructive: true, openWorld: true},
		description: "Cancels a task that you sent; the agent stops working on it. " +
			"Needs the scope svc:a2a:write, and a key that reaches the agent. " +
			"A task that is over does not change, and a repeat fails.",
	}, s.cancelTask)
}

func (s *server) sendTask(ctx context.Context, a *arguments[sendIn]) (*taskOut, error) {
	to, err := s.Tasks.Reach(ctx, a.caller, a.in.Agent)
	if err != nil {
		return nil, err
	}
	a.notEmpty("task_id", a.in.TaskID)
	a.notEmpty("parent_task", a.in.ParentTask)
	to = to.During(deref(a.in.ParentTask))
	wait := defaultWait
	if a.in.WaitSeconds != nil {
		wait = *a.in.WaitSeconds
	}
	if wait < 0 || wait > int(maxWait/time.Second) {
		a.broken = append(a.broken, errs.Field{
			Path:    errs.At("wait_seconds"),
			Message: fmt.Sprintf("must be between 0 and %d", int(maxWait/time.Second)),
		})
	}
	message := a.sent(a.in.Message, a.in.Parts)
	if err := a.check(nil); err != nil {
		return nil, err
	}
	if !s.Tasks.Expected(ctx, to) {
		wait = 0 // no worker is there to do the task
	}
	r := dispatch.SendRequest{ID: deref(a.in.TaskID), Message: message, Show: shown}
	t, err := s.send(ctx, to, r, time.Duration(wait)*time.Second)
	if err != nil {
		return nil, asSent(err)
	}
	return show(ctx, &t)
}

// send sends a task and waits for the result, but only while the caller may read it.
func (s *server) send(
	ctx context.Context, to dispatch.Call, r dispatch.SendRequest, wait time.Duration,
) (task.Task, error) {
	request, ok := ctx.Value(requestKey{}).(*http.Request)
	if wait == 0 || !ok {
		return s.Tasks.Send(ctx, to, r, wait)
	}
	to, err := s.Tasks.Aim(ctx, to, r.ID)
	if err != nil {
		return task.Task{}, err
	}
	if err := s.router.Park(ctx, httpx.Wait); err != nil {
		return task.Task{}, err
	}
	r.Waiting = func() { s.router.Yield(ctx) }
	allowed, stop := s.router.WhileAllowed(ctx, request, func(ctx context.Context, caller *identity.Caller) error {
		return s.Tasks.Still(ctx, caller, to.Target().Key())
	})
	defer stop()
	t, err := s.Tasks.Send(allowed, to, r, wait)
	if cause := context.Cause(allowed); cause != nil && ctx.Err() == nil {
		return task.Task{}, cause
	}
	return t, err
}

// sent reads either form of the message.
func (a *arguments[In]) sent(text *string, parts []part) task.Message {
	m := task.Message{Role: task.RoleUser}
	wrong := func(msg string, path ...any) {
		if !names(a.broken, path...) {
			a.broken = append(a.broken, errs.Field{Path: path, Message: msg})
		}
	}
	switch {
	case text != nil && parts != nil:
		wrong("cannot be combined with message", "parts")
	case text != nil:
		if strings.TrimSpace(*text) == "" {
			wrong("must not be blank", "message")
		}
		m.Parts = []task.Part{{Kind: task.TextPart, Text: *text}}
	case len(parts) == 0 && !names(a.broken, "parts"):
		wrong("is required, unless there are parts", "message")
	}
	for i := range parts {
		p, msg := parts[i].read()
		if msg != "" {
			wrong(msg, "parts", i)
		}
		m.Parts = append(m.Parts, p)
	}
	return m
}

func (p *part) read() (out task.Part, wrong string) {
	out = task.Part{Kind: task.PartKind(p.Type), Text: p.Text, Name: p.Name, MediaType: p.MediaType, URL: p.URL}
	if p.Data != nil {
		data, err := json.Marshal(p.Data)
		if err != nil {
			return out, "data must be a JSON value"
		}
		out.Data = data
	}
	if p.Bytes != "" {
		b, err := base64.StdEncoding.DecodeString(p.Bytes)
		if err != nil {
			return out, "bytes must be base64"
		}
		out.Bytes = b
	}
	return out, ""
}

// asSent renames the fields of a task that was not sent to those of the arguments: the parts of the
// message are at the top level, and the id is task_id.
func asSent(err error) error {
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Invalid || len(e.Fields) == 0 {
		return err
	}
	return e.Spelled(func(f errs.Field) errs.Field {
		switch {
		case f.Path.Head() == "message" && len(f.Path) > 1:
			f.Path = f.Path[1:]
		case f.Path.Equal(errs.At("id")):
			f.Path = errs.At("task_id")
		case f.Path.Equal(errs.At("metadata", chain.ParentKey)):
			f.Path = errs.At("parent_task")
		}
		return f
	})
}

// shown is the content of a task that the tools return.
var shown = task.Content{Artifacts: true}

func (s *server) getTask(ctx context.Context, a *arguments[taskIn]) (*taskOut, error) {
	to, err := s.Tasks.Reach(ctx, a.caller, a.in.Agent)
	if err != nil {
		return nil, err
	}
	if err := a.check(nil); err != nil {
		return nil, err
	}
	t, err := s.Tasks.Get(ctx, to, a.in.TaskID, shown)
	if err != nil {
		return nil, err
	}
	return show(ctx, &t)
}

func (s *server) cancelTask(ctx context.Context, a *arguments[taskIn]) (*taskOut, error) {
	to, err := s.Tasks.Reach(ctx, a.caller, a.in.Agent)
	if err != nil {
		return nil, err
	}
	if err := a.check(nil); err != nil {
		return nil, err
	}
	t, err := s.Tasks.Cancel(ctx, to, a.in.TaskID, shown)
	if err != nil {
		return nil, err
	}
	return show(ctx, &t)
}

// show converts a task for a tool's result, which contains it twice, as text and as structured
// content, and escaped for HTML.
func show(ctx context.Context, t *task.Task) (*taskOut, error) {
	if t.Size > maxShown {
		t.Artifacts = nil
		t.Message = &task.Message{
			Role: task.RoleAgent, Parts: []task.Part{{Kind: task.TextPart, Text: tooLargeToShow}},
		}
		return taskOf(t), nil
	}
	if err := budget.From(ctx).Hold(ctx, 6*t.Size); err != nil {
		return nil, err
	}
	return taskOf(t), nil
}

// maxShown is the size of the largest task that the tools return as a whole.
const maxShown = 2 << 20

const tooLargeToShow = "The messages and artifacts of this task are too large for a tool result. " +
	"Read the task over A2A: tasks/get with its id."

func taskOf(t *task.Task) *taskOut {
	out := &taskOut{
		Agent: t.Agent, TaskID: t.ID, ContextID: t.ContextID,
		State: string(t.State), Final: t.State.Terminal(), UpdatedAt: stamp(t.UpdatedAt),
		Artifacts: make([]artifactOut, len(t.Artifacts)),
	}
	if t.Message != nil {
		out.Message = &messageOut{Role: string(t.Message.Role), Parts: partsOf(t.Message.Parts)}
	}
	for i := range t.Artifacts {
		made := &t.Artifacts[i]
		out.Artifacts[i] = artifactOut{ID: made.ID, Name: made.Name, Parts: partsOf(made.Parts)}
	}
	return out
}

func partsOf(parts []task.Part) []part {
	out := make([]part, len(parts))
	for i := range parts {
		p := &parts[i]
		out[i] = part{Type: string(p.Kind), Text: p.Text, Name: p.Name, MediaType: p.MediaType, URL: p.URL}
		if len(p.Data) > 0 {
			out[i].Data = p.Data
		}
		if len(p.Bytes) > 0 {
			out[i].Bytes = base64.StdEncoding.EncodeToString(p.Bytes)
		}
	}
	return out
}
