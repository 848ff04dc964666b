package a2a

import (
	"net/http"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	a2agrpcv0 "github.com/a2aproject/a2a-go/v2/a2agrpc/v0"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/task"
)

// The official clients of the HTTP+JSON and gRPC bindings of 0.3, every method.
func TestV03WithTheOfficialClients(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*world) (a2aclient.Transport, error){
		"HTTP+JSON": func(w *world) (a2aclient.Transport, error) {
			return a2av0.NewRESTTransport(a2av0.RESTTransportConfig{
				URL: w.serve() + "/a2a/bot", Client: http.DefaultClient,
			})
		},
		"gRPC": func(w *world) (a2aclient.Transport, error) {
			return a2agrpcv0.NewGRPCTransport(dial(w.tb, w.h2c())), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c, err := open(w)
			if err != nil {
				t.Fatal(err)
			}
			everyV03Method(t, w, c)
		})
	}
}

func everyV03Method(t *testing.T, w *world, c a2aclient.Transport) {
	ctx := t.Context()
	bearer := "Bearer " + w.key("acme", "user:ada", "svc:a2a:write", "agent:bot")
	key := a2aclient.ServiceParams{"Authorization": {bearer}}
	p := w.post("bot")

	message := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("hello"),
		a2a.NewDataPart(map[string]any{"a": []any{1.0}}), a2a.NewRawPart([]byte("\x00raw")))
	message.Metadata = map[string]any{"k": "v"}
	atOnce := &a2a.SendMessageConfig{ReturnImmediately: true}
	res, err := c.SendMessage(ctx, key, &a2a.SendMessageRequest{Message: message, Config: atOnce})
	if err != nil {
		t.Fatal(err)
	}
	sent, ok := res.(*a2a.Task)
	if !ok || sent.Status.State != a2a.TaskStateSubmitted || len(sent.History) != 1 {
		t.Fatalf("got %+v, want a submitted task with one message", res)
	}
	if diff := cmp.Diff(message.Parts, sent.History[0].Parts); diff != "" {
		t.Error(diff)
	}
	lease := w.claim(p)
	w.report(p, lease, task.Report{
		State: task.InputRequired, Message: says("Which?"), Artifacts: []task.ArtifactUpdate{artifact("a", "x")},
	})
	waits, err := c.GetTask(ctx, key, &a2a.GetTaskRequest{ID: sent.ID})
	if err != nil || waits.Status.State != a2a.TaskStateInputRequired || len(waits.Artifacts) != 1 ||
		len(waits.History) != 2 {
		t.Fatalf("got %+v, %v, want input-required with an artifact and 2 messages", waits, err)
	}

	// A subscriber of a task that waits sees its events after the input.
	done := make(chan []string)
	first := make(chan struct{})
	go func() {
		var got []string
		for e, err := range c.SubscribeToTask(ctx, key, &a2a.SubscribeToTaskRequest{ID: sent.ID}) {
			switch e := e.(type) {
			case *a2a.Task:
				close(first)
			case *a2a.TaskStatusUpdateEvent:
				got = append(got, string(e.Status.State))
			}
			if err != nil {
				t.Error(err)
			}
		}
		done <- got
	}()
	<-first
	turn := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("that"))
	turn.TaskID = sent.ID
	if _, err := c.SendMessage(ctx, key, &a2a.SendMessageRequest{Message: turn, Config: atOnce}); err != nil {
		t.Fatal(err)
	}
	w.report(p, w.claim(p), task.Report{State: task.Completed})
	if got := <-done; len(got) < 2 || got[len(got)-1] != string(a2a.TaskStateCompleted) {
		t.Errorf("states = %v, want completed last", got)
	}

	var kinds []string
	go func() {
		end := task.Report{State: task.Completed, Artifacts: []task.ArtifactUpdate{artifact("a", "x")}}
		w.report(p, w.claim(p), end)
	}()
	more := &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("more"))}
	for e, err := range c.SendStreamingMessage(ctx, key, more) {
		switch e.(type) {
		case *a2a.Task:
			kinds = append(kinds, "task")
		case *a2a.TaskArtifactUpdateEvent:
			kinds = append(kinds, "artifact")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !cmp.Equal(kinds, []string{"task", "artifact"}) {
		t.Errorf("events = %v, want a task and an artifact", kinds)
	}

	list, err := c.ListTasks(ctx, key, &a2a.ListTasksRequest{PageSize: 1})
	if err != nil || len(list.Tasks) != 1 || list.NextPageToken == "" {
		t.Fatalf("got %+v, %v, want one task and a next page", list, err)
	}
	if _, err := c.CancelTask(ctx, key, &a2a.CancelTaskRequest{ID: sent.ID}); err == nil {
		t.Error("canceling a completed task: err = nil, want an error")
	}
	push, err := c.CreateTaskPushConfig(ctx, key, &a2a.PushConfig{
		TaskID: sent.ID, ID: "p", URL: "https://hook.example/x", Token: "tok",
		Auth: &a2a.PushAuthInfo{Scheme: "Bearer", Credentials: "cred"},
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.GetTaskPushConfig(ctx, key, &a2a.GetTaskPushConfigRequest{TaskID: sent.ID, ID: "p"})
	if err != nil || cmp.Diff(push, again) != "" || push.ID != "p" || push.Token != "tok" ||
		push.Auth.Credentials != "cred" {
		t.Errorf("got %+v, %v, want %+v", again, err, push)
	}
	all, err := c.ListTaskPushConfigs(ctx, key, &a2a.ListTaskPushConfigRequest{TaskID: sent.ID})
	if err != nil || len(all) != 1 {
		t.Errorf("configs = %v, %v, want one", all, err)
	}
	if err := c.DeleteTaskPushConfig(ctx, key, &a2a.DeleteTaskPushConfigRequest{TaskID: sent.ID, ID: "p"}); err != nil {
		t.Error(err)
	}
	card, err := c.GetExtendedAgentCard(ctx, key, &a2a.GetExtendedAgentCardRequest{})
	if err != nil || card.Name != "Bot" {
		t.Errorf("got %+v, %v, want the card of bot", card, err)
	}
}

// The forms that other clients of the binding send.
func TestV03RESTForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	// Without an id a task has one configuration, whose id is that of the task.
	w.rpc(ada, "bot", "tasks/send", hello("t-1")).state("submitted")
	for body, id := range map[string]string{
		`{"name":"tasks/t-1/pushNotificationConfigs/p-1","pushNotificationConfig":{"url":"https://x.example"}}`:                 "p-1",
		`{"parent":"tasks/t-1","configId":"p-2","config":{"pushNotificationConfig":{"url":"https://x.example"}}}`:               "p-2",
		`{"pushNotificationConfig":{"id":"p-3","url":"https://x.example","authentication":{"schemes":["Bearer","Basic"]}}}`:     "p-3",
		`{"parent":"tasks/t-1","config_id":"","config":{"push_notification_config":{"url":"https://x.example","token":"tok"}}}`: "t-1",
	} {
		a := w.do(ada, "POST", "/a2a/bot/v1/tasks/t-1/pushNotificationConfigs", body)
		if a.Status != http.StatusOK || !strings.Contains(a.Body, `"name":"tasks/t-1/pushNotificationConfigs/`+id+`"`) {
			t.Errorf("%s: got %d %s, want the id %s", body, a.Status, a.Body, id)
		}
	}
	a := w.do(ada, "POST", "/a2a/bot/v1/message:send", `{"message":{"messageId":"m","role":"ROLE_USER",`+
		`"content":[{"text":"x"}],"taskId":"","contextId":"ctx-1"},
		"configuration":{"blocking":false,"historyLength":1}}`)
	if a.Status != http.StatusOK || !strings.HasPrefix(a.Body, `{"task":{"id":`) ||
		!strings.Contains(a.Body, `"content":[{"text":"x"}]`) || !strings.Contains(a.Body, `"contextId":"ctx-1"`) {
		t.Errorf("got %d %s, want 200 with the task", a.Status, a.Body)
	}
	a = w.do(ada, "GET", "/a2a/bot/v1/tasks?status=TASK_STATE_CANCELLED&contextId=ctx-1", "")
	if a.Body != `{"tasks":[]}` {
		t.Errorf("got %d %s, want no tasks", a.Status, a.Body)
	}
	a = w.do(ada, "GET", "/a2a/bot/v1/tasks/t-1?historyLength=0", "")
	if a.Status != http.StatusOK || strings.Contains(a.Body, "history") {
		t.Errorf("got %d %s, want 200 without history", a.Status, a.Body)
	}
	a = w.do(ada, "POST", "/a2a/bot/v1/message:send", `{"message":{"messageId":"m","role":"ROLE_USER"}}`)
	if a.Status != http.StatusBadRequest {
		t.Errorf("status = %d, want 400: %s", a.Status, a.Body)
	}
	if a := w.do(ada, "GET", "/a2a/bot/v1/tasks/none", ""); a.Status != http.StatusNotFound {
		t.Errorf("status = %d, want 404: %s", a.Status, a.Body)
	}
}

// The proto of 0.3 calls the message request, and ProtoJSON allows that name.
func TestV03RESTTakesTheProtoName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	const m = `{"messageId":"m-1","role":"ROLE_USER","content":[{"text":"hello"}]}`
	for _, name := range []string{"request", "message"} {
		w.do(ada, "POST", "/a2a/echo/v1/message:send", `{"`+name+`":`+m+`,"configuration":{"blocking":true}}`).
			contains(`"TASK_STATE_COMPLETED"`)
	}
	for _, both := range []string{
		`{"request":` + m + `,"message":` + m + `}`, `{"message":` + m + `,"request":` + m + `}`,
	} {
		a := w.do(ada, "POST", "/a2a/echo/v1/message:send", both)
		if a.contains("another name for message"); a.Status != 400 {
			t.Errorf("status = %d, want 400: %s", a.Status, a.Body)
		}
	}
	// 1.0 does not have this name.
	w.do(ada, "POST", "/a2a/echo/message:send", `{"request":`+m+`}`).contains(`"message"`, "is required")
}
