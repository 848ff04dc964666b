package e2e

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

func goPush(t *testing.T, c *goClient) {
	r := newReceiver(t)
	task := c.start(t, "stay")
	ctx := t.Context()
	set, err := c.CreateTaskPushConfig(ctx, &a2a.PushConfig{
		TaskID: task.ID, ID: "mine", URL: r.url, Token: "a-token",
		Auth: &a2a.PushAuthInfo{Scheme: "Bearer", Credentials: "secret"},
	})
	if err != nil || set.ID != "mine" || set.URL != r.url {
		t.Fatalf("configuration = %+v, %v; want mine at %s", set, err, r.url)
	}
	got, err := c.GetTaskPushConfig(ctx, &a2a.GetTaskPushConfigRequest{TaskID: task.ID, ID: "mine"})
	if err != nil || got.URL != r.url || got.Token != "a-token" || got.Auth == nil || got.Auth.Scheme != "Bearer" ||
		got.TaskID != task.ID {
		t.Errorf("configuration reads %+v, %v; want URL %s, a-token and Bearer for %s", got, err, r.url, task.ID)
	}
	if _, err := c.CreateTaskPushConfig(ctx,
		&a2a.PushConfig{TaskID: task.ID, ID: "other", URL: r.url + "/other"}); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteTaskPushConfig(ctx, &a2a.DeleteTaskPushConfigRequest{TaskID: task.ID, ID: "other"}); err != nil {
		t.Errorf("delete: %v", err)
	}
	list, err := c.ListTaskPushConfigs(ctx, &a2a.ListTaskPushConfigRequest{TaskID: task.ID})
	if err != nil || len(list) != 1 || list[0].ID != "mine" {
		t.Errorf("configurations = %+v, %v; want only mine", list, err)
	}
	c.tell(t, task, "finish")
	c.receives(t, r, task.ID, "a-token", "Bearer secret")
}

// goPushWithMessage names the receiver when the task is sent.
func goPushWithMessage(t *testing.T, c *goClient) {
	r := newReceiver(t)
	task := c.send(t, &a2a.SendMessageRequest{Message: say("kinds"), Config: &a2a.SendMessageConfig{
		PushConfig: &a2a.PushConfig{URL: r.url, Token: "another-token"},
	}})
	c.receives(t, r, task.ID, "another-token", "")
}

// receives waits for the push of the task's end. Every push must be signed and have the form of
// its version: an event in 1.0, the task in 0.3.
func (c *goClient) receives(t *testing.T, r *receiver, id a2a.TaskID, token, authorization string) {
	t.Helper()
	key := c.stage.signingKey(t)
	r.until(t, "the end of task "+string(id), func(p pushed) bool {
		if err := p.verify(key, token, authorization); err != nil {
			t.Fatal(err)
		}
		if !c.v1 {
			var task struct {
				ID, Kind string
				Status   struct{ State string }
			}
			if err := json.Unmarshal(p.body, &task); err != nil || task.ID != string(id) || task.Kind != "task" {
				t.Fatalf("push = %s, %v; want task %s", p.body, err, id)
			}
			return task.Status.State == "completed"
		}
		var event a2a.StreamResponse
		if err := json.Unmarshal(p.body, &event); err != nil || event.TaskInfo().TaskID != id {
			t.Fatalf("push = %s, %v; want an event of task %s", p.body, err, id)
		}
		status, ok := event.Event.(*a2a.TaskStatusUpdateEvent)
		return ok && status.Status.State == a2a.TaskStateCompleted
	})
}

// goPending lists cases in which the SDK reports an internal error, because it identifies the
// error by a reason or code that the server does not use. Everything else about these cases must
// be right.
var goPending = map[string][]string{
	"v1-grpc": {"a version from the future"}, // UNIMPLEMENTED, as the text of 1.0 says
}

func (c *goClient) pending(what string) bool { return slices.Contains(goPending[c.name], what) }

// goMistakes: each mistake returns the SDK's error for it.
func goMistakes(t *testing.T, c *goClient) {
	ctx := t.Context()
	done := c.order(t, "kinds")
	further := func() *a2a.SendMessageRequest {
		return &a2a.SendMessageRequest{Message: a2a.NewMessageForTask(a2a.MessageRoleUser, done, a2a.NewTextPart("more"))}
	}
	odd := c.dial(t, c.stage, c.stage.key, withParam{name: "A2A-Version", value: "9.9"})
	streamed := func(c *goClient, id a2a.TaskID) error {
		for _, err := range c.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: id}) {
			return err
		}
		return errors.New("the stream is empty")
	}
	for _, row := range []struct {
		what string
		want error
		do   func() error
	}{
		{"get an unknown task", a2a.ErrTaskNotFound, func() error {
			_, err := c.GetTask(ctx, &a2a.GetTaskRequest{ID: "nobody"})
			return err
		}},
		{"cancel an unknown task", a2a.ErrTaskNotFound, func() error {
			_, err := c.CancelTask(ctx, &a2a.CancelTaskRequest{ID: "nobody"})
			return err
		}},
		{"follow an unknown task", a2a.ErrTaskNotFound, func() error { return streamed(c, "nobody") }},
		{"go on with an unknown task", a2a.ErrTaskNotFound, func() error {
			m := say("more")
			m.TaskID = "nobody"
			_, err := c.SendMessage(ctx, &a2a.SendMessageRequest{Message: m})
			return err
		}},
		{"push of an unknown task", a2a.ErrTaskNotFound, func() error {
			_, err := c.CreateTaskPushConfig(ctx, &a2a.PushConfig{TaskID: "nobody", URL: "http://127.0.0.1:1/"})
			return err
		}},
		{"cancel a finished task", a2a.ErrTaskNotCancelable, func() error {
			_, err := c.CancelTask(ctx, &a2a.CancelTaskRequest{ID: done.ID})
			return err
		}},
		{"go on with a finished task", a2a.ErrUnsupportedOperation, func() error {
			_, err := c.SendMessage(ctx, further())
			return err
		}},
		{"go on with a finished task, streaming", a2a.ErrUnsupportedOperation, func() error {
			for _, err := range c.SendStreamingMessage(ctx, further()) {
				return err
			}
			return errors.New("the stream is empty")
		}},
		{"a message without parts", a2a.ErrInvalidParams, func() error {
			_, err := c.SendMessage(ctx, &a2a.SendMessageRequest{Message: &a2a.Message{
				ID: "x", Role: a2a.MessageRoleUser,
				Parts: a2a.ContentParts{},
			}})
			return err
		}},
		{"a version from the future", a2a.ErrVersionNotSupported, func() error {
			_, err := odd.GetTask(ctx, &a2a.GetTaskRequest{ID: done.ID})
			return err
		}},
	} {
		if err := row.do(); !errors.Is(err, row.want) && (err == nil || !c.pending(row.what)) {
			t.Errorf("%s: %v (%T); want %v", row.what, err, err, row.want)
		}
	}
}

// goKeys: calls with no key, or the wrong one, are refused.
func goKeys(t *testing.T, c *goClient) {
	for _, row := range []struct {
		what, key, status string
		want              error
	}{
		{"no key", "", "401", a2a.ErrUnauthenticated},
		{"a key that may not call", c.stage.none, "403", a2a.ErrUnauthorized},
	} {
		_, err := c.dial(t, c.stage, row.key).SendMessage(t.Context(), &a2a.SendMessageRequest{Message: say("kinds")})
		// Over JSON-RPC the SDK keeps only the status of such a response.
		if !errors.Is(err, row.want) && (err == nil || !strings.Contains(err.Error(), row.status) && !c.pending(row.what)) {
			t.Errorf("%s: got %v (%T), want %v or status %s", row.what, err, err, row.want, row.status)
		}
	}
	own := c.dial(t, c.stage, c.stage.only)
	wantTask(t, own.order(t, "kinds"), a2a.TaskStateCompleted, "plain")
}
