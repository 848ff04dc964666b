package a2a

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/a2aclient"
	v03pb "github.com/a2aproject/a2a-go/a2apb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/parley-dev/parley/internal/task"
)

// The SDK for Go of version 0.3, over gRPC.
func TestTheSDKOf03OverGRPC(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := a2aclient.NewGRPCTransport(dial(t, w.h2c()))
	ctx := as(t.Context(), w.key("acme", "user:ada", "svc:a2a:write", "agent:echo"))
	parts := []a2a.Part{
		a2a.TextPart{Text: "hello"},
		a2a.DataPart{Data: map[string]any{"a": []any{1.0, nil}}},
		a2a.FilePart{File: a2a.FileBytes{
			FileMeta: a2a.FileMeta{Name: "f", MimeType: "text/plain"},
			Bytes:    base64.StdEncoding.EncodeToString([]byte("\x00raw")),
		}},
		a2a.FilePart{File: a2a.FileURI{URI: "https://example.com/f"}},
	}
	yes := true
	res, err := c.SendMessage(ctx, &a2a.MessageSendParams{
		Message: a2a.NewMessage(a2a.MessageRoleUser, parts...), Config: &a2a.MessageSendConfig{Blocking: &yes},
	})
	if err != nil {
		t.Fatal(err)
	}
	sent, ok := res.(*a2a.Task)
	if !ok || sent.Status.State != a2a.TaskStateCompleted || len(sent.Artifacts) != 1 {
		t.Fatalf("got %+v, want a completed task with one artifact", res)
	}
	if diff := cmp.Diff(parts, []a2a.Part(sent.Artifacts[0].Parts)); diff != "" {
		t.Error(diff)
	}
	if got, err := c.GetTask(ctx, &a2a.TaskQueryParams{ID: sent.ID}); err != nil || cmp.Diff(sent, got) != "" {
		t.Errorf("GetTask: %v (-want +got):\n%s", err, cmp.Diff(sent, got))
	}
	var last a2a.Event
	more := a2a.NewMessage(a2a.MessageRoleUser, a2a.TextPart{Text: "more"})
	for e, err := range c.SendStreamingMessage(ctx, &a2a.MessageSendParams{Message: more}) {
		if err != nil {
			t.Fatal(err)
		}
		last = e
	}
	switch e := last.(type) {
	case *a2a.TaskStatusUpdateEvent:
		if !e.Final || e.Status.State != a2a.TaskStateCompleted {
			t.Errorf("last event = %+v, want a final completed status", e)
		}
	case *a2a.Task: // the task was over before the stream began
		if e.Status.State != a2a.TaskStateCompleted {
			t.Errorf("task = %+v, want it completed", e)
		}
	default:
		t.Errorf("last event = %+v, want a status or a task", last)
	}
	card, err := c.GetAgentCard(ctx)
	if err != nil || card.Name != "Echo" || len(card.Security) == 0 || len(card.SecuritySchemes) == 0 {
		t.Errorf("got %+v, %v, want the card of echo with its security", card, err)
	}
}

// The card over gRPC has the same requirements as the card in JSON.
func TestTheCardOf03OverGRPCHasScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withOAuth)
	key := w.key("acme", "user:ada", "svc:a2a:write", "agent:echo")
	var want struct{ Security []map[string][]string }
	if err := json.Unmarshal([]byte(w.do("", "GET", echoCard, "", "A2A-Version", "0.3").Body), &want); err != nil {
		t.Fatal(err)
	}
	client := v03pb.NewA2AServiceClient(dial(t, w.h2c()))
	card, err := client.GetAgentCard(as(t.Context(), key), &v03pb.GetAgentCardRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string][]string
	for _, s := range card.GetSecurity() {
		alternative := map[string][]string{}
		for name, scopes := range s.GetSchemes() {
			alternative[name] = append([]string{}, scopes.GetList()...)
		}
		got = append(got, alternative)
	}
	if diff := cmp.Diff(want.Security, got); diff != "" || len(got) != len(alternatives) {
		t.Error(diff)
	}
}

func TestV03GRPCRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := v03pb.NewA2AServiceClient(dial(t, w.h2c()))
	only := w.key("acme", "user:ada", "svc:a2a:write", "agent:bot")
	ctx := as(t.Context(), only)
	get := func(name string) error {
		_, err := c.GetTask(ctx, &v03pb.GetTaskRequest{Name: name})
		return err
	}
	failsGRPC(t, get("tasks/none"), codes.NotFound, "TASK_NOT_FOUND")
	failsGRPC(t, get("tasks/"), codes.InvalidArgument, "INVALID_PARAMS")
	_, err := c.SendMessage(ctx, &v03pb.SendMessageRequest{})
	failsGRPC(t, err, codes.InvalidArgument, "INVALID_PARAMS")
	st, err := c.TaskSubscription(ctx, &v03pb.TaskSubscriptionRequest{Name: "tasks/none"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = st.Recv()
	failsGRPC(t, err, codes.NotFound, "TASK_NOT_FOUND")

	// Only the key can name the agent.
	_, err = c.GetTask(as(t.Context(), w.caller("user:ada")), &v03pb.GetTaskRequest{Name: "tasks/x"})
	failsGRPC(t, err, codes.InvalidArgument, "INVALID_PARAMS")
	_, err = c.GetTask(t.Context(), &v03pb.GetTaskRequest{Name: "tasks/x"})
	failsGRPC(t, err, codes.Unauthenticated, "UNAUTHENTICATED")
	_, err = c.GetTask(as(t.Context(), only, "a2a-version", "1.0"), &v03pb.GetTaskRequest{Name: "tasks/x"})
	failsGRPC(t, err, codes.FailedPrecondition, "VERSION_NOT_SUPPORTED")

	w.rpc(only, "bot", "tasks/send", hello("t-1")).state("submitted")
	p := w.post("bot")
	w.report(p, w.claim(p), task.Report{State: task.Completed})
	_, err = c.CancelTask(ctx, &v03pb.CancelTaskRequest{Name: "tasks/t-1"})
	failsGRPC(t, err, codes.FailedPrecondition, "TASK_NOT_CANCELABLE")
}
