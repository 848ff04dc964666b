package wire

import (
	"encoding/base64"
	"time"

	"github.com/parley-dev/parley/internal/task"
)

// Version 1.0 of the official protocol: ProtoJSON, where the name of a member is the type of its
// object.

// V1State returns a state as spelled in version 1.0.
func V1State(s task.State) string { return v1States[s] }

var v1States = map[task.State]string{
	task.Submitted:     "TASK_STATE_SUBMITTED",
	task.Working:       "TASK_STATE_WORKING",
	task.Completed:     "TASK_STATE_COMPLETED",
	task.Failed:        "TASK_STATE_FAILED",
	task.Canceled:      "TASK_STATE_CANCELED",
	task.InputRequired: "TASK_STATE_INPUT_REQUIRED",
	task.AuthRequired:  "TASK_STATE_AUTH_REQUIRED",
	task.Rejected:      "TASK_STATE_REJECTED",
}

// AllHistory selects all messages of a task, NoHistory none.
const (
	AllHistory = 1 << 30
	NoHistory  = -1
)

// AppendV1Task appends a task with up to history of its latest messages.
func AppendV1Task(b []byte, t *task.Task, history int) []byte {
	return AppendV1TaskWith(b, t, history, true)
}

// AppendV1TaskWith is AppendV1Task with or without artifacts.
func AppendV1TaskWith(b []byte, t *task.Task, history int, artifacts bool) []byte {
	b = append(b, `{"id":`...)
	b = AppendString(b, t.ID)
	b = append(b, `,"contextId":`...)
	b = AppendString(b, t.ContextID)
	b = append(b, `,"status":`...)
	b = appendV1Status(b, t, t.State, t.UpdatedAt, t.Message)
	if artifacts {
		b = append(b, `,"artifacts":[`...)
		for i := range t.Artifacts {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendV1Artifact(b, &t.Artifacts[i])
		}
		b = append(b, ']')
	}
	if history > 0 {
		b = append(b, `,"history":[`...)
		list := t.History[max(0, len(t.History)-history):]
		for i := range list {
			if i > 0 {
				b = append(b, ',')
			}
			b = AppendV1Message(b, t, &list[i])
		}
		b = append(b, ']')
	}
	b = AppendMetadata(b, t.Metadata)
	return append(b, '}')
}

func appendV1Status(b []byte, t *task.Task, s task.State, at time.Time, m *task.Message) []byte {
	b = append(b, `{"state":"`...)
	b = append(b, v1States[s]...)
	b = append(b, `","timestamp":`...)
	b = AppendTime(b, at)
	if m != nil {
		b = append(b, `,"message":`...)
		b = AppendV1Message(b, t, m)
	}
	return append(b, '}')
}

// AppendV1Message appends a message of a task's conversation.
func AppendV1Message(b []byte, t *task.Task, m *task.Message) []byte {
	return appendV1Message(b, t.ID, t.ContextID, m)
}

// AppendV1Reply appends a message that stands for the whole task.
func AppendV1Reply(b []byte, t *task.Task) []byte {
	return appendV1Message(b, t.ID, t.ContextID, t.Message)
}

func appendV1Message(b []byte, taskID, contextID string, m *task.Message) []byte {
	b = append(b, `{"messageId":`...)
	b = AppendString(b, m.ID)
	b = appendMember(b, "contextId", contextID)
	b = appendMember(b, "taskId", taskID)
	if m.Role == task.RoleUser {
		b = append(b, `,"role":"ROLE_USER","parts":`...)
	} else {
		b = append(b, `,"role":"ROLE_AGENT","parts":`...)
	}
	b = appendV1Parts(b, m.Parts)
	b = appendList(b, "extensions", m.Extensions)
	b = appendList(b, "referenceTaskIds", m.References)
	b = AppendMetadata(b, m.Metadata)
	return append(b, '}')
}

func appendV1Parts(b []byte, parts []task.Part) []byte {
	b = append(b, '[')
	for i := range parts {
		p := &parts[i]
		if i > 0 {
			b = append(b, ',')
		}
		switch {
		case p.Kind == task.TextPart:
			b = append(b, `{"text":`...)
			b = AppendString(b, p.Text)
		case p.Kind == task.DataPart:
			b = append(b, `{"data":`...)
			b = append(b, p.Data...)
		case p.URL != "":
			b = append(b, `{"url":`...)
			b = AppendString(b, p.URL)
		default:
			b = append(b, `{"raw":"`...)
			b = base64.StdEncoding.AppendEncode(b, p.Bytes)
			b = append(b, '"')
		}
		b = appendMember(b, "filename", p.Name)
		b = appendMember(b, "mediaType", p.MediaType)
		b = AppendMetadata(b, p.Metadata)
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendV1Artifact(b []byte, a *task.Artifact) []byte {
	return appendOfficialArtifact(b, a, appendV1Parts)
}

// appendOfficialArtifact appends an artifact of the official protocol. Its versions differ only in
// the form of parts.
func appendOfficialArtifact(b []byte, a *task.Artifact, parts func([]byte, []task.Part) []byte) []byte {
	b = append(b, `{"artifactId":`...)
	b = AppendString(b, a.ID)
	b = appendMember(b, "name", a.Name)
	b = appendMember(b, "description", a.Description)
	b = append(b, `,"parts":`...)
	b = parts(b, a.Parts)
	b = appendList(b, "extensions", a.Extensions)
	b = AppendMetadata(b, a.Metadata)
	return append(b, '}')
}

// AppendV1Event appends a status or an artifact of a stream or a push. t identifies the task.
func AppendV1Event(b []byte, t *task.Task, e *task.Event) []byte {
	if e.Kind == task.ArtifactEvent {
		b = append(b, `{"artifactUpdate":`...)
		b = appendV1IDs(b, t)
		b = append(b, `,"artifact":`...)
		b = appendV1Artifact(b, e.Artifact)
		b = AppendChunk(b, e)
		return append(b, "}}"...)
	}
	b = append(b, `{"statusUpdate":`...)
	b = appendV1IDs(b, t)
	b = append(b, `,"status":`...)
	b = appendV1Status(b, t, e.State, e.At, e.Message)
	return append(b, "}}"...)
}

func appendV1IDs(b []byte, t *task.Task) []byte {
	b = append(b, `{"taskId":`...)
	b = AppendString(b, t.ID)
	b = append(b, `,"contextId":`...)
	return AppendString(b, t.ContextID)
}

// AppendChunk appends whether an event continues or ends its artifact.
func AppendChunk(b []byte, e *task.Event) []byte {
	if e.Append {
		b = append(b, `,"append":true`...)
	}
	if e.LastChunk {
		b = append(b, `,"lastChunk":true`...)
	}
	return b
}
