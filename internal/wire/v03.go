package wire

import (
	"time"

	"github.com/parley-dev/parley/internal/task"
)

// Version 0.3 of the official protocol: the member `kind` names the type of an object.

// AppendV03Task appends a task with up to history of its latest messages.
func AppendV03Task(b []byte, t *task.Task, history int) []byte {
	b = append(b, `{"kind":"task","id":`...)
	b = AppendString(b, t.ID)
	b = append(b, `,"contextId":`...)
	b = AppendString(b, t.ContextID)
	b = append(b, `,"status":`...)
	b = appendV03Status(b, t, t.State, t.UpdatedAt, t.Message)
	b = append(b, `,"artifacts":[`...)
	for i := range t.Artifacts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendV03Artifact(b, &t.Artifacts[i])
	}
	b = append(b, ']')
	if history > 0 {
		b = append(b, `,"history":[`...)
		list := t.History[max(0, len(t.History)-history):]
		for i := range list {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendV03Message(b, t.ID, t.ContextID, &list[i])
		}
		b = append(b, ']')
	}
	b = AppendMetadata(b, t.Metadata)
	return append(b, '}')
}

func appendV03Status(b []byte, t *task.Task, s task.State, at time.Time, m *task.Message) []byte {
	b = append(b, `{"state":"`...)
	b = append(b, s...)
	b = append(b, `","timestamp":`...)
	b = AppendTime(b, at)
	if m != nil {
		b = append(b, `,"message":`...)
		b = appendV03Message(b, t.ID, t.ContextID, m)
	}
	return append(b, '}')
}

// AppendV03Reply appends a message that stands for the whole task.
func AppendV03Reply(b []byte, t *task.Task) []byte {
	return appendV03Message(b, t.ID, t.ContextID, t.Message)
}

func appendV03Message(b []byte, taskID, contextID string, m *task.Message) []byte {
	b = append(b, `{"kind":"message","messageId":`...)
	b = AppendString(b, m.ID)
	b = appendMember(b, "contextId", contextID)
	b = appendMember(b, "taskId", taskID)
	b = append(b, `,"role":"`...)
	b = append(b, m.Role...)
	b = append(b, `","parts":`...)
	b = appendV03Parts(b, m.Parts)
	b = appendList(b, "extensions", m.Extensions)
	b = appendList(b, "referenceTaskIds", m.References)
	b = AppendMetadata(b, m.Metadata)
	return append(b, '}')
}

func appendV03Parts(b []byte, parts []task.Part) []byte {
	b = append(b, '[')
	for i := range parts {
		p := &parts[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"kind":"`...)
		b = append(b, p.Kind...)
		b = append(b, '"')
		b = appendContent(b, p)
		b = AppendMetadata(b, p.Metadata)
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendV03Artifact(b []byte, a *task.Artifact) []byte {
	return appendOfficialArtifact(b, a, appendV03Parts)
}

// AppendV03Event appends a status or an artifact of a stream. t identifies the task; last reports
// that nothing follows.
func AppendV03Event(b []byte, t *task.Task, e *task.Event, last bool) []byte {
	if e.Kind == task.ArtifactEvent {
		b = append(b, `{"kind":"artifact-update",`...)
		b = append(b, appendV1IDs(nil, t)[1:]...)
		b = append(b, `,"artifact":`...)
		b = appendV03Artifact(b, e.Artifact)
		b = AppendChunk(b, e)
		return append(b, '}')
	}
	b = append(b, `{"kind":"status-update",`...)
	b = append(b, appendV1IDs(nil, t)[1:]...)
	b = append(b, `,"status":`...)
	b = appendV03Status(b, t, e.State, e.At, e.Message)
	if last {
		return append(b, `,"final":true}`...)
	}
	return append(b, `,"final":false}`...)
}
