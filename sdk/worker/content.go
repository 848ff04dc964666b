package worker

import "github.com/parley-dev/parley/sdk/client"

// The content of tasks is the same for workers and senders, so the types are those of package
// client.
type (
	// Sender is the sender of a task or a message, anywhere on the platform.
	Sender = client.Sender
	// Message is one turn of a conversation.
	Message = client.Message
	// Part is a piece of a message or an artifact: text, data or a file.
	Part = client.Part
	// PartKind is the kind of a part.
	PartKind = client.PartKind
	// DirectMessage is a message to the agent that is not a task.
	DirectMessage = client.DirectMessage
)

// The kinds of parts.
const (
	PartText = client.PartText
	PartData = client.PartData
	PartFile = client.PartFile
)

// Text returns a part of text.
func Text(s string) Part { return client.Text(s) }

// Data returns a part of structured data; v is encoded as JSON.
func Data(v any) Part { return client.Data(v) }

// File returns a part that holds a file.
func File(name, mediaType string, content []byte) Part { return client.File(name, mediaType, content) }

// FileURL returns a part that refers to a file by its URL.
func FileURL(name, mediaType, url string) Part { return client.FileURL(name, mediaType, url) }

// Artifact is an output of a task.
type Artifact struct {
	ID        string // chosen by the worker; a second artifact with the same id replaces the first
	Type      string // "text" if empty
	Name      string
	Parts     []Part
	LastChunk bool // the artifact is complete
}
