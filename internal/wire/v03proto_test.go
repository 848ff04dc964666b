package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2apb/v0/pbjson"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-dev/parley/internal/task"
)

// The official SDK's encoder of this form is the reference.
func TestV03ProtoIsWhatTheSDKWrites(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tk := drawTask(rt)
		want, err := pbjson.ToProtoTask(sdkTask(&tk))
		if err != nil {
			rt.Fatal(err)
		}
		compare(rt, want, AppendV03ProtoTask(nil, &tk, AllHistory))
		if tk.Message != nil {
			want, err := pbjson.ToProtoSendMessageResult(sdkMessage(tk.ID, tk.ContextID, tk.Message))
			if err != nil {
				rt.Fatal(err)
			}
			compare(rt, want, append(AppendV03ProtoReply([]byte(`{"message":`), &tk), '}'))
		}
		e := task.Event{Kind: task.StatusEvent, State: tk.State, At: tk.UpdatedAt, Message: tk.Message}
		want, err = pbjson.ToProtoStreamEvent(&a2a.TaskStatusUpdateEvent{
			TaskID: a2a.TaskID(tk.ID), ContextID: tk.ContextID, Status: sdkTask(&tk).Status,
		})
		if err != nil {
			rt.Fatal(err)
		}
		compare(rt, want, AppendV03ProtoEvent(nil, &tk, &e, tk.State.Terminal()))
		for i := range tk.Artifacts {
			e := task.Event{
				Kind: task.ArtifactEvent, Artifact: &tk.Artifacts[i],
				Append: rapid.Bool().Draw(rt, "append"), LastChunk: rapid.Bool().Draw(rt, "last"),
			}
			want, err := pbjson.ToProtoStreamEvent(&a2a.TaskArtifactUpdateEvent{
				TaskID: a2a.TaskID(tk.ID), ContextID: tk.ContextID, Artifact: sdkTask(&tk).Artifacts[i],
				Append: e.Append, LastChunk: e.LastChunk,
			})
			if err != nil {
				rt.Fatal(err)
			}
			compare(rt, want, AppendV03ProtoEvent(nil, &tk, &e, false))
		}
	})
}

// What the SDK's client sends is read as it was meant.
func TestV03ProtoContentIsReadAsTheSDKWritesIt(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := drawMessage(rt)
		m.References = nil
		text, err := pbjson.ToProtoSendMessageRequest(&a2a.SendMessageRequest{Message: sdkMessage("", "", &m)})
		if err != nil {
			rt.Fatal(err)
		}
		var body struct{ Message json.RawMessage }
		if err := json.Unmarshal(text, &body); err != nil {
			rt.Fatal(err)
		}
		var got task.Message
		fields := Read(body.Message, false, func(r *Reader) {
			r.Message(&got, func(name []byte) bool {
				if string(name) == "content" {
					got.Parts = r.Content()
					return true
				}
				return false
			})
		})
		if len(fields) > 0 {
			rt.Fatalf("fields = %v, want none", fields)
		}
		compare(rt, AppendMessage(nil, &m), AppendMessage(nil, &got))
	})
}

// A sender that follows ProtoJSON encodes bytes once.
func TestV03ProtoContentReadsPlainBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"file":{"fileWithBytes":"AP9h"}}`:                                                                "\x00\xffa",
		`{"file":{"fileWithBytes":"aGVsbG8gd29ybGQ="}}`:                                                    "hello world",
		`{"file":{"fileWithBytes":"` + base64.StdEncoding.EncodeToString([]byte("aGVsbG8=")) + `"}}`:       "hello",
		`{"file":{"file_with_bytes":"` + base64.StdEncoding.EncodeToString([]byte("aGVsbG8gaGk=")) + `"}}`: "hello hi",
	} {
		var parts []task.Part
		fields := Read([]byte("["+text+"]"), false, func(r *Reader) { parts = r.Content() })
		if len(fields) > 0 || len(parts) != 1 || string(parts[0].Bytes) != want {
			t.Errorf("%s: got %v, %+v, want %q", text, fields, parts, want)
		}
	}
	for text, want := range map[string]string{
		`{"data":{"data":{"a":1}}}`:     `{"a":1}`,
		`{"data":{"data":{"data":2}}}`:  `{"data":2}`,
		`{"data":{"data":1,"other":2}}`: `{"data":1,"other":2}`,
		`{"data":[1]}`:                  `[1]`,
	} {
		var parts []task.Part
		_ = Read([]byte("["+text+"]"), false, func(r *Reader) { parts = r.Content() })
		if len(parts) != 1 || string(parts[0].Data) != want {
			t.Errorf("%s: data = %s, want %s", text, parts[0].Data, want)
		}
	}
}

// In this form data is an object.
func TestV03ProtoWrapsDataThatIsNoObject(t *testing.T) {
	t.Parallel()
	got := string(appendV03ProtoParts(nil, []task.Part{{Kind: task.DataPart, Data: json.RawMessage(`[1]`)}}))
	if got != `[{"data":{"data":{"value":[1]}}}]` {
		t.Errorf("got %s, want data in an object", got)
	}
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// compare compares the values of JSON; times may be written in several ways.
func compare(t fataler, want, got []byte) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(want, &a); err != nil {
		t.Fatalf("%v in %s", err, want)
	}
	if err := json.Unmarshal(got, &b); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if diff := cmp.Diff(plainTimes(a), plainTimes(b)); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", got, diff)
	}
}

func plainTimes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if s, ok := e.(string); ok && k == "timestamp" {
				if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
					v[k] = at.UnixMicro()
					continue
				}
			}
			v[k] = plainTimes(e)
		}
	case []any:
		for i := range v {
			v[i] = plainTimes(v[i])
		}
	}
	return v
}

// These generators are shared by tests that therefore do not run in parallel.
var (
	words   = rapid.SampledFrom([]string{"", "a", "é<&>", "line\nbreak", `"quoted"`, "x y"})
	named   = rapid.SampledFrom([]string{"a", "b-1", "ü"})
	objects = rapid.SampledFrom([]string{"", `{"k":"v"}`, `{"n":1.5,"l":[null,true,{"data":{}}]}`})
)

func drawTask(t *rapid.T) task.Task {
	tk := task.Task{
		ID: named.Draw(t, "id"), ContextID: named.Draw(t, "context"),
		State:     rapid.SampledFrom(task.States).Draw(t, "state"),
		UpdatedAt: time.UnixMicro(rapid.Int64Range(1, 4e15).Draw(t, "at")).UTC(),
		Metadata:  rawOf(objects.Draw(t, "metadata")),
	}
	for range rapid.IntRange(0, 2).Draw(t, "history") {
		tk.History = append(tk.History, drawMessage(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "artifacts") {
		tk.Artifacts = append(tk.Artifacts, task.Artifact{
			ID: named.Draw(t, "artifact"), Name: words.Draw(t, "name"),
			Description: words.Draw(t, "description"), Parts: drawParts(t),
			Metadata: rawOf(objects.Draw(t, "metadata")), Extensions: drawList(t),
		})
	}
	if rapid.Bool().Draw(t, "message") {
		m := drawMessage(t)
		tk.Message = &m
	}
	return tk
}

func drawMessage(t *rapid.T) task.Message {
	return task.Message{
		ID:       named.Draw(t, "id"),
		Role:     rapid.SampledFrom([]task.Role{task.RoleUser, task.RoleAgent}).Draw(t, "role"),
		Parts:    drawParts(t),
		Metadata: rawOf(objects.Draw(t, "metadata")), Extensions: drawList(t), References: drawList(t),
	}
}

func drawList(t *rapid.T) []string { return rapid.SliceOfN(named, 0, 2).Draw(t, "list") }

func drawParts(t *rapid.T) (out []task.Part) {
	for range rapid.IntRange(1, 3).Draw(t, "parts") {
		p := task.Part{Metadata: rawOf(objects.Draw(t, "metadata"))}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			p.Kind, p.Text = task.TextPart, words.Draw(t, "text")
		case 1:
			some := objects.Filter(func(s string) bool { return s != "" })
			p.Kind, p.Data = task.DataPart, rawOf(some.Draw(t, "data"))
		case 2:
			p.Kind, p.URL = task.FilePart, "https://x.example/f"
			p.Name, p.MediaType = words.Draw(t, "name"), words.Draw(t, "media")
		default:
			p.Kind, p.Bytes = task.FilePart, rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "bytes")
			p.Name, p.MediaType = words.Draw(t, "name"), words.Draw(t, "media")
		}
		out = append(out, p)
	}
	return out
}

func rawOf(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

func sdkMap(raw json.RawMessage) (out map[string]any) {
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out); err != nil {
			panic(fmt.Sprint(err, string(raw)))
		}
	}
	return out
}

func sdkTask(t *task.Task) *a2a.Task {
	at := t.UpdatedAt
	out := &a2a.Task{
		ID: a2a.TaskID(t.ID), ContextID: t.ContextID, Metadata: sdkMap(t.Metadata),
		Status: a2a.TaskStatus{State: a2a.TaskState(V1State(t.State)), Timestamp: &at},
	}
	if t.Message != nil {
		out.Status.Message = sdkMessage(t.ID, t.ContextID, t.Message)
	}
	for i := range t.History {
		out.History = append(out.History, sdkMessage(t.ID, t.ContextID, &t.History[i]))
	}
	for i := range t.Artifacts {
		a := &t.Artifacts[i]
		out.Artifacts = append(out.Artifacts, &a2a.Artifact{
			ID: a2a.ArtifactID(a.ID), Name: a.Name, Description: a.Description, Parts: sdkParts(a.Parts),
			Metadata: sdkMap(a.Metadata), Extensions: slices.Clone(a.Extensions),
		})
	}
	return out
}

func sdkMessage(taskID, contextID string, m *task.Message) *a2a.Message {
	role := a2a.MessageRoleAgent
	if m.Role == task.RoleUser {
		role = a2a.MessageRoleUser
	}
	return &a2a.Message{
		ID: m.ID, TaskID: a2a.TaskID(taskID), ContextID: contextID, Role: role, Parts: sdkParts(m.Parts),
		Metadata: sdkMap(m.Metadata), Extensions: m.Extensions,
	}
}

func sdkParts(parts []task.Part) (out a2a.ContentParts) {
	for i := range parts {
		p := &parts[i]
		o := &a2a.Part{Filename: p.Name, MediaType: p.MediaType, Metadata: sdkMap(p.Metadata)}
		switch {
		case p.Kind == task.TextPart:
			o.Content = a2a.Text(p.Text)
		case p.Kind == task.DataPart:
			var v any
			if err := json.Unmarshal(p.Data, &v); err != nil {
				panic(err)
			}
			o.Content = a2a.Data{Value: v}
		case p.URL != "":
			o.Content = a2a.URL(p.URL)
		default:
			o.Content = a2a.Raw(p.Bytes)
		}
		out = append(out, o)
	}
	return out
}
