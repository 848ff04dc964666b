package a2a

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/parley-dev/parley/internal/task"
)

// h2c serves the world over HTTP/2 without TLS, and returns host and port.
func (w *world) h2c(edit ...func(*http.Server)) string {
	srv := httptest.NewUnstartedServer(w.handler)
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	srv.Config.Protocols = p
	for _, e := range edit {
		e(srv.Config)
	}
	srv.Start()
	w.tb.Cleanup(func() {
		w.tasks.Stop()
		srv.Close()
	})
	return strings.TrimPrefix(srv.URL, "http://")
}

func dial(tb testing.TB, addr string) *grpc.ClientConn {
	tb.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// as returns a context with the key.
func as(ctx context.Context, secret string, more ...string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, append([]string{"authorization", "Bearer " + secret}, more...)...)
}

func protoSend(tenant, text string) *a2apb.SendMessageRequest {
	return &a2apb.SendMessageRequest{Tenant: tenant, Message: &a2apb.Message{
		MessageId: newID("m-"), Role: a2apb.Role_ROLE_USER,
		Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: text}}},
	}}
}

func at(r *a2apb.SendMessageRequest, taskID string) *a2apb.SendMessageRequest {
	r.Message.TaskId = taskID
	return r
}

func now(r *a2apb.SendMessageRequest) *a2apb.SendMessageRequest {
	r.Configuration = &a2apb.SendMessageConfiguration{ReturnImmediately: true}
	return r
}

// failsGRPC fails the test unless err has the code and the reason.
func failsGRPC(tb testing.TB, err error, code codes.Code, reason string) *status.Status {
	tb.Helper()
	st := status.Convert(err)
	got, domain := "", ""
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			got, domain = info.GetReason(), info.GetDomain()
		}
	}
	if st.Code() != code || got != reason || reason != "" && domain == "" {
		tb.Fatalf("got %v with %q, want %v with %q: %s", st.Code(), got, code, reason, st.Message())
	}
	return st
}

// coded returns the gRPC code of a JSON-RPC code.
func coded(tb testing.TB, rpc int) (code codes.Code) {
	tb.Helper()
	if err := code.UnmarshalJSON([]byte(`"` + kinds[rpc].status + `"`)); err != nil {
		tb.Fatal(err)
	}
	return code
}

// The official client, every method.
func TestGRPCWithTheOfficialClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	addr := w.h2c()
	ctx := t.Context()
	ada := w.caller("user:ada")
	c, err := a2aclient.NewFromEndpoints(ctx, []*a2a.AgentInterface{
		{URL: addr, ProtocolBinding: a2a.TransportProtocolGRPC, ProtocolVersion: "1.0", Tenant: "echo"},
	}, a2agrpc.WithGRPCTransport(grpc.WithTransportCredentials(insecure.NewCredentials())),
		a2aclient.WithCallInterceptors(bearerKey{secret: ada}))
	if err != nil {
		t.Fatal(err)
	}
	message := func() *a2a.SendMessageRequest {
		return &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("hello"))}
	}
	res, err := c.SendMessage(ctx, message())
	if err != nil {
		t.Fatal(err)
	}
	sent, ok := res.(*a2a.Task)
	if !ok || sent.Status.State != a2a.TaskStateCompleted || len(sent.Artifacts) != 1 {
		t.Fatalf("got %+v, want a completed task with one artifact", res)
	}
	got, err := c.GetTask(ctx, &a2a.GetTaskRequest{ID: sent.ID})
	if err != nil || cmp.Diff(sent, got) != "" {
		t.Fatalf("GetTask: %v (-want +got):\n%s", err, cmp.Diff(sent, got))
	}
	var states []string
	for e, err := range c.SendStreamingMessage(ctx, message()) {
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, fmt.Sprintf("%T", e))
	}
	if len(states) < 3 || states[0] != "*a2a.Task" || states[len(states)-1] != "*a2a.TaskStatusUpdateEvent" {
		t.Errorf("events = %v, want a task first and a status last", states)
	}
	list, err := c.ListTasks(ctx, &a2a.ListTasksRequest{PageSize: 1, IncludeArtifacts: true})
	if err != nil || len(list.Tasks) != 1 || list.TotalSize != 2 || list.NextPageToken == "" {
		t.Fatalf("got %+v, %v, want one of two tasks and a next page", list, err)
	}
	rest, err := c.ListTasks(ctx, &a2a.ListTasksRequest{PageSize: 1, PageToken: list.NextPageToken})
	if err != nil || len(rest.Tasks) != 1 || rest.NextPageToken != "" || rest.Tasks[0].ID != sent.ID {
		t.Fatalf("got %+v, %v, want the other task on the last page", rest, err)
	}
	if _, err := c.CancelTask(ctx, &a2a.CancelTaskRequest{ID: sent.ID}); err == nil {
		t.Error("canceling a completed task: err = nil, want an error")
	}
	push, err := c.CreateTaskPushConfig(ctx, &a2a.PushConfig{
		TaskID: sent.ID, ID: "p", URL: "https://hook.example/x", Token: "tok",
		Auth: &a2a.PushAuthInfo{Scheme: "Bearer", Credentials: "cred"},
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.GetTaskPushConfig(ctx, &a2a.GetTaskPushConfigRequest{TaskID: sent.ID, ID: "p"})
	if err != nil || cmp.Diff(push, again) != "" || push.Auth.Credentials != "cred" || push.Token != "tok" ||
		push.TaskID != sent.ID {
		t.Errorf("got %+v, %v, want %+v", again, err, push)
	}
	request := &a2a.ListTaskPushConfigRequest{TaskID: sent.ID}
	if all, err := c.ListTaskPushConfigs(ctx, request); err != nil || len(all) != 1 {
		t.Errorf("configs = %v, %v, want one", all, err)
	}
	if err := c.DeleteTaskPushConfig(ctx, &a2a.DeleteTaskPushConfigRequest{TaskID: sent.ID, ID: "p"}); err != nil {
		t.Error(err)
	}
	if all, err := c.ListTaskPushConfigs(ctx, request); err != nil || len(all) != 0 {
		t.Errorf("configs after the deletion = %v, %v, want none", all, err)
	}
	card, err := a2apb.NewA2AServiceClient(dial(t, addr)).GetExtendedAgentCard(
		as(ctx, ada), &a2apb.GetExtendedAgentCardRequest{Tenant: "echo"})
	if err != nil || card.GetName() != "Echo" || len(card.GetSupportedInterfaces()) != 4 ||
		card.GetProvider().GetOrganization() != "acme" ||
		card.GetSecuritySchemes()["bearer"].GetHttpAuthSecurityScheme().GetScheme() != "Bearer" {
		t.Errorf("got %v, %v, want the extended card of echo", card, err)
	}
}

type bearerKey struct {
	a2aclient.PassthroughInterceptor
	secret string
}

func (k bearerKey) Before(ctx context.Context, req *a2aclient.Request) (context.Context, any, error) {
	req.ServiceParams["Authorization"] = []string{"Bearer " + k.secret}
	return ctx, nil, nil
}

// A task is the same over both bindings, to the last member.
func TestGRPCAndJSONShowTheSameTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := a2apb.NewA2AServiceClient(dial(t, w.h2c()))
	ada := w.caller("user:ada")
	ctx := as(t.Context(), ada)
	r := now(protoSend("bot", "hello"))
	data, _ := structpb.NewValue(map[string]any{
		"z": 1.0, "a": []any{true, nil, "x", 1e300, -0.5}, "": map[string]any{},
	})
	meta, _ := structpb.NewStruct(map[string]any{"k": "v", "n": 12345678.0})
	r.Metadata = meta
	r.Message.Metadata = meta
	r.Message.Extensions, r.Message.ReferenceTaskIds = []string{"https://x.example/e"}, []string{"t-9"}
	r.Message.Parts = append(r.Message.Parts,
		&a2apb.Part{Content: &a2apb.Part_Data{Data: data}, MediaType: "application/json"},
		&a2apb.Part{Content: &a2apb.Part_Raw{Raw: []byte("\x00\xff")}, Filename: "f", Metadata: meta},
		&a2apb.Part{Content: &a2apb.Part_Url{Url: "https://x.example/f"}})
	res, err := c.SendMessage(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	id := res.GetTask().GetId()
	if res.GetTask().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_SUBMITTED {
		t.Fatalf("got %v, want TASK_STATE_SUBMITTED", res)
	}
	want := proto.Clone(r.Message).(*a2apb.Message)
	want.TaskId, want.ContextId = id, res.GetTask().GetContextId()
	if diff := cmp.Diff(want, res.GetTask().GetHistory()[0], protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	p := w.post("bot")
	lease := w.claim(p)
	w.report(p, lease, task.Report{
		State: task.Completed, Message: says("done"), Artifacts: []task.ArtifactUpdate{artifact("a", "x")},
	})
	overGRPC, err := c.GetTask(ctx, &a2apb.GetTaskRequest{Tenant: "bot", Id: id})
	if err != nil {
		t.Fatal(err)
	}
	text := w.rpc(ada, "bot", "GetTask", `{"id":"`+id+`"}`).Body
	text = strings.TrimSuffix(text[strings.Index(text, `"result":`)+len(`"result":`):], "}")
	overJSON := &a2apb.Task{}
	if err := protojson.Unmarshal([]byte(text), overJSON); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if diff := cmp.Diff(overJSON, overGRPC, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	// The same message again is a repetition, however its maps are ordered.
	for range 5 {
		again := proto.Clone(r).(*a2apb.SendMessageRequest)
		again.Message.TaskId = id
		if _, err := c.SendMessage(ctx, again); err != nil {
			t.Fatal(err)
		}
	}
	short, err := c.GetTask(ctx, &a2apb.GetTaskRequest{Tenant: "bot", Id: id, HistoryLength: proto.Int32(1)})
	if err != nil || len(short.GetHistory()) != 1 || short.GetHistory()[0].GetRole() != a2apb.Role_ROLE_AGENT {
		t.Errorf("got %v, %v, want one message of the agent", short, err)
	}
	// A number that fits into JSON but not into a double stays readable.
	w.rpc(ada, "bot", "SendMessage", `{"configuration":{"returnImmediately":true},`+
		`"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":[1e999]}]}}`)
	list, err := c.ListTasks(ctx, &a2apb.ListTasksRequest{
		Tenant: "bot", HistoryLength: proto.Int32(9), Status: a2apb.TaskState_TASK_STATE_SUBMITTED,
	})
	if err != nil || len(list.GetTasks()) != 1 ||
		list.GetTasks()[0].GetHistory()[0].GetParts()[0].GetData().GetListValue().GetValues()[0].GetStringValue() != "1e999" {
		t.Errorf("got %v, %v, want one task with 1e999 as text", list, err)
	}
}

// A blocking call waits while a worker can be expected; a conversation continues under the task's
// id.
func TestGRPCConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := a2apb.NewA2AServiceClient(dial(t, w.h2c()))
	ada := w.caller("user:ada")
	ctx := as(t.Context(), ada)
	begun := time.Now()
	queued, err := c.SendMessage(ctx, protoSend("bot", "nobody is there"))
	if err != nil || queued.GetTask().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_SUBMITTED ||
		time.Since(begun) > 20*time.Second {
		t.Fatalf("got %v, %v after %s, want TASK_STATE_SUBMITTED at once", queued, err, time.Since(begun))
	}
	canceled, err := c.CancelTask(ctx, &a2apb.CancelTaskRequest{Tenant: "bot", Id: queued.GetTask().GetId()})
	if err != nil || canceled.GetStatus().GetState() != a2apb.TaskState_TASK_STATE_CANCELED {
		t.Fatalf("got %v, %v, want TASK_STATE_CANCELED", canceled, err)
	}

	p := w.post("bot")
	answered := make(chan *a2apb.Task, 1)
	work := func(state task.State, text string) {
		lease := w.claim(p)
		w.report(p, lease, task.Report{State: state, Message: says(text)})
	}
	send := func(r *a2apb.SendMessageRequest) {
		res, err := c.SendMessage(ctx, r)
		if err != nil {
			t.Error(err)
		}
		answered <- res.GetTask()
	}
	working := make(chan struct{})
	go func() {
		defer close(working)
		work(task.InputRequired, "Which?")
	}()
	w.expect(ada, "bot")
	go send(protoSend("bot", "hello"))
	got := <-answered
	<-working
	if got.GetStatus().GetState() != a2apb.TaskState_TASK_STATE_INPUT_REQUIRED ||
		got.GetStatus().GetMessage().GetParts()[0].GetText() != "Which?" {
		t.Fatalf("got %v, want TASK_STATE_INPUT_REQUIRED with the question", got)
	}

	// A subscriber of a task that waits sees the task, and then its events after the input.
	sub, err := c.SubscribeToTask(ctx, &a2apb.SubscribeToTaskRequest{Tenant: "bot", Id: got.GetId()})
	if err != nil {
		t.Fatal(err)
	}
	first, err := sub.Recv()
	if err != nil || first.GetTask().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_INPUT_REQUIRED {
		t.Fatalf("got %v, %v, want TASK_STATE_INPUT_REQUIRED", first, err)
	}
	go work(task.Completed, "done")
	w.expect(ada, "bot")
	go send(at(protoSend("bot", "that"), got.GetId()))
	last := <-answered
	if last.GetStatus().GetState() != a2apb.TaskState_TASK_STATE_COMPLETED || len(last.GetHistory()) != 4 {
		t.Errorf("got %v, want TASK_STATE_COMPLETED with 4 messages", last)
	}
	var states []string
	for {
		e, err := sub.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, e.GetStatusUpdate().GetStatus().GetState().String())
	}
	if len(states) < 2 || states[len(states)-1] != "TASK_STATE_COMPLETED" {
		t.Errorf("states = %v, want TASK_STATE_COMPLETED last", states)
	}

	sub, err = c.SubscribeToTask(ctx, &a2apb.SubscribeToTaskRequest{Tenant: "bot", Id: got.GetId()})
	if err == nil {
		_, err = sub.Recv()
	}
	failsGRPC(t, err, coded(t, codeUnsupported), "UNSUPPORTED_OPERATION")
	_, err = c.SendMessage(ctx, at(protoSend("bot", "more"), got.GetId()))
	failsGRPC(t, err, coded(t, codeUnsupported), "UNSUPPORTED_OPERATION")
	_, err = c.CancelTask(ctx, &a2apb.CancelTaskRequest{Tenant: "bot", Id: got.GetId()})
	failsGRPC(t, err, coded(t, codeNotCancelable), "TASK_NOT_CANCELABLE")
}

// expect waits until a worker of the agent can be expected.
func (w *world) expect(secret, agent string) {
	w.tb.Helper()
	ctx := context.Background()
	caller, err := w.auth.Authenticate(ctx, secret)
	if err != nil {
		w.tb.Fatal(err)
	}
	to, err := w.tasks.Reach(ctx, caller, agent)
	if err != nil {
		w.tb.Fatal(err)
	}
	for range 3000 { // half a minute
		if w.tasks.Expected(ctx, to) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.tb.Fatal("timeout while waiting for a worker")
}

// A reply is returned as a message instead of a task.
func TestGRPCReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := a2apb.NewA2AServiceClient(dial(t, w.h2c()))
	p := w.post("bot")
	go func() {
		lease := w.claim(p)
		w.report(p, lease, task.Report{State: task.Completed, Message: says("hi"), Reply: true})
	}()
	ada := w.caller("user:ada")
	w.expect(ada, "bot")
	res, err := c.SendMessage(as(t.Context(), ada), protoSend("bot", "hello"))
	if err != nil || res.GetMessage().GetParts()[0].GetText() != "hi" ||
		res.GetMessage().GetRole() != a2apb.Role_ROLE_AGENT {
		t.Errorf("got %v, %v, want a message of the agent", res, err)
	}
}
