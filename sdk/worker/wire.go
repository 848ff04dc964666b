package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Part is a piece of a message or an artifact: text, data or a file. Text, Data,
// File and FileURL make one.
type Part struct {
	Type     string          `json:"type"` // text, data or file
	Text     string          `json:"text,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"` // any JSON value
	File     *FileContent    `json:"file,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"` // a JSON object
	// MediaType is the media type of any part; a file may have its own in File instead.
	MediaType string `json:"mediaType,omitempty"`

	err error // why the part could not be made; whoever sends it is told
}

// FileContent is a file inside a part: its bytes, or where they are.
type FileContent struct {
	Name     string `json:"name,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	Bytes    []byte `json:"bytes,omitempty"`
	URI      string `json:"uri,omitempty"`
}

// Text makes a part of text.
func Text(s string) Part { return Part{Type: "text", Text: s} }

// Data makes a part of structured data; v is encoded as JSON.
func Data(v any) Part {
	data, err := json.Marshal(v)
	if err != nil {
		err = fmt.Errorf("worker: encode a data part: %w", err)
	}
	return Part{Type: "data", Data: data, err: err}
}

// File makes a part that holds a file.
func File(name, mimeType string, content []byte) Part {
	return Part{Type: "file", File: &FileContent{Name: name, MimeType: mimeType, Bytes: content}}
}

// FileURL makes a part that says where a file is.
func FileURL(name, mimeType, uri string) Part {
	return Part{Type: "file", File: &FileContent{Name: name, MimeType: mimeType, URI: uri}}
}

// MarshalJSON writes the text of a text part even when it is empty.
func (p Part) MarshalJSON() ([]byte, error) {
	if p.err != nil {
		return nil, p.err
	}
	type plain Part
	if p.Type != "text" {
		return json.Marshal(plain(p))
	}
	return json.Marshal(struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Metadata  json.RawMessage `json:"metadata,omitempty"`
		MediaType string          `json:"mediaType,omitempty"`
	}{p.Type, strings.ToValidUTF8(p.Text, "\uFFFD"), p.Metadata, p.MediaType})
}

// Message is one turn of a conversation.
type Message struct {
	Role     string          `json:"role,omitempty"` // user: the sender; agent: the worker
	Parts    []Part          `json:"parts"`
	ID       string          `json:"messageId,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// Text is the message's text: its text parts, one per line.
func (m *Message) Text() string {
	var texts []string
	for _, p := range m.Parts {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Artifact is an output of a task.
type Artifact struct {
	ID        string // chosen by the worker; a second artifact with the same id replaces the first
	Type      string // "text" if empty
	Name      string
	Parts     []Part
	LastChunk bool // nothing follows; for those who watch the artifact grow
}

// DirectMessage was sent to the agent without being a task: nobody waits for an
// answer, and there is no way to give one.
type DirectMessage struct {
	ID      string    `json:"id"`
	From    string    `json:"from"` // <org>/<kind>:<id>
	Message Message   `json:"message"`
	At      time.Time `json:"at"`
}

// Text is the message's text.
func (m *DirectMessage) Text() string { return m.Message.Text() }

type claimRequest struct {
	Worker       string   `json:"worker"`
	Max          int      `json:"max"`
	WaitSeconds  int      `json:"wait_seconds"`
	LeaseSeconds int      `json:"lease_seconds"`
	Capacity     int      `json:"capacity"`
	Ack          []string `json:"ack,omitempty"`
}

type claimAnswer struct {
	Tasks    []assignment    `json:"tasks"`
	Messages []DirectMessage `json:"messages"`
}

type assignment struct {
	ID        string    `json:"id"`
	Lease     string    `json:"lease"`
	Attempt   int       `json:"attempt"`
	Sender    string    `json:"sender"`
	ContextID string    `json:"context_id"`
	Message   Message   `json:"message"`
	History   []Message `json:"history"`
	Seen      int64     `json:"seen"`

	TaskID              string          `json:"task_id"`
	Metadata            json.RawMessage `json:"metadata"`
	AcceptedOutputModes []string        `json:"accepted_output_modes"`
}

type report struct {
	Status        string           `json:"status,omitempty"`
	Message       *reportMessage   `json:"message,omitempty"`
	Reply         bool             `json:"reply,omitempty"`
	Artifacts     []artifactUpdate `json:"artifacts,omitempty"`
	ExtendSeconds int              `json:"extend_seconds,omitempty"`
	Seen          int64            `json:"seen,omitempty"` // 0: the server is too old to know of it
}

type reportMessage struct {
	Parts []Part `json:"parts"`
}

type artifactUpdate struct {
	ID        string `json:"artifact_id,omitempty"`
	Type      string `json:"type,omitempty"`
	Name      string `json:"name,omitempty"`
	Parts     []Part `json:"parts"`
	Append    bool   `json:"append,omitempty"`
	LastChunk bool   `json:"last_chunk,omitempty"`
}

type reportAnswer struct {
	State    string    `json:"state"`
	Canceled bool      `json:"canceled"`
	Messages []Message `json:"messages"`
	Seen     int64     `json:"seen"`
}
