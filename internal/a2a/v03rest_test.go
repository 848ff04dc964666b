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
			return a2av0.NewRESTTransport(a2av0.RESTTransportConfig{URL: w.serve() + "/a2a/bot", Client: http.DefaultClient})
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
	key := a2aclient.ServiceParams{"Authorization": {"Bearer " + w.key("acme", "user:ada", "svc:a2a:write", "agent:bot")}}
	p := w.post("bot")

	message := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("hello"), a2a.NewDataPart(map[string]any{"a": []any{1.0}}), a2a.NewRawPart([]byte("\x00raw")))
	message.Metadata = map[string]any{"k": "v"}
	res, err := c.SendMessage(ctx, key, &a2a.SendMessageRequest{Message: message, Config: &a2a.SendMessageConfig{ReturnImmediately: true}})
	if err != nil {
		t.Fatal(err)
	}
	sent, ok := res.(*a2a.Task)
	if !ok || sent.Status.State != a2a.TaskStateSubmitted || len(sent.History) != 1 {
		t.Fatalf("%+v", res)
	}
	if diff := cmp.Diff(message.Parts, sent.History[0].Parts); diff != "" {
		t.Error(diff)
	}
	lease := w.claim(p)
	w.report(p, lease, task.Report{State: task.InputRequired, Message: says("Which?"), Artifacts: []task.ArtifactUpdate{artifact("a", "x")}})
	waits, err := c.GetTask(ctx, key, &a2a.GetTaskRequest{ID: sent.ID})
	if err != nil || waits.Status.State != a2a.TaskStateInputRequired || len(waits.Artifacts) != 1 || len(waits.History) != 2 {
		t.Fatal(waits, err)
	}

	// Who subscribes while the task waits sees what comes of the answer.
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
	if _, err := c.SendMessage(ctx, key, &a2a.SendMessageRequest{Message: turn, Config: &a2a.SendMessageConfig{ReturnImmediately: true}}); err != nil {
		t.Fatal(err)
	}
	w.report(p, w.claim(p), task.Report{State: task.Completed})
	if got := <-done; len(got) < 2 || got[len(got)-1] != string(a2a.TaskStateCompleted) {
		t.Error(got)
	}

	var kinds []string
	go func() {
		w.report(p, w.claim(p), task.Report{State: task.Completed, Artifacts: []task.ArtifactUpdate{artifact("a", "x")}})
	}()
	for e, err := range c.SendStreamingMessage(ctx, key, &a2a.SendMessageRequest{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("more"))}) {
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
		t.Error(kinds)
	}

	list, err := c.ListTasks(ctx, key, &a2a.ListTasksRequest{PageSize: 1})
	if err != nil || len(list.Tasks) != 1 || list.NextPageToken == "" {
		t.Fatal(list, err)
	}
	if _, err := c.CancelTask(ctx, key, &a2a.CancelTaskRequest{ID: sent.ID}); err == nil {
		t.Error("a completed task was canceled")
	}
	push, err := c.CreateTaskPushConfig(ctx, key, &a2a.PushConfig{
		TaskID: sent.ID, ID: "p", URL: "https://hook.example/x", Token: "tok", Auth: &a2a.PushAuthInfo{Scheme: "Bearer", Credentials: "cred"},
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.GetTaskPushConfig(ctx, key, &a2a.GetTaskPushConfigRequest{TaskID: sent.ID, ID: "p"})
	if err != nil || cmp.Diff(push, again) != "" || push.ID != "p" || push.Token != "tok" || push.Auth.Credentials != "cred" {
		t.Error(err, push, again)
	}
	if all, err := c.ListTaskPushConfigs(ctx, key, &a2a.ListTaskPushConfigRequest{TaskID: sent.ID}); err != nil || len(all) != 1 {
		t.Error(all, err)
	}
	if err := c.DeleteTaskPushConfig(ctx, key, &a2a.DeleteTaskPushConfigRequest{TaskID: sent.ID, ID: "p"}); err != nil {
		t.Error(err)
	}
	if card, err := c.GetExtendedAgentCard(ctx, key, &a2a.GetExtendedAgentCardRequest{}); err != nil || card.Name != "Bot" {
		t.Error(card, err)
	}
}

// What other clients of the binding send.
func TestV03RESTForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	// Without a name a task has one configuration, which bears its own.
	w.rpc(ada, "bot", "tasks/send", hello("t-1")).state("submitted")
	for body, id := range map[string]string{
		`{"name":"tasks/t-1/pushNotificationConfigs/p-1","pushNotificationConfig":{"url":"https://x.example"}}`:                 "p-1",
		`{"parent":"tasks/t-1","configId":"p-2","config":{"pushNotificationConfig":{"url":"https://x.example"}}}`:               "p-2",
		`{"pushNotificationConfig":{"id":"p-3","url":"https://x.example","authentication":{"schemes":["Bearer","Basic"]}}}`:     "p-3",
		`{"parent":"tasks/t-1","config_id":"","config":{"push_notification_config":{"url":"https://x.example","token":"tok"}}}`: "t-1",
	} {
		a := w.do(ada, "POST", "/a2a/bot/v1/tasks/t-1/pushNotificationConfigs", body)
		if a.Status != http.StatusOK || !strings.Contains(a.Body, `"name":"tasks/t-1/pushNotificationConfigs/`+id+`"`) {
			t.Errorf("%s: %d %s", body, a.Status, a.Body)
		}
	}
	a := w.do(ada, "POST", "/a2a/bot/v1/message:send", `{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"x"}],"taskId":"","contextId":"ctx-1"},
		"configuration":{"blocking":false,"historyLength":1}}`)
	if a.Status != http.StatusOK || !strings.HasPrefix(a.Body, `{"task":{"id":`) || !strings.Contains(a.Body, `"content":[{"text":"x"}]`) ||
		!strings.Contains(a.Body, `"contextId":"ctx-1"`) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := w.do(ada, "GET", "/a2a/bot/v1/tasks?status=TASK_STATE_CANCELLED&contextId=ctx-1", ""); a.Body != `{"tasks":[]}` {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := w.do(ada, "GET", "/a2a/bot/v1/tasks/t-1?historyLength=0", ""); a.Status != http.StatusOK || strings.Contains(a.Body, "history") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := w.do(ada, "POST", "/a2a/bot/v1/message:send", `{"message":{"messageId":"m","role":"ROLE_USER"}}`); a.Status != http.StatusBadRequest {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := w.do(ada, "GET", "/a2a/bot/v1/tasks/none", ""); a.Status != http.StatusNotFound {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// In the proto of 0.3 the message is called request, and ProtoJSON allows that name.
func TestV03RESTTakesTheProtoName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	const m = `{"messageId":"m-1","role":"ROLE_USER","content":[{"text":"hello"}]}`
	w.do(ada, "POST", "/a2a/echo/v1/message:send", `{"request":`+m+`,"configuration":{"blocking":true}}`).contains(`"TASK_STATE_COMPLETED"`)
	w.do(ada, "POST", "/a2a/echo/v1/message:send", `{"message":`+m+`,"configuration":{"blocking":true}}`).contains(`"TASK_STATE_COMPLETED"`)
	for _, both := range []string{`{"request":` + m + `,"message":` + m + `}`, `{"message":` + m + `,"request":` + m + `}`} {
		a := w.do(ada, "POST", "/a2a/echo/v1/message:send", both)
		if a.contains("another name of message"); a.Status != 400 {
			t.Error(a.Status, a.Body)
		}
	}
	w.do(ada, "POST", "/a2a/echo/message:send", `{"request":`+m+`}`).contains(`"message"`, "is required") // 1.0 has no such name
}
