package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-dev/parley/internal/task"
)

// The ProtoJSON of version 0.3 in its HTTP+JSON binding. Clients may refuse members that the
// protocol does not have, so no others are written. Empty values are omitted.

func v03ProtoState(s task.State) string {
	if s == task.Canceled {
		return "TASK_STATE_CANCELLED" // the spelling of 0.3
	}
	return v1States[s]
}

// AppendV03ProtoTask appends a task with up to history of its latest messages.
func AppendV03ProtoTask(b []byte, t *task.Task, history int) []byte {
	return AppendV03ProtoTaskWith(b, t, history, true)
}

// AppendV03ProtoTaskWith is AppendV03ProtoTask with or without artifacts.
func AppendV03ProtoTaskWith(b []byte, t *task.Task, history int, artifacts bool) []byte {
	b = append(b, `{"id":`...)
	b = AppendString(b, t.ID)
	b = append(b, `,"contextId":`...)
	b = AppendString(b, t.ContextID)
	b = append(b, `,"status":`...)
	b = appendV03ProtoStatus(b, t, t.State, t.UpdatedAt, t.Message)
	if artifacts && len(t.Artifacts) > 0 {
		for i := range t.Artifacts {
			b = appendNext(b, "artifacts", i)
			b = appendV03ProtoArtifact(b, &t.Artifacts[i])
		}
		b = append(b, ']')
	}
	if list := t.History[max(0, len(t.History)-max(0, history)):]; len(list) > 0 {
		for i := range list {
			b = appendNext(b, "history", i)
			b = appendV03ProtoMessage(b, t.ID, t.ContextID, &list[i])
		}
		b = append(b, ']')
	}
	b = AppendMetadata(b, t.Metadata)
	return append(b, '}')
}

// appendNext begins an array, or its next element.
func appendNext(b []byte, name string, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	b = append(b, `,"`...)
	b = append(b, name...)
	return append(b, `":[`...)
}

func appendV03ProtoStatus(b []byte, t *task.Task, s task.State, at time.Time, m *task.Message) []byte {
	b = append(b, `{"state":"`...)
	b = append(b, v03ProtoState(s)...)
	b = append(b, `","timestamp":`...)
	b = AppendTime(b, at)
	if m != nil {
		b = append(b, `,"message":`...)
		b = appendV03ProtoMessage(b, t.ID, t.ContextID, m)
	}
	return append(b, '}')
}

// AppendV03ProtoReply appends a message that stands for the whole task.
func AppendV03ProtoReply(b []byte, t *task.Task) []byte {
	return appendV03ProtoMessage(b, t.ID, t.ContextID, t.Message)
}

// appendV03ProtoMessage omits the referenced tasks, which this form has no member for.
func appendV03ProtoMessage(b []byte, taskID, contextID string, m *task.Message) []byte {
	b = append(b, `{"messageId":`...)
	b = AppendString(b, m.ID)
	b = appendMember(b, "contextId", contextID)
	b = appendMember(b, "taskId", taskID)
	if m.Role == task.RoleUser {
		b = append(b, `,"role":"ROLE_USER","content":`...)
	} else {
		b = append(b, `,"role":"ROLE_AGENT","content":`...)
	}
	b = appendV03ProtoParts(b, m.Parts)
	b = appendList(b, "extensions", m.Extensions)
	b = AppendMetadata(b, m.Metadata)
	return append(b, '}')
}

func appendV03ProtoParts(b []byte, parts []task.Part) []byte {
	b = append(b, '[')
	for i := range parts {
		p := &parts[i]
		if i > 0 {
			b = append(b, ',')
		}
		switch p.Kind {
		case task.TextPart:
			b = append(b, `{"text":`...)
			b = AppendString(b, p.Text)
		case task.DataPart:
			b = appendV03ProtoData(b, p.Data)
		case task.FilePart:
			b = appendV03ProtoFile(b, p)
		}
		b = AppendMetadata(b, p.Metadata)
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendV03ProtoData appends data. It must be an object in this form; any other value becomes the
// only member of an object.
func appendV03ProtoData(b []byte, data json.RawMessage) []byte {
	b = append(b, `{"data":{"data":`...)
	if len(data) > 0 && data[0] == '{' {
		b = append(b, data...)
	} else {
		b = append(b, `{"value":`...)
		b = append(b, data...)
		b = append(b, '}')
	}
	return append(b, '}')
}

// appendV03ProtoFile writes bytes as most implementations of 0.3 read them: the base64 of 0.3's
// JSON, in ProtoJSON's base64. Some of them cannot read a task with anything else.
func appendV03ProtoFile(b []byte, p *task.Part) []byte {
	if p.URL != "" {
		b = append(b, `{"file":{"fileWithUri":`...)
		b = AppendString(b, p.URL)
	} else {
		b = append(b, `{"file":{"fileWithBytes":"`...)
		inner := base64.StdEncoding.AppendEncode(nil, p.Bytes)
		b = base64.StdEncoding.AppendEncode(b, inner)
		b = append(b, '"')
	}
	b = appendMember(b, "mimeType", p.MediaType)
	b = appendMember(b, "name", p.Name)
	return append(b, '}')
}

func appendV03ProtoArtifact(b []byte, a *task.Artifact) []byte {
	return appendOfficialArtifact(b, a, appendV03ProtoParts)
}

// AppendV03ProtoEvent appends a status or an artifact of a stream. t identifies the task; last
// reports that nothing follows.
func AppendV03ProtoEvent(b []byte, t *task.Task, e *task.Event, last bool) []byte {
	if e.Kind == task.ArtifactEvent {
		b = append(b, `{"artifactUpdate":`...)
		b = appendV1IDs(b, t)
		b = append(b, `,"artifact":`...)
		b = appendV03ProtoArtifact(b, e.Artifact)
		b = AppendChunk(b, e)
		return append(b, "}}"...)
	}
	b = append(b, `{"statusUpdate":`...)
	b = appendV1IDs(b, t)
	b = append(b, `,"status":`...)
	b = appendV03ProtoStatus(b, t, e.State, e.At, e.Message)
	if last {
		b = append(b, `,"final":true`...)
	}
	return append(b, "}}"...)
}

// Content reads the parts of a message in this form: data is wrapped once more, and so is the
// base64 of files, unless the sender follows ProtoJSON.
func (r *Reader) Content() []task.Part {
	parts := r.Parts()
	for i := range parts {
		switch p := &parts[i]; p.Kind {
		case task.DataPart:
			p.Data = unwrapData(p.Data)
		case task.FilePart:
			p.Bytes = V03FileBytes(p.Bytes)
		}
	}
	return parts
}

// V03FileBytes returns the bytes of a file of version 0.3, where most clients send base64 in place
// of the bytes.
func V03FileBytes(b []byte) []byte {
	inner := make([]byte, base64.StdEncoding.DecodedLen(len(b)))
	if n, err := base64.StdEncoding.Strict().Decode(inner, b); err == nil && n > 0 {
		return inner[:n]
	}
	return b
}

// unwrapData returns the member data of an object that has no other.
func unwrapData(text []byte) []byte {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return text
	}
	if t, err := d.ReadToken(); err != nil || t.Kind() != '"' || t.String() != "data" {
		return text
	}
	v, err := d.ReadValue()
	if err != nil {
		return text
	}
	inner := bytes.Clone(v)
	if d.PeekKind() != '}' {
		return text
	}
	return inner
}
