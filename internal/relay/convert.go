package relay

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/parley-dev/parley/internal/chain"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/text"
)

// contextOf returns the context of a task at the remote, until the remote has chosen one. Tasks of
// two senders never have the same one.
func contextOf(platform string, t *task.Task) string {
	h := sha256.New()
	for _, s := range []string{platform, t.Org, t.Agent, t.Sender.Org, t.Sender.Ref(), t.ContextID} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return "parley-" + hex.EncodeToString(h.Sum(nil)[:16])
}

// metadataFor returns the metadata of a request to the remote: that of the sender without what is
// meant for this platform, and the chain of calls.
func metadataFor(platform string, raw []byte) (map[string]any, error) {
	c, err := chain.Parse(raw)
	if err != nil {
		c = chain.Chain{}
	}
	var own map[string]json.RawMessage
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &own); err != nil {
			own = nil
		}
	}
	for key := range own {
		if strings.HasPrefix(key, "parley.dev/") {
			delete(own, key)
		}
	}
	rest := []byte("{}")
	if len(own) > 0 {
		if rest, err = json.Marshal(own); err != nil {
			return nil, err
		}
	}
	with, err := chain.Put(rest, c.Relays(platform))
	if err != nil {
		return nil, err
	}
	return object(with), nil
}

// object decodes a JSON object. Numbers stay as they are written.
func object(raw []byte) map[string]any {
	out, _ := value(raw).(map[string]any)
	return out
}

func value(raw []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// outgoing converts a message of the sender.
func outgoing(m *task.Message) *a2a.Message {
	out := &a2a.Message{Role: a2a.MessageRoleUser, Extensions: m.Extensions, Metadata: object(m.Metadata)}
	for i := range m.Parts {
		p := &m.Parts[i]
		part := &a2a.Part{Filename: p.Name, MediaType: p.MediaType, Metadata: object(p.Metadata)}
		switch {
		case p.Kind == task.TextPart:
			part.Content = a2a.Text(p.Text)
		case p.Kind == task.DataPart:
			part.Content = a2a.Data{Value: value(p.Data)}
		case p.URL != "":
			part.Content = a2a.URL(p.URL)
		default:
			part.Content = a2a.Raw(p.Bytes)
		}
		out.Parts = append(out.Parts, part)
	}
	return out
}

// storable makes a text of the remote fit for the store.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// name makes a name of the remote fit for our rules, or drops it.
func name(s string) string {
	rule := text.Rule{Form: text.Plain, MaxBytes: task.MaxName}
	if s = storable(s); rule.Check(s) == "" {
		return s
	}
	if s = text.CleanName(text.Clean(s, task.MaxName/4)); rule.Check(s) == "" {
		return s
	}
	return ""
}

// id makes an id of the remote fit for our rules, or drops it.
func id(s string) string {
	if task.BadID(s) {
		return ""
	}
	return s
}

func ids(list []string) (out []string) {
	for _, s := range list {
		if s = id(s); s != "" && len(out) < task.MaxIDs {
			out = append(out, s)
		}
	}
	return out
}

// maxDepth bounds how deep data of a remote is nested, as deep as requests to Parley can be. Some
// readers of JSON fail at more.
const maxDepth = 24

// tooDeep reports whether a JSON value has more than most objects and lists inside each other.
func tooDeep(v any, most int) bool {
	var members iter.Seq[any]
	switch v := v.(type) {
	case map[string]any:
		members = maps.Values(v)
	case []any:
		members = slices.Values(v)
	default:
		return false
	}
	if most == 0 {
		return true
	}
	for member := range members {
		if tooDeep(member, most-1) {
			return true
		}
	}
	return false
}

// metadata encodes metadata of the remote, or drops it if it is too large or too deep.
func metadata(m map[string]any) json.RawMessage {
	if len(m) == 0 || tooDeep(m, maxDepth) {
		return nil
	}
	b, err := json.Marshal(m)
	if err != nil || len(task.CheckObject("metadata", b)) > 0 {
		return nil
	}
	return b
}

// parts converts parts of the remote. Those that have no content are left out.
func parts(list a2a.ContentParts) (out []task.Part) {
	for _, p := range list {
		if p == nil || len(out) == task.MaxParts {
			continue
		}
		part := task.Part{Name: name(p.Filename), MediaType: name(p.MediaType), Metadata: metadata(p.Metadata)}
		switch c := p.Content.(type) {
		case a2a.Text:
			part.Kind, part.Text = task.TextPart, storable(string(c))
		case a2a.Raw:
			if part.Kind, part.Bytes = task.FilePart, c; len(c) == 0 {
				continue
			}
		case a2a.URL:
			if part.Kind, part.URL = task.FilePart, storable(string(c)); part.URL == "" || len(part.URL) > 4096 {
				continue
			}
		case a2a.Data:
			data, err := json.Marshal(c.Value)
			if err != nil {
				continue
			}
			if part.Kind, part.Data = task.DataPart, data; tooDeep(c.Value, maxDepth) {
				part.Kind, part.Data, part.Bytes, part.MediaType = task.FilePart, nil, data, "application/json"
			}
		default:
			continue
		}
		out = append(out, part)
	}
	return out
}

// incoming converts a message of the remote. It is nil if nothing is left of it.
func incoming(m *a2a.Message) *task.Message {
	if m == nil {
		return nil
	}
	out := &task.Message{
		ID: id(m.ID), Role: task.RoleAgent, Parts: parts(m.Parts), Metadata: metadata(m.Metadata), Extensions: ids(m.Extensions),
	}
	if len(out.Parts) == 0 {
		return nil
	}
	return out
}

// artifact converts an artifact of the remote. ok is false if nothing is left of it.
func artifact(a *a2a.Artifact) (out task.Artifact, ok bool) {
	if a == nil {
		return out, false
	}
	out = task.Artifact{
		ID: id(string(a.ID)), Name: name(a.Name), Description: storable(a.Description), Parts: parts(a.Parts),
		Metadata: metadata(a.Metadata), Extensions: ids(a.Extensions),
	}
	switch {
	case out.ID != "":
	case a.ID == "":
		out.ID = "artifact"
	default: // it cannot be stored, but must stay apart from others
		h := sha256.Sum256([]byte(a.ID))
		out.ID = "artifact-" + hex.EncodeToString(h[:16])
	}
	return out, len(out.Parts) > 0
}

// states maps the states of the remote. A task that only the remote canceled has failed for its
// sender.
var states = map[a2a.TaskState]task.State{
	a2a.TaskStateCompleted: task.Completed, a2a.TaskStateFailed: task.Failed, a2a.TaskStateCanceled: task.Failed,
	a2a.TaskStateRejected: task.Rejected, a2a.TaskStateInputRequired: task.InputRequired,
	a2a.TaskStateAuthRequired: task.AuthRequired, a2a.TaskStateWorking: task.Working,
	a2a.TaskStateSubmitted: task.Working, a2a.TaskStateUnspecified: task.Working,
}

// statusOf converts a status of the remote.
func statusOf(s *a2a.TaskStatus) (task.State, *task.Message) {
	state, ok := states[s.State]
	if !ok {
		state = task.Working
	}
	m := incoming(s.Message)
	if s.State == a2a.TaskStateCanceled && m == nil {
		m = task.Says("The remote agent canceled the task.")
	}
	return state, m
}
