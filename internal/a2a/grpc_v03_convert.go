package a2a

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	v03pb "github.com/a2aproject/a2a-go/a2apb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/task"
	"github.com/parley-dev/parley/internal/wire"
)

// The conversions of grpc_convert.go, for version 0.3. In this version a zero field means that it
// was not set.

// v03SendFromProto is readOfficialSend for gRPC.
func v03SendFromProto(r *v03pb.SendMessageRequest) (p officialSend, err error) {
	if p.wait = glance; r.GetConfiguration().GetBlocking() {
		p.wait = blockFor
	}
	var fields, more []errs.Field
	p.history, fields = v03History(r.GetConfiguration().GetHistoryLength())
	fields = errs.Under(fields, "configuration")
	if push := r.GetConfiguration().GetPushNotification(); push != nil {
		config := v03PushFromProto(push)
		p.request.Push = &config
	}
	p.request.OutputModes = keptModes(r.GetConfiguration().GetAcceptedOutputModes())
	p.request.Metadata, more = objectFromProto(r.GetMetadata())
	fields = append(append(fields, more...), setPolicy(&p.request)...)
	m := r.GetRequest()
	if m == nil {
		return p, invalid(append(fields, mistake("is required", "request")))
	}
	p.request.ID, p.request.ContextID = m.GetTaskId(), m.GetContextId()
	p.request.MustExist = m.GetTaskId() != ""
	p.request.Message, more = v03MessageFromProto(m)
	if fields = append(fields, errs.Under(more, "request")...); len(fields) == 0 {
		fields = p.lacks(task.PushV03)
	}
	return p, invalid(fields)
}

func v03History(length int32) (int, []errs.Field) {
	if length == 0 {
		return wire.AllHistory, nil
	}
	return historyFromProto(&length, wire.AllHistory)
}

func v03MessageFromProto(m *v03pb.Message) (out task.Message, fields []errs.Field) {
	out = task.Message{ID: m.GetMessageId(), Extensions: m.GetExtensions(), References: m.GetReferenceTaskIds()}
	switch m.GetRole() {
	case v03pb.Role_ROLE_USER:
		out.Role = task.RoleUser
	case v03pb.Role_ROLE_AGENT:
		out.Role = task.RoleAgent
	}
	out.Metadata, fields = objectFromProto(m.GetMetadata())
	parts := m.GetParts()
	if len(parts) > task.MaxParts {
		tooMany := mistake("must have at most "+strconv.Itoa(task.MaxParts)+" entries", "content")
		return out, append(fields, tooMany)
	}
	out.Parts = make([]task.Part, len(parts))
	for i, p := range parts {
		fields = append(fields, errs.Under(v03PartFromProto(&out.Parts[i], p), "content", i)...)
	}
	return out, fields
}

func v03PartFromProto(out *task.Part, p *v03pb.Part) (fields []errs.Field) {
	out.Metadata, fields = objectFromProto(p.GetMetadata())
	switch v := p.GetPart().(type) {
	case *v03pb.Part_Text:
		out.Kind, out.Text = task.TextPart, v.Text
	case *v03pb.Part_File:
		out.Kind, out.Name, out.MediaType = task.FilePart, v.File.GetName(), v.File.GetMimeType()
		out.URL, out.Bytes = v.File.GetFileWithUri(), wire.V03FileBytes(v.File.GetFileWithBytes())
	case *v03pb.Part_Data:
		out.Kind = task.DataPart
		text, ok := appendObject(nil, v.Data.GetData(), 0)
		if !ok {
			return append(fields, mistake(notJSON, "data"))
		}
		out.Data = text
	default:
		fields = append(fields, mistake("must have text, file or data"))
	}
	return fields
}

func v03PushFromProto(p *v03pb.PushNotificationConfig) task.PushConfig {
	out := task.PushConfig{ID: p.GetId(), URL: p.GetUrl(), Token: p.GetToken(), Form: task.PushV03}
	if auth := p.GetAuthentication(); auth != nil {
		out.Credentials = auth.GetCredentials()
		if schemes := auth.GetSchemes(); len(schemes) > 0 {
			out.Scheme = schemes[0] // see readPushAuth
		}
	}
	return out
}

func v03ListFromProto(r *v03pb.ListTasksRequest) (own dispatch.OwnRequest, history int, err error) {
	own = dispatch.OwnRequest{
		ContextID: r.GetContextId(), Cursor: r.GetPageToken(),
		Limit: int(r.GetPageSize()), Artifacts: r.GetIncludeArtifacts(),
	}
	length := r.GetHistoryLength()
	history, fields := historyFromProto(&length, 0)
	own.History = history > 0
	if after := r.GetLastUpdatedTime(); after != nil {
		if after.CheckValid() != nil {
			fields = append(fields, mistake("must be a time", "lastUpdatedTime"))
		}
		own.UpdatedAfter = after.AsTime()
	}
	var ok bool
	if own.State, ok = stateFromProto(int32(r.GetStatus())); !ok {
		fields = append(fields, mistake("is not a state of a task", "status"))
	}
	return own, history, invalid(fields)
}

// named splits the name of a resource: tasks/<id>, or tasks/<id>/pushNotificationConfigs/<id>.
func named(name string) (taskID, configID string) {
	taskID, configID, _ = strings.Cut(strings.TrimPrefix(name, "tasks/"), "/pushNotificationConfigs")
	return taskID, strings.TrimPrefix(configID, "/")
}

func v03ProtoTask(t *task.Task, history int, artifacts bool) *v03pb.Task {
	out := &v03pb.Task{
		Id: t.ID, ContextId: t.ContextID, Metadata: protoObject(t.Metadata),
		Status: v03ProtoStatus(t, t.State, t.UpdatedAt, t.Message),
	}
	if artifacts {
		for i := range t.Artifacts {
			out.Artifacts = append(out.Artifacts, v03ProtoArtifact(&t.Artifacts[i]))
		}
	}
	list := t.History[max(0, len(t.History)-max(0, history)):]
	for i := range list {
		out.History = append(out.History, v03ProtoMessage(t, &list[i]))
	}
	return out
}

func v03ProtoStatus(t *task.Task, s task.State, at time.Time, m *task.Message) *v03pb.TaskStatus {
	// States have the same numbers in both versions.
	out := &v03pb.TaskStatus{State: v03pb.TaskState(protoState(s)), Timestamp: timestamppb.New(at)}
	if m != nil {
		out.Update = v03ProtoMessage(t, m)
	}
	return out
}

func v03ProtoMessage(t *task.Task, m *task.Message) *v03pb.Message {
	out := &v03pb.Message{
		MessageId: m.ID, ContextId: t.ContextID, TaskId: t.ID, Role: v03pb.Role_ROLE_AGENT,
		Parts:    v03ProtoParts(m.Parts),
		Metadata: protoObject(m.Metadata), Extensions: m.Extensions,
	}
	if m.Role == task.RoleUser {
		out.Role = v03pb.Role_ROLE_USER
	}
	return out
}

func v03ProtoParts(parts []task.Part) []*v03pb.Part {
	out := make([]*v03pb.Part, len(parts))
	for i := range parts {
		p := &parts[i]
		o := &v03pb.Part{Metadata: protoObject(p.Metadata)}
		switch p.Kind {
		case task.TextPart:
			o.Part = &v03pb.Part_Text{Text: p.Text}
		case task.DataPart:
			o.Part = &v03pb.Part_Data{Data: &v03pb.DataPart{Data: v03ProtoData(p.Data)}}
		case task.FilePart:
			o.Part = &v03pb.Part_File{File: v03ProtoFile(p)}
		}
		out[i] = o
	}
	return out
}

// v03ProtoData returns data as an object, which it must be; see wire.AppendV03ProtoTask.
func v03ProtoData(data []byte) *structpb.Struct {
	v := protoValue(data)
	if object := v.GetStructValue(); object != nil {
		return object
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{"value": v}}
}

// v03ProtoFile contains bytes as base64, as the SDKs expect it.
func v03ProtoFile(p *task.Part) *v03pb.FilePart {
	out := &v03pb.FilePart{MimeType: p.MediaType, Name: p.Name}
	if p.URL != "" {
		out.File = &v03pb.FilePart_FileWithUri{FileWithUri: p.URL}
	} else {
		out.File = &v03pb.FilePart_FileWithBytes{FileWithBytes: base64.StdEncoding.AppendEncode(nil, p.Bytes)}
	}
	return out
}

func v03ProtoArtifact(a *task.Artifact) *v03pb.Artifact {
	return &v03pb.Artifact{
		ArtifactId: a.ID, Name: a.Name, Description: a.Description, Parts: v03ProtoParts(a.Parts),
		Metadata: protoObject(a.Metadata), Extensions: a.Extensions,
	}
}

// v03ProtoEvent is wire.AppendV03ProtoEvent for gRPC.
func v03ProtoEvent(t *task.Task, e *task.Event) *v03pb.StreamResponse {
	if e.Kind == task.ArtifactEvent {
		update := &v03pb.TaskArtifactUpdateEvent{
			TaskId: t.ID, ContextId: t.ContextID,
			Artifact: v03ProtoArtifact(e.Artifact), Append: e.Append, LastChunk: e.LastChunk,
		}
		return &v03pb.StreamResponse{Payload: &v03pb.StreamResponse_ArtifactUpdate{ArtifactUpdate: update}}
	}
	update := &v03pb.TaskStatusUpdateEvent{
		TaskId: t.ID, ContextId: t.ContextID,
		Status: v03ProtoStatus(t, e.State, e.At, e.Message), Final: e.State.Rests(),
	}
	return &v03pb.StreamResponse{Payload: &v03pb.StreamResponse_StatusUpdate{StatusUpdate: update}}
}

func v03ProtoPush(p *task.PushConfig) *v03pb.TaskPushNotificationConfig {
	config := &v03pb.PushNotificationConfig{Id: p.ID, Url: p.URL, Token: p.Token}
	if p.Scheme != "" {
		config.Authentication = &v03pb.AuthenticationInfo{Schemes: []string{p.Scheme}, Credentials: p.Credentials}
	}
	return &v03pb.TaskPushNotificationConfig{
		Name: "tasks/" + p.TaskID + "/pushNotificationConfigs/" + p.ID, PushNotificationConfig: config,
	}
}
