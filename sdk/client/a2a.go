package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// TaskState is the state of a task. The spellings of all versions of A2A are accepted.
type TaskState string

// The states.
const (
	TaskSubmitted     TaskState = "submitted"
	TaskWorking       TaskState = "working"
	TaskInputRequired TaskState = "input-required"
	TaskAuthRequired  TaskState = "auth-required"
	TaskCompleted     TaskState = "completed"
	TaskFailed        TaskState = "failed"
	TaskRejected      TaskState = "rejected"
	TaskCanceled      TaskState = "canceled"
)

// Terminal reports whether the task is over.
func (s TaskState) Terminal() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskRejected || s == TaskCanceled
}

// Rests reports whether the task is over or waits for its sender.
func (s TaskState) Rests() bool {
	return s.Terminal() || s == TaskInputRequired || s == TaskAuthRequired
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *TaskState) UnmarshalText(text []byte) error {
	name := string(text)
	if rest, ok := strings.CutPrefix(name, v1StatePrefix); ok {
		name = strings.ToLower(strings.ReplaceAll(rest, "_", "-"))
	}
	*s = TaskState(name)
	return nil
}

const v1StatePrefix = "TASK_STATE_"

// v1 returns the state as spelled in version 1.0 of A2A.
func (s TaskState) v1() string {
	if s == "" {
		return ""
	}
	return v1StatePrefix + strings.ToUpper(strings.ReplaceAll(string(s), "-", "_"))
}

// Role is the author of a message.
type Role string

// The roles.
const (
	RoleUser  Role = "user"  // the sender of the task
	RoleAgent Role = "agent" // the agent
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Role) UnmarshalText(text []byte) error {
	*r = Role(strings.ToLower(strings.TrimPrefix(string(text), "ROLE_")))
	return nil
}

// PartKind is the kind of a part.
type PartKind string

// The kinds of parts.
const (
	PartText PartKind = "text"
	PartData PartKind = "data"
	PartFile PartKind = "file"
)

// Part is a piece of a message or an artifact. Use [Text], [Data], [File] or [FileURL] to make one.
type Part struct {
	Kind      PartKind
	Text      string          // of a text
	Data      json.RawMessage // of data: any JSON value
	Name      string          // of a file
	Bytes     []byte          // of a file: its content, or
	URL       string          // its URL
	MediaType string          // of any part
	Metadata  json.RawMessage // a JSON object; nil: none

	err error // why the part could not be made; a send returns it
}

// Text returns a part of text.
func Text(s string) Part { return Part{Kind: PartText, Text: s} }

// Data returns a part of structured data; v is encoded as JSON.
func Data(v any) Part {
	data, err := json.Marshal(v)
	if err != nil {
		err = fmt.Errorf("encode a data part: %w", err)
	}
	return Part{Kind: PartData, Data: data, err: err}
}

// File returns a part that holds a file.
func File(name, mediaType string, content []byte) Part {
	return Part{Kind: PartFile, Name: name, MediaType: mediaType, Bytes: content}
}

// FileURL returns a part that refers to a file by its URL.
func FileURL(name, mediaType, url string) Part {
	return Part{Kind: PartFile, Name: name, MediaType: mediaType, URL: url}
}

// partJSON is a part in all forms of A2A.
type partJSON struct {
	Type      string          `json:"type,omitempty"`
	Kind      string          `json:"kind,omitempty"`
	Text      *string         `json:"text,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	File      *fileJSON       `json:"file,omitempty"`
	Raw       []byte          `json:"raw,omitempty"`      // 1.0
	URL       string          `json:"url,omitempty"`      // 1.0
	Filename  string          `json:"filename,omitempty"` // 1.0
	MediaType string          `json:"mediaType,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

type fileJSON struct {
	Name     string `json:"name,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	Bytes    []byte `json:"bytes,omitempty"`
	URI      string `json:"uri,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (p Part) MarshalJSON() ([]byte, error) {
	if p.err != nil {
		return nil, p.err
	}
	out := partJSON{Type: string(p.Kind), Metadata: p.Metadata}
	switch p.Kind {
	case PartData:
		out.Data, out.MediaType = p.Data, p.MediaType
	case PartFile:
		out.File = &fileJSON{Name: p.Name, MimeType: p.MediaType, Bytes: p.Bytes, URI: p.URL}
	default:
		text := strings.ToValidUTF8(p.Text, "\uFFFD")
		out.Type, out.Text, out.MediaType = string(PartText), &text, p.MediaType
	}
	return json.Marshal(out)
}

// v1 returns the part in the form of version 1.0.
func (p *Part) v1() (partJSON, error) {
	out := partJSON{Metadata: p.Metadata, MediaType: p.MediaType}
	switch p.Kind {
	case PartData:
		out.Data = p.Data
	case PartFile:
		out.Raw, out.URL, out.Filename = p.Bytes, p.URL, p.Name
	default:
		text := strings.ToValidUTF8(p.Text, "\uFFFD")
		out.Text = &text
	}
	return out, p.err
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Part) UnmarshalJSON(data []byte) error {
	var in partJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*p = Part{
		Kind: PartKind(cmp.Or(in.Type, in.Kind)), Data: in.Data, Name: in.Filename, Bytes: in.Raw, URL: in.URL,
		MediaType: in.MediaType, Metadata: in.Metadata,
	}
	if in.Text != nil {
		p.Text = *in.Text
	}
	if f := in.File; f != nil {
		p.Name, p.Bytes, p.URL, p.MediaType = f.Name, f.Bytes, f.URI, cmp.Or(f.MimeType, in.MediaType)
	}
	switch {
	case p.Kind != "":
	case in.Text != nil:
		p.Kind = PartText
	case in.Data != nil:
		p.Kind = PartData
	default:
		p.Kind = PartFile
	}
	return nil
}

// Message is one turn of a conversation.
type Message struct {
	Role             Role            `json:"role,omitempty"`
	Parts            []Part          `json:"parts"`
	ID               string          `json:"messageId,omitempty"`
	ReferenceTaskIDs []string        `json:"referenceTaskIds,omitempty"`
	Extensions       []string        `json:"extensions,omitempty"`
	Metadata         json.RawMessage `json:"metadata,omitempty"` // a JSON object; nil: none
}

// NewMessage returns a message of the sender.
func NewMessage(parts ...Part) Message { return Message{Role: RoleUser, Parts: parts} }

// Text returns the message's text parts, one per line.
func (m *Message) Text() string {
	if m == nil {
		return ""
	}
	var texts []string
	for _, p := range m.Parts {
		if p.Kind == PartText {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Artifact is an output of a task.
type Artifact struct {
	ID          string          `json:"artifactId"`
	Type        string          `json:"type"` // empty in version 1.0
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parts       []Part          `json:"parts"`
	Metadata    json.RawMessage `json:"metadata"`
}

// Text returns the artifact's text parts, joined.
func (a *Artifact) Text() string {
	var b strings.Builder
	for _, p := range a.Parts {
		if p.Kind == PartText {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// TaskStatus is the state of a task, since when, and the agent's message about it.
type TaskStatus struct {
	State     TaskState `json:"state"`
	Timestamp time.Time `json:"timestamp"`
	Message   *Message  `json:"message"`
}

// Task is a unit of work that was sent to an agent.
type Task struct {
	ID        string          `json:"id"`
	ContextID string          `json:"contextId"` // groups tasks
	Status    TaskStatus      `json:"status"`
	Artifacts []Artifact      `json:"artifacts"`
	History   []Message       `json:"history"`
	Metadata  json.RawMessage `json:"metadata"`
}

// Text returns the text of all artifacts, one per line.
func (t *Task) Text() string {
	texts := make([]string, len(t.Artifacts))
	for i := range t.Artifacts {
		texts[i] = t.Artifacts[i].Text()
	}
	return strings.Join(texts, "\n")
}

// Sender is a principal anywhere on the platform.
type Sender struct {
	Org  string
	Kind PrincipalKind
	ID   string
}

// String returns <org>/<kind>:<id>.
func (s Sender) String() string {
	if s == (Sender{}) {
		return ""
	}
	return s.Org + "/" + s.Ref()
}

// Ref returns <kind>:<id>, which names the principal within its org.
func (s Sender) Ref() string { return string(s.Kind) + ":" + s.ID }

// MarshalText implements encoding.TextMarshaler.
func (s Sender) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sender) UnmarshalText(text []byte) error {
	org, ref, _ := strings.Cut(string(text), "/")
	kind, id, ok := strings.Cut(ref, ":")
	if !ok && len(text) > 0 {
		return fmt.Errorf("invalid sender %q: want <org>/<kind>:<id>", text)
	}
	*s = Sender{Org: org, Kind: PrincipalKind(kind), ID: id}
	return nil
}
