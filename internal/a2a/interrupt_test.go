package a2a

import (
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/parley-dev/parley/internal/task"
)

// A task that needs an authorization rests in every version and binding, and continues with the
// sender's next message.
func TestAuthRequiredIsAnsweredAsInputRequiredIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, p := w.caller("user:ada"), w.post("bot")
	c, ctx := a2apb.NewA2AServiceClient(dial(t, w.h2c())), as(t.Context(), ada)
	first := w.rpc(ada, "bot", "tasks/send", hello("t-1")).state("submitted")
	w.report(p, w.claim(p), task.Report{State: task.AuthRequired, Message: says("Sign in at https://id.example")})

	w.rpc(ada, "bot", "tasks/get", `{"id":"t-1"}`).state("auth-required")
	w.rpc(ada, "bot", "GetTask", `{"id":"t-1"}`).contains(`"TASK_STATE_AUTH_REQUIRED"`, "Sign in at")
	w.do(ada, "GET", "/a2a/bot/tasks/t-1", "").contains(`"TASK_STATE_AUTH_REQUIRED"`)
	w.do(ada, "GET", "/a2a/bot/v1/tasks/t-1", "").contains(`"TASK_STATE_AUTH_REQUIRED"`)
	w.rpc(ada, "bot", "ListTasks", `{"status":"TASK_STATE_AUTH_REQUIRED"}`).contains(`"t-1"`)
	got, err := c.GetTask(ctx, &a2apb.GetTaskRequest{Tenant: "bot", Id: "t-1"})
	if err != nil || got.GetStatus().GetState() != a2apb.TaskState_TASK_STATE_AUTH_REQUIRED {
		t.Errorf("got %v, %v, want TASK_STATE_AUTH_REQUIRED", got, err)
	}
	list, err := c.ListTasks(ctx, &a2apb.ListTasksRequest{
		Tenant: "bot", Status: a2apb.TaskState_TASK_STATE_AUTH_REQUIRED,
	})
	if err != nil || len(list.GetTasks()) != 1 {
		t.Errorf("got %v, %v, want one task", list, err)
	}
	// Streams end with this state.
	events := w.rpc(ada, "bot", "tasks/resubscribe", `{"id":"t-1"}`)
	events.contains(`"state":"auth-required"`, `"final":true`)

	// The same text is a new message here, not a repetition.
	again := w.rpc(ada, "bot", "tasks/send", hello("t-1")).state("working")
	if again.Result.ContextID != first.Result.ContextID {
		t.Errorf("context = %q, want %q", again.Result.ContextID, first.Result.ContextID)
	}
	w.report(p, w.claim(p), task.Report{State: task.Completed})
	w.rpc(ada, "bot", "tasks/get", `{"id":"t-1"}`).state("completed")
}

// Clients drop artifacts that seem incomplete, so an artifact in the last report of a task is
// complete in every form of a stream.
func TestTheLastArtifactIsMarkedAsComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, p := w.caller("user:ada"), w.post("bot")
	for method, params := range map[string]string{
		"tasks/sendSubscribe":  hello("t-spec"),
		"SendStreamingMessage": v1Hello(""),
		"message/stream":       strings.Replace(v1Hello(""), "ROLE_USER", "user", 1),
	} {
		for more, want := range map[bool]bool{false: true, true: false} {
			params := strings.Replace(params, "t-spec", map[bool]string{false: "t-1", true: "t-2"}[more], 1)
			done := make(chan *answer)
			go func() { done <- w.rpc(ada, "bot", method, params) }()
			u := artifact("a", "all of it")
			u.More = more
			w.report(p, w.claim(p), task.Report{State: task.Completed, Artifacts: []task.ArtifactUpdate{u}})
			body := (<-done).Body
			if strings.Contains(body, `"lastChunk":true`) != want || !strings.Contains(body, "all of it") {
				t.Errorf("%s, more %v: lastChunk = %v, want %v: %s", method, more, !want, want, body)
			}
		}
	}
}
