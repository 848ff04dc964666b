package a2a

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/task"
)

// official returns a world in which ada has a task of each kind: t-done, t-asks (waits for input),
// t-waits (for a worker) and t-live (to be canceled).
func official(t *testing.T) (w *world, ada string) {
	t.Helper()
	w = newWorld(t)
	ada = w.caller("user:ada")
	p := w.post("bot")
	w.rpc(ada, "bot", "tasks/send", `{"id":"t-done","contextId":"ctx-1","metadata":{"a":1},`+
		`"message":{"role":"user","messageId":"m-1",
		"parts":[{"text":"hello","mediaType":"text/markdown"}],"extensions":["urn:x"],`+
		`"referenceTaskIds":["t-0"]}}`).state("submitted")
	w.report(p, w.claim(p), task.Report{Artifacts: []task.ArtifactUpdate{
		{Artifact: task.Artifact{
			ID: "report", Name: "report.txt", Description: "What was found.",
			Parts: []task.Part{{Kind: task.TextPart, Text: "One. "}}, Extensions: []string{"urn:y"},
		}},
		{
			Artifact: task.Artifact{ID: "report", Parts: []task.Part{{Kind: task.TextPart, Text: "Two."}}},
			Append:   true, LastChunk: true,
		},
		{Artifact: task.Artifact{ID: "data", Parts: []task.Part{
			{Kind: task.DataPart, Data: []byte(`[1,null]`)},
			{Kind: task.FilePart, Name: "a.txt", MediaType: "text/plain", Bytes: []byte("hi")},
			{Kind: task.FilePart, URL: "https://example.com/b", Metadata: []byte(`{"c":1}`)},
		}}},
	}, State: task.Completed, Message: says("done")})
	w.rpc(ada, "bot", "tasks/send", hello("t-asks")).state("submitted")
	w.report(p, w.claim(p), task.Report{State: task.InputRequired, Message: says("Which one?")})
	w.rpc(ada, "bot", "tasks/send", hello("t-waits")).state("submitted")
	w.rpc(ada, "bot", "tasks/send", hello("t-live")).state("submitted")
	return w, ada
}

// v1Hello returns the params of a SendMessage; more are further members of the message.
func v1Hello(more string) string {
	return `{"message":{"messageId":"m-9","role":"ROLE_USER","parts":[{"text":"hello"}]` + more + `}}`
}

// atOnce lets a send return before its task rests.
func atOnce(params string) string {
	return strings.TrimSuffix(params, "}") + `,"configuration":{"returnImmediately":true}}`
}

// The golden files below v1, v03 and rest are the official protocol on the wire.
func TestTheOfficialWire(t *testing.T) {
	t.Parallel()
	w, ada := official(t)
	push := `{"taskId":"t-waits","id":"p-1","url":"https://example.com/hook","token":"s3cret",` +
		`"authentication":{"scheme":"Bearer","credentials":"c"}}`
	for _, c := range []struct {
		name, agent, method, params string
		headers                     []string
	}{
		{
			"v1/SendMessage", "echo", "SendMessage", v1Hello(`,"contextId":"ctx-7","metadata":{"b":2}`),
			[]string{"A2A-Version", "1.0"},
		},
		{
			"v1/SendMessage_snake_case", "echo", "SendMessage", `{"message":{"message_id":"m-9","context_id":"ctx-8",` +
				`"role":"ROLE_USER","parts":[{"data":{"x":1},"media_type":"application/json"}]},` +
				`"configuration":{"history_length":0}}`, nil,
		},
		{"v1/SendMessage_offline", "other", "SendMessage", v1Hello(""), nil},
		{"v1/SendMessage_at_once", "bot", "SendMessage", atOnce(v1Hello("")), nil},
		{"v1/SendMessage_further_turn", "bot", "SendMessage", atOnce(v1Hello(`,"taskId":"t-asks"`)), nil},
		{"v1/SendMessage_running_task", "bot", "SendMessage", atOnce(v1Hello(`,"taskId":"t-waits"`)), nil},
		{"v1/SendStreamingMessage", "echo", "SendStreamingMessage", v1Hello(""), nil},
		{"v1/GetTask", "bot", "GetTask", `{"id":"t-done"}`, nil},
		{"v1/GetTask_without_history", "bot", "GetTask", `{"id":"t-done","historyLength":0,"tenant":"bot"}`, nil},
		{"v1/ListTasks", "bot", "ListTasks", `{"pageSize":2,"historyLength":1,"includeArtifacts":true}`, nil},
		{"v1/ListTasks_none", "bot", "ListTasks", `{"contextId":"nothing"}`, nil},
		{
			"v1/ListTasks_state", "bot", "ListTasks",
			`{"status":"TASK_STATE_COMPLETED","statusTimestampAfter":"2020-01-01T00:00:00Z"}`, nil,
		},
		{"v1/CancelTask", "bot", "CancelTask", `{"id":"t-live","metadata":{"why":"late"}}`, nil},
		{"v1/CreatePush", "bot", "CreateTaskPushNotificationConfig", push, nil},
		{"v1/GetPush", "bot", "GetTaskPushNotificationConfig", `{"taskId":"t-waits","id":"p-1"}`, nil},
		{"v1/ListPush", "bot", "ListTaskPushNotificationConfigs", `{"taskId":"t-waits"}`, nil},
		{"v1/ListPush_none", "bot", "ListTaskPushNotificationConfigs", `{"task_id":"t-asks"}`, nil},
		{"v1/GetExtendedAgentCard", "bot", "GetExtendedAgentCard", `{}`, nil},
		{"v1/error_no_task", "bot", "GetTask", `{"id":"t-none"}`, nil},
		{"v1/error_no_such_task_to_continue", "bot", "SendMessage", v1Hello(`,"taskId":"t-none"`), nil},
		{"v1/error_context", "bot", "SendMessage", v1Hello(`,"taskId":"t-waits","contextId":"ctx-else"`), nil},
		{"v1/error_not_cancelable", "bot", "CancelTask", `{"id":"t-done"}`, nil},
		{"v1/error_terminal", "bot", "SendMessage", v1Hello(`,"taskId":"t-done"`), nil},
		{"v1/error_subscribe_terminal", "bot", "SubscribeToTask", `{"id":"t-done"}`, nil},
		{
			"v1/error_params", "bot", "SendMessage",
			`{"message":{"role":"ROLE_AGENT","parts":[]},"configuration":{"historyLength":-1}}`, nil,
		},
		{
			"v1/error_no_message_id", "bot", "SendMessage",
			`{"message":{"role":"ROLE_USER","parts":[{"text":"x"}]}}`, nil,
		},
		{
			"v1/error_list", "bot", "ListTasks",
			`{"status":"asleep","pageSize":-1,"pageToken":7,"statusTimestampAfter":"noon"}`, nil,
		},
		{"v1/error_page_token", "bot", "ListTasks", `{"pageToken":"x"}`, nil},
		{"v1/error_tenant", "bot", "GetTask", `{"id":"t-done","tenant":"other"}`, nil},
		{
			"v1/error_push_url", "bot", "CreateTaskPushNotificationConfig",
			`{"taskId":"t-waits","url":"https://refused.example"}`, nil,
		},
		{"v1/error_content_type", "bot", "GetTask", `{"id":"t-done"}`, []string{"Content-Type", "text/plain"}},
		{"v1/error_version", "bot", "GetTask", `{"id":"t-done"}`, []string{"A2A-Version", "2.1"}},

		{
			"v03/message_send", "echo", "message/send",
			strings.Replace(v1Hello(`,"kind":"message"`), "ROLE_USER", "user", 1), nil,
		},
		{
			"v03/message_stream", "echo", "message/stream",
			strings.Replace(v1Hello(`,"kind":"message"`), "ROLE_USER", "user", 1), nil,
		},
		{"v03/tasks_get", "bot", "tasks/get", `{"id":"t-done","historyLength":5}`, nil},
		{"v03/tasks_resubscribe", "bot", "tasks/resubscribe", `{"id":"t-done"}`, nil},
		{
			"v03/push_set", "bot", "tasks/pushNotificationConfig/set",
			`{"taskId":"t-asks","pushNotificationConfig":{"id":"p-3","url":"https://example.com/old",` +
				`"authentication":{"schemes":["Basic"],"credentials":"eA=="}}}`, nil,
		},
		{
			"v03/push_get", "bot", "tasks/pushNotificationConfig/get",
			`{"id":"t-asks","pushNotificationConfigId":"p-3"}`, nil,
		},
		{"v03/push_list", "bot", "tasks/pushNotificationConfig/list", `{"id":"t-asks"}`, nil},
		{
			"v03/push_delete", "bot", "tasks/pushNotificationConfig/delete",
			`{"id":"t-asks","pushNotificationConfigId":"p-3"}`, nil,
		},
		{"v03/push_list_none", "bot", "tasks/pushNotificationConfig/list", `{"id":"t-asks"}`, nil},
		{"v03/extended_card", "bot", "agent/getAuthenticatedExtendedCard", `{}`, nil},
		{
			"v03/error_no_task", "bot", "message/send",
			strings.Replace(v1Hello(`,"taskId":"t-none"`), "ROLE_USER", "user", 1), nil,
		},
		{
			"v03/error_terminal", "bot", "message/stream",
			strings.Replace(v1Hello(`,"taskId":"t-done"`), "ROLE_USER", "user", 1), nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := envelope(c.method, c.params)
			a := w.do(ada, "POST", "/a2a/"+c.agent, body, c.headers...)
			golden(t, c.name+".txt", exchange(t, "/a2a/"+c.agent, body, c.headers, a))
		})
	}
}

func TestTheRESTWire(t *testing.T) {
	t.Parallel()
	w, ada := official(t)
	for i, c := range []struct {
		name, verb, target, body string
		headers                  []string
	}{
		{
			"send", "POST", "/a2a/echo/message:send", v1Hello(""),
			[]string{"A2A-Version", "1.0", "Content-Type", "application/a2a+json"},
		},
		{"send_with_tenant", "POST", "/a2a/echo/echo/message:send", v1Hello(""), nil},
		{"stream", "POST", "/a2a/echo/message:stream", v1Hello(""), nil},
		{"get", "GET", "/a2a/bot/tasks/t-done?historyLength=0", "", nil},
		{"list", "GET", "/a2a/bot/tasks?pageSize=1&status=working&includeArtifacts=false", "", nil},
		{"list_page", "GET", "/a2a/bot/tasks?pageSize=1", "", nil},
		{"cancel", "POST", "/a2a/bot/tasks/t-live:cancel", "", nil},
		{
			"push_create", "POST", "/a2a/bot/tasks/t-waits/pushNotificationConfigs",
			`{"id":"p-1","url":"https://example.com/hook"}`, nil,
		},
		{"push_get", "GET", "/a2a/bot/tasks/t-waits/pushNotificationConfigs/p-1", "", nil},
		{"push_list", "GET", "/a2a/bot/tasks/t-waits/pushNotificationConfigs", "", nil},
		{"push_delete", "DELETE", "/a2a/bot/tasks/t-waits/pushNotificationConfigs/p-1", "", nil},
		{"card", "GET", "/a2a/bot/extendedAgentCard", "", nil},
		{"error_no_task", "GET", "/a2a/bot/tasks/t-none", "", nil},
		{"error_terminal", "POST", "/a2a/bot/message:send", v1Hello(`,"taskId":"t-done"`), nil},
		{"error_subscribe_terminal", "GET", "/a2a/bot/tasks/t-done:subscribe", "", nil},
		{"error_not_cancelable", "POST", "/a2a/bot/tasks/t-done:cancel", "{}", nil},
		{"error_query", "GET", "/a2a/bot/tasks?pageSize=many&includeArtifacts=perhaps", "", nil},
		{"error_parse", "POST", "/a2a/bot/message:send", `{"message":`, nil},
		{"error_duplicate", "POST", "/a2a/bot/message:send", `{"message":1,"message":2}`, nil},
		{"error_array", "POST", "/a2a/bot/message:send", `[]`, nil},
		{"error_content_type", "POST", "/a2a/bot/message:send", v1Hello(""), []string{"Content-Type", "text/plain"}},
		{"error_version", "GET", "/a2a/bot/tasks?A2A-Version=7.0", "", nil},
		{"error_method", "DELETE", "/a2a/bot/tasks/t-done", "", nil},
		{"error_address", "GET", "/a2a/bot/nothing/here", "", nil},
		{"error_agent", "GET", "/a2a/nobody/tasks", "", nil},
	} {
		t.Run(fmt.Sprintf("%02d_%s", i, c.name), func(t *testing.T) {
			a := w.do(ada, c.verb, c.target, c.body, c.headers...)
			text := strings.Replace(exchange(t, c.target, c.body, c.headers, a), "POST ", c.verb+" ", 1)
			golden(t, "rest/"+c.name+".txt", text)
		})
	}
	w.do("", "GET", "/a2a/bot/tasks", "").status(401)
	w.do(w.key("acme", "user:bea", "svc:tasks:read"), "GET", "/a2a/bot/tasks", "").status(403)
	w.do(w.key("globex", "user:eve", "svc:a2a:write"), "GET", "/a2a/bot/tasks", "").status(404)
	w.do(w.caller("user:bea"), "GET", "/a2a/bot/tasks/t-done", "").status(404)
	w.do(ada, "GET", "/a2a/%62ot/tasks", "").status(404)
	w.do(ada, "POST", "/a2a/bot/message:send", `{"x":"`+strings.Repeat("x", maxBody)+`"}`).status(413)
}

// status fails the test unless the response has the status.
func (a *answer) status(want int) {
	a.tb.Helper()
	if a.Status != want {
		a.tb.Errorf("status = %d, want %d: %s", a.Status, want, a.Body)
	}
}
