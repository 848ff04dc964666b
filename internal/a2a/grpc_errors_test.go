package a2a

import (
	"context"
	"net/http"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/parley-dev/parley/internal/httpx"
)

func TestGRPCMistakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	addr := w.h2c()
	c := a2apb.NewA2AServiceClient(dial(t, addr))
	ada := w.caller("user:ada")
	ctx := as(t.Context(), ada)
	get := func(ctx context.Context, tenant, id string) error {
		_, err := c.GetTask(ctx, &a2apb.GetTaskRequest{Tenant: tenant, Id: id})
		return err
	}
	badFields := func(err error, want ...string) {
		t.Helper()
		var got []string
		for _, d := range failsGRPC(t, err, codes.InvalidArgument, reasonOf(err)).Details() {
			if bad, ok := d.(*errdetails.BadRequest); ok {
				for _, v := range bad.GetFieldViolations() {
					got = append(got, v.GetField())
				}
			}
		}
		if !cmp.Equal(got, want) {
			t.Errorf("%v: fields = %v, want %v", err, got, want)
		}
	}
	failsGRPC(t, get(ctx, "echo", "none"), codes.NotFound, "TASK_NOT_FOUND")
	failsGRPC(t, get(ctx, "nobody", "none"), codes.NotFound, "RESOURCE_NOT_FOUND")
	badFields(get(ctx, "echo", ""), "id")
	badFields(get(ctx, "", "t"), "tenant")
	send := func(edit func(*a2apb.SendMessageRequest)) error {
		r := protoSend("echo", "x")
		edit(r)
		_, err := c.SendMessage(ctx, r)
		return err
	}
	badFields(send(func(r *a2apb.SendMessageRequest) { r.Message = nil }), "message")
	badFields(send(func(r *a2apb.SendMessageRequest) { r.Message.MessageId = "" }), "message.messageId")
	badFields(send(func(r *a2apb.SendMessageRequest) { r.Message.Role = a2apb.Role_ROLE_AGENT }), "message.role")
	badFields(send(func(r *a2apb.SendMessageRequest) { r.Message.Parts = nil }), "message.parts")
	badFields(send(func(r *a2apb.SendMessageRequest) { r.Message.Parts[0].Content = nil }), "message.parts.0")
	badFields(send(func(r *a2apb.SendMessageRequest) {
		r.Message.Parts[0].Content = &a2apb.Part_Data{Data: structpb.NewNumberValue(nan())}
	}), "message.parts.0.data")
	badFields(send(func(r *a2apb.SendMessageRequest) {
		v := structpb.NewNullValue()
		for range maxValueDepth + 1 {
			v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
		}
		r.Message.Parts[0].Content = &a2apb.Part_Data{Data: v}
	}), "message.parts.0.data")
	badFields(send(func(r *a2apb.SendMessageRequest) {
		r.Configuration = &a2apb.SendMessageConfiguration{HistoryLength: proto.Int32(-1)}
	}), "configuration.historyLength")
	failsGRPC(t, send(func(r *a2apb.SendMessageRequest) { r.Message.TaskId = "unknown" }),
		codes.NotFound, "TASK_NOT_FOUND")
	failsGRPC(t, send(func(r *a2apb.SendMessageRequest) {
		r.Message.Parts[0].Content = &a2apb.Part_Text{Text: strings.Repeat("x", maxBody)}
	}), codes.ResourceExhausted, "")
	_, err := c.ListTasks(ctx, &a2apb.ListTasksRequest{
		Tenant: "echo", PageSize: proto.Int32(-1), Status: a2apb.TaskState(99),
	})
	badFields(err, "pageSize", "status")
	_, err = c.CreateTaskPushNotificationConfig(ctx,
		&a2apb.TaskPushNotificationConfig{Tenant: "echo", Url: "https://x.example"})
	badFields(err, "taskId")
	_, err = c.GetTaskPushNotificationConfig(ctx, &a2apb.GetTaskPushNotificationConfigRequest{Tenant: "echo"})
	badFields(err, "taskId", "id")

	// Credentials.
	none := t.Context()
	failsGRPC(t, get(none, "echo", "t"), codes.Unauthenticated, "UNAUTHENTICATED")
	failsGRPC(t, get(as(none, "plk_bad"), "echo", "t"), codes.Unauthenticated, "UNAUTHENTICATED")
	failsGRPC(t, get(as(none, w.key("acme", "user:bo", "svc:tasks:read")), "nobody", "t"),
		codes.PermissionDenied, "UNAUTHORIZED")
	other := w.key("acme", "user:cy", "svc:a2a:write", "agent:other")
	st := failsGRPC(t, get(as(none, other), "bot", "t"), codes.PermissionDenied, "UNAUTHORIZED")
	if !strings.Contains(st.Message(), "agent:bot") {
		t.Errorf("message = %q, want the scope agent:bot", st.Message())
	}
	failsGRPC(t, get(as(none, other), "nobody", "t"), codes.PermissionDenied, "UNAUTHORIZED")
	// Without a tenant, the key's only agent is called.
	failsGRPC(t, get(as(none, other), "", "t"), codes.NotFound, "TASK_NOT_FOUND")
	failsGRPC(t, get(as(none, w.key("globex", "user:di", "svc:a2a:write")), "bot", "t"),
		codes.NotFound, "RESOURCE_NOT_FOUND")

	// Versions.
	for _, v := range []string{"1.0", "1", "1.0.1"} {
		failsGRPC(t, get(as(none, ada, "a2a-version", v), "echo", "t"), codes.NotFound, "TASK_NOT_FOUND")
	}
	for _, v := range []string{"0.3", "2.0", "x"} {
		failsGRPC(t, get(as(none, ada, "a2a-version", v), "echo", "t"), coded(t, codeVersion), "VERSION_NOT_SUPPORTED")
	}

	// Requests that are not gRPC.
	for _, contentType := range []string{"application/json", "application/grpc", "application/grpc-web"} {
		res, err := http.Post("http://"+addr+"/lf.a2a.v1.A2AService/GetTask", contentType, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		body := readAll(t, res.Body)
		if res.StatusCode != http.StatusUnsupportedMediaType || !strings.Contains(body, "request.not_grpc") {
			t.Errorf("%s: status = %d, want 415 request.not_grpc: %s", contentType, res.StatusCode, body)
		}
	}
	err = dial(t, addr).Invoke(ctx, "/lf.a2a.v1.A2AService/Nothing", &a2apb.GetTaskRequest{}, &a2apb.Task{})
	failsGRPC(t, err, codes.Unimplemented, "")
}

func nan() float64 { zero := 0.0; return zero / zero }

func reasonOf(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

func TestGRPCRateLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *httpx.Options, _ *Options) { o.RateLimit = 1 })
	c := a2apb.NewA2AServiceClient(dial(t, w.h2c()))
	ctx := as(t.Context(), w.caller("user:ada"))
	var err error
	for range 10 {
		if _, err = c.GetTask(ctx, &a2apb.GetTaskRequest{Tenant: "echo", Id: "t"}); status.Code(err) == codes.ResourceExhausted {
			break
		}
	}
	st := failsGRPC(t, err, codes.ResourceExhausted, "REQUEST_RATE_LIMITED")
	for _, d := range st.Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok && r.GetRetryDelay().AsDuration() > 0 {
			return
		}
	}
	t.Errorf("details = %v, want RetryInfo", st.Details())
}
