package a2a

import (
	"strconv"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// sendFromProto is readOfficialSend for gRPC.
func sendFromProto(r *a2apb.SendMessageRequest) (p officialSend, err error) {
	if p.wait = blockFor; r.GetConfiguration().GetReturnImmediately() {
		p.wait = 0
	}
	var fields, more []errs.Field
	p.history, fields = historyFromProto(lengthOf(r.GetConfiguration()), wire.AllHistory)
	fields = errs.Under(fields, "configuration")
	if push := r.GetConfiguration().GetTaskPushNotificationConfig(); push != nil {
		config := pushFromProto(push)
		p.request.Push = &config
	}
	p.request.OutputModes = keptModes(r.GetConfiguration().GetAcceptedOutputModes())
	p.request.Metadata, more = objectFromProto(r.GetMetadata())
	fields = append(append(fields, more...), setPolicy(&p.request)...)
	m := r.GetMessage()
	if m == nil {
		return p, invalid(append(fields, mistake("is required", "message")))
	}
	p.request.ID, p.request.ContextID = m.GetTaskId(), m.GetContextId()
	p.request.MustExist = m.GetTaskId() != ""
	p.request.Message, more = messageFromProto(m)
	if fields = append(fields, errs.Under(more, "message")...); len(fields) == 0 {
		fields = p.lacks(task.PushV1)
	}
	return p, invalid(fields)
}

func messageFromProto(m *a2apb.Message) (out task.Message, fields []errs.Field) {
	out = task.Message{ID: m.GetMessageId(), Extensions: m.GetExtensions(), References: m.GetReferenceTaskIds()}
	switch m.GetRole() {
	case a2apb.Role_ROLE_USER:
		out.Role = task.RoleUser
	case a2apb.Role_ROLE_AGENT:
		out.Role = task.RoleAgent
	}
	out.Metadata, fields = objectFromProto(m.GetMetadata())
	parts := m.GetParts()
	if len(parts) > task.MaxParts {
		return out, append(fields, mistake("must have at most "+strconv.Itoa(task.MaxParts)+" entries", "parts"))
	}
	out.Parts = make([]task.Part, len(parts))
	for i, p := range parts {
		fields = append(fields, errs.Under(partFromProto(&out.Parts[i], p), "parts", i)...)
	}
	return out, fields
}

func partFromProto(out *task.Part, p *a2apb.Part) (fields []errs.Field) {
	out.Name, out.MediaType = p.GetFilename(), p.GetMediaType()
	out.Metadata, fields = objectFromProto(p.GetMetadata())
	switch v := p.GetContent().(type) {
	case *a2apb.Part_Text:
		out.Kind, out.Text = task.TextPart, v.Text
	case *a2apb.Part_Raw:
		out.Kind, out.Bytes = task.FilePart, v.Raw
	case *a2apb.Part_Url:
		out.Kind, out.URL = task.FilePart, v.Url
	case *a2apb.Part_Data:
		out.Kind = task.DataPart
		text, ok := appendValue(nil, v.Data, 0)
		if !ok {
			return append(fields, mistake(notJSON, "data"))
		}
		out.Data = text
	default:
		fields = append(fields, mistake("must have text, raw, url or data"))
	}
	return fields
}

func historyFromProto(length *int32, unset int) (int, []errs.Field) {
	switch {
	case length == nil:
		return unset, nil
	case *length < 0 || *length > maxHistory:
		return 0, append(noFields, mistake("must be an integer from 0 to "+strconv.Itoa(maxHistory), "historyLength"))
	}
	return int(*length), nil
}

func pushFromProto(p *a2apb.TaskPushNotificationConfig) task.PushConfig {
	return task.PushConfig{
		ID: p.GetId(), URL: p.GetUrl(), Token: p.GetToken(), Form: task.PushV1,
		Scheme: p.GetAuthentication().GetScheme(), Credentials: p.GetAuthentication().GetCredentials(),
	}
}

func listFromProto(r *a2apb.ListTasksRequest) (own dispatch.OwnRequest, history int, err error) {
	own = dispatch.OwnRequest{ContextID: r.GetContextId(), Cursor: r.GetPageToken(), Artifacts: r.GetIncludeArtifacts()}
	history, fields := historyFromProto(r.HistoryLength, 0)
	own.History = history > 0
	if own.Limit = int(r.GetPageSize()); own.Limit < 0 || own.Limit > dispatch.MaxLimit {
		fields = append(fields, mistake("must be an integer from 0 to "+strconv.Itoa(dispatch.MaxLimit), "pageSize"))
	}
	if after := r.GetStatusTimestampAfter(); after != nil {
		if after.CheckValid() != nil {
			fields = append(fields, mistake("must be a time", "statusTimestampAfter"))
		}
		own.UpdatedAfter = after.AsTime()
	}
	var ok bool
	if own.State, ok = stateFromProto(int32(r.GetStatus())); !ok {
		fields = append(fields, mistake("is not a state of a task", "status"))
	}
	return own, history, invalid(fields)
}

// stateFromProto returns the state with the number, which both versions share. Zero means any.
func stateFromProto(n int32) (task.State, bool) {
	for _, s := range task.States {
		if int32(protoState(s)) == n {
			return s, true
		}
	}
	return "", n == 0
}

func protoState(s task.State) a2apb.TaskState {
	return a2apb.TaskState(a2apb.TaskState_value[wire.V1State(s)])
}

// protoTask is wire.AppendV1TaskWith for gRPC.
func protoTask(t *task.Task, history int, artifacts bool) *a2apb.Task {
	out := &a2apb.Task{
		Id: t.ID, ContextId: t.ContextID, Metadata: protoObject(t.Metadata),
		Status: protoStatus(t, t.State, t.UpdatedAt, t.Message),
	}
	if artifacts {
		for i := range t.Artifacts {
			out.Artifacts = append(out.Artifacts, protoArtifact(&t.Artifacts[i]))
		}
	}
	if history > 0 {
		list := t.History[max(0, len(t.History)-history):]
		for i := range list {
			out.History = append(out.History, protoMessage(t.ID, t.ContextID, &list[i]))
		}
	}
	return out
}

func protoStatus(t *task.Task, s task.State, at time.Time, m *task.Message) *a2apb.TaskStatus {
	out := &a2apb.TaskStatus{State: protoState(s), Timestamp: timestamppb.New(at)}
	if m != nil {
		out.Message = protoMessage(t.ID, t.ContextID, m)
	}
	return out
}

func protoMessage(taskID, contextID string, m *task.Message) *a2apb.Message {
	out := &a2apb.Message{
		MessageId: m.ID, ContextId: contextID, TaskId: taskID, Role: a2apb.Role_ROLE_AGENT,
		Parts:    protoParts(m.Parts),
		Metadata: protoObject(m.Metadata), Extensions: m.Extensions, ReferenceTaskIds: m.References,
	}
	if m.Role == task.RoleUser {
		out.Role = a2apb.Role_ROLE_USER
	}
	return out
}

func protoParts(parts []task.Part) []*a2apb.Part {
	out := make([]*a2apb.Part, len(parts))
	for i := range parts {
		p := &parts[i]
		o := &a2apb.Part{Filename: p.Name, MediaType: p.MediaType, Metadata: protoObject(p.Metadata)}
		switch {
		case p.Kind == task.TextPart:
			o.Content = &a2apb.Part_Text{Text: p.Text}
		case p.Kind == task.DataPart:
			o.Content = &a2apb.Part_Data{Data: protoValue(p.Data)}
		case p.URL != "":
			o.Content = &a2apb.Part_Url{Url: p.URL}
		default:
			o.Content = &a2apb.Part_Raw{Raw: p.Bytes}
		}
		out[i] = o
	}
	return out
}

func protoArtifact(a *task.Artifact) *a2apb.Artifact {
	return &a2apb.Artifact{
		ArtifactId: a.ID, Name: a.Name, Description: a.Description, Parts: protoParts(a.Parts),
		Metadata: protoObject(a.Metadata), Extensions: a.Extensions,
	}
}

// protoEvent is wire.AppendV1Event for gRPC.
func protoEvent(t *task.Task, e *task.Event) *a2apb.StreamResponse {
	if e.Kind == task.ArtifactEvent {
		update := &a2apb.TaskArtifactUpdateEvent{
			TaskId: t.ID, ContextId: t.ContextID,
			Artifact: protoArtifact(e.Artifact), Append: e.Append, LastChunk: e.LastChunk,
		}
		return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_ArtifactUpdate{ArtifactUpdate: update}}
	}
	update := &a2apb.TaskStatusUpdateEvent{
		TaskId: t.ID, ContextId: t.ContextID, Status: protoStatus(t, e.State, e.At, e.Message),
	}
	return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_StatusUpdate{StatusUpdate: update}}
}

func protoPush(p *task.PushConfig) *a2apb.TaskPushNotificationConfig {
	out := &a2apb.TaskPushNotificationConfig{Id: p.ID, TaskId: p.TaskID, Url: p.URL, Token: p.Token}
	if p.Scheme != "" {
		out.Authentication = &a2apb.AuthenticationInfo{Scheme: p.Scheme, Credentials: p.Credentials}
	}
	return out
}

func lengthOf(c *a2apb.SendMessageConfiguration) *int32 {
	if c == nil {
		return nil
	}
	return c.HistoryLength
}
