package a2a

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-dev/parley/internal/dispatch"
	"github.com/parley-dev/parley/internal/task"
)

// drive brings a new task of bot into a state, and returns the lease if there is one.
func (w *world) drive(secret string, p dispatch.Post, id string, to task.State) string {
	w.tb.Helper()
	w.rpc(secret, "bot", "tasks/send", hello(id)).state("submitted")
	switch to {
	case task.Submitted:
		return ""
	case task.Canceled:
		w.rpc(secret, "bot", "tasks/cancel", `{"id":"`+id+`"}`).state("canceled")
		return ""
	}
	lease := w.claim(p)
	if to != task.Working {
		w.report(p, lease, task.Report{State: to})
	}
	w.rpc(secret, "bot", "tasks/get", `{"id":"`+id+`"}`).state(string(to))
	return lease
}

// Section 3.2 of the specification and the table of the design: what may follow each state, in
// every way to cause it, and nothing else.
func TestEveryStateAndWhatMayFollowIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	p := w.post("bot")
	for _, from := range task.States {
		for _, try := range []string{
			"cancel", "turn", "working", "completed", "failed", "input-required", "auth-required",
			"rejected", "submitted", "canceled",
		} {
			id := string(from) + "-" + try
			lease := w.drive(ada, p, id, from)
			var want string
			switch {
			case try == "cancel" && !from.Terminal():
				w.rpc(ada, "bot", "tasks/cancel", `{"id":"`+id+`"}`).state("canceled")
				want = "canceled"
			case try == "cancel":
				w.rpc(ada, "bot", "tasks/cancel", `{"id":"`+id+`"}`).fails(200, codeNotCancelable)
			case try == "turn":
				a := w.rpc(ada, "bot", "tasks/send", strings.Replace(hello(id), `"hello"`, `"more"`, 1))
				switch {
				case from.Terminal():
					a.fails(200, codeUnsupported)
				case from.Interrupted():
					a.state("working")
					want = "working"
				default:
					a.state(string(from))
				}
			default:
				_, err := w.tasks.Report(context.Background(), p, lease, task.Report{State: task.State(try)})
				allowed := from == task.Working && try != "submitted" && try != "canceled"
				if (err == nil) != allowed {
					t.Errorf("report of %s on a task that is %s: err = %v, want allowed: %v", try, from, err, allowed)
				}
				if allowed {
					want = try
				}
			}
			if want == "" {
				want = string(from)
			}
			w.rpc(ada, "bot", "tasks/get", `{"id":"`+id+`"}`).state(want)
			if !task.State(want).Terminal() { // so that the next claim finds its own task
				w.rpc(ada, "bot", "tasks/cancel", `{"id":"`+id+`"}`).state("canceled")
			}
		}
	}
}

func TestASendThatIsRepeatedIsOneTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	first := w.rpc(ada, "bot", "tasks/send", hello("t-1")).state("submitted")
	more := strings.Replace(hello("t-1"), `{"id"`, `{"historyLength":9,"id"`, 1)
	again := w.rpc(ada, "bot", "tasks/send", more).state("submitted")
	if first.Result.ContextID != again.Result.ContextID || len(again.Result.History) != 1 {
		t.Errorf("got %+v, want the same task with one message", again)
	}
	other := w.rpc(ada, "bot", "tasks/send", strings.Replace(hello("t-1"), `"hello"`, `"more"`, 1)).state("submitted")
	got := w.rpc(ada, "bot", "tasks/get", `{"id":"t-1","historyLength":9}`).state("submitted")
	if other.Result.ContextID != first.Result.ContextID || len(got.Result.History) != 2 {
		t.Errorf("got %+v, want the same context and two messages", got)
	}
}

// A task belongs to its sender. For everyone else its id is free, and no response reveals that it
// is used.
func TestAnothersTaskLooksLikeNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	mine := w.rpc(ada, "echo", "tasks/send", hello("t-1"), "Prefer", "wait=5").state("completed")
	others := map[string]string{
		"another user":              w.caller("user:bob"),
		"the same id, another kind": w.caller("service:ada"),
		"the same id, another org":  w.key("globex", "user:ada", "svc:a2a:write"),
		"an admin":                  w.key("acme", "user:boss", "svc:a2a:write", "svc:admin:admin"),
	}
	for name, key := range others {
		for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/resubscribe"} {
			got := w.rpc(key, "echo", method, `{"id":"t-1"}`, "X-Request-Id", "r").fails(200, codeNoTask)
			none := w.rpc(key, "echo", method, `{"id":"t-none"}`, "X-Request-Id", "r").fails(200, codeNoTask)
			if got.Error.Message != none.Error.Message || string(got.Error.Data) != string(none.Error.Data) {
				t.Errorf("%s, %s: error = %+v, want that of an unknown id: %+v", name, method, got.Error, none.Error)
			}
		}
		params := strings.Replace(hello("t-1"), `"hello"`, `"mine"`, 1)
		own := w.rpc(key, "echo", "tasks/send", params, "Prefer", "wait=5").state("completed")
		if own.Result.ContextID == mine.Result.ContextID {
			t.Errorf("%s: context = that of the other sender, want another", name)
		}
		a := w.rpc(key, "echo", "tasks/get", `{"id":"t-1","historyLength":9}`)
		if !strings.Contains(a.Body, "mine") || strings.Contains(a.Body, "hello") {
			t.Errorf("%s: got %s, want the caller's own task", name, a.Body)
		}
	}
	// A second key of the same principal is the same principal.
	w.rpc(w.caller("user:ada"), "echo", "tasks/get", `{"id":"t-1"}`).state("completed")
	// Ids are free for each agent.
	w.rpc(ada, "bot", "tasks/get", `{"id":"t-1"}`).fails(200, codeNoTask)
}

func TestAKeyReachesOnlyItsAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	get := envelope("tasks/get", `{"id":"x"}`)
	one := w.key("acme", "service:one", "svc:a2a:write", "agent:bot")
	for name, c := range map[string]struct {
		key, path string
		status    int
		code      string
	}{
		"its own":         {one, "/a2a/bot", 200, ""},
		"with a slash":    {one, "/a2a/bot/", 200, ""},
		"another":         {one, "/a2a/other", 403, "auth.agent_out_of_scope"},
		"a public one":    {one, "/a2a/echo", 403, "auth.agent_out_of_scope"},
		"one that is not": {one, "/a2a/nobody", 403, "auth.agent_out_of_scope"},
		"all":             {w.key("acme", "service:all", "svc:a2a:write", "agent:*"), "/a2a/other", 200, ""},
		"unrestricted":    {w.caller("service:un"), "/a2a/other", 200, ""},
		"two": {
			w.key("acme", "service:two", "svc:a2a:write", "agent:bot", "agent:echo"), "/a2a/echo", 200, "",
		},
		"another org's": {w.key("globex", "service:x", "svc:a2a:write"), "/a2a/bot", 404, "resource.not_found"},
		"another org's, all": {
			w.key("globex", "service:x", "svc:a2a:write", "agent:*"), "/a2a/bot", 404, "resource.not_found",
		},
		"a public, abroad": {w.key("globex", "service:x", "svc:a2a:write"), "/a2a/echo", 200, ""},
		"no scope": {
			w.key("acme", "service:no", "agent:bot", "svc:tasks:read"), "/a2a/bot", 403, "auth.scope_missing",
		},

		"upper case":         {one, "/a2a/BOT", 404, "resource.not_found"},
		"encoded":            {one, "/a2a/%62ot", 404, "resource.not_found"},
		"another, encoded":   {one, "/a2a/%6fther", 404, "resource.not_found"},
		"padded":             {one, "/a2a/bot%20", 404, "resource.not_found"},
		"padded in front":    {one, "/a2a/%20other", 404, "resource.not_found"},
		"a tab":              {one, "/a2a/other%09", 404, "resource.not_found"},
		"NUL":                {one, "/a2a/other%00", 404, "resource.not_found"},
		"a dot behind":       {one, "/a2a/other.", 403, "auth.agent_out_of_scope"},
		"a dot in front":     {one, "/a2a/.other", 404, "resource.not_found"},
		"a path":             {one, "/a2a/bot%2F..%2Fother", 404, "resource.not_found"},
		"a slash, encoded":   {one, "/a2a/bot%2f", 404, "resource.not_found"},
		"two slashes":        {one, "/a2a//other", 404, "resource.not_found"},
		"up and down":        {one, "/a2a/bot/../other", 404, "resource.not_found"},
		"up, encoded":        {one, "/a2a/bot/%2e%2e/other", 404, "RESOURCE_NOT_FOUND"},
		"a semicolon":        {one, "/a2a/other;bot", 404, "resource.not_found"},
		"a comma":            {one, "/a2a/bot,other", 404, "resource.not_found"},
		"a star":             {one, "/a2a/*", 404, "resource.not_found"},
		"another alphabet":   {one, "/a2a/b%D0%BEt", 404, "resource.not_found"},
		"a query is no path": {one, "/a2a/other?agent=bot", 403, "auth.agent_out_of_scope"},
		"too long":           {one, "/a2a/" + strings.Repeat("a", 65), 404, "resource.not_found"},
	} {
		a := w.do(c.key, "POST", c.path, get)
		if a.Status != c.status || c.code != "" && !strings.Contains(a.Body, c.code) {
			t.Errorf("%s: %s: status = %d, want %d %s: %s", name, c.path, a.Status, c.status, c.code, a.Body)
		}
		if c.status == 200 {
			a.fails(200, codeNoTask)
		}
	}
}

// Every accepted spelling of a part, and its spelling in the response.
func TestPartsAreReadLiberallyAndWrittenStrictly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	for given, want := range map[string]string{
		`{"text":"x"}`: `{"type":"text","kind":"text","text":"x"}`,
		`{"type":"text","text":"x","file":null,"data":null}`:  `{"type":"text","kind":"text","text":"x"}`,
		`{"kind":"text","text":"","unknown":{}}`:              `{"type":"text","kind":"text","text":""}`,
		`{"data": {"a" : 1}}`:                                 `{"type":"data","kind":"data","data":{"a":1}}`,
		`{"kind":"data","data":[1, "\u00e9"],"metadata":{ }}`: `{"type":"data","kind":"data","data":[1,"\u00e9"],"metadata":{}}`,
		`{"kind":"file","file":{"bytes":"aGk","name":"n"}}`:   `{"type":"file","kind":"file","file":{"bytes":"aGk=","name":"n"}}`,
		`{"file":{"uri":"u:x","mime_type":"a/b"}}`:            `{"type":"file","kind":"file","file":{"uri":"u:x","mimeType":"a/b"}}`,
		`{"url":"u:x","filename":"n","mediaType":"a/b"}`:      `{"type":"file","kind":"file","file":{"uri":"u:x","name":"n","mimeType":"a/b"}}`,
		`{"raw":"-_8="}`: `{"type":"file","kind":"file","file":{"bytes":"+/8="}}`,
	} {
		a := w.rpc(ada, "echo", "tasks/send", `{"message":{"kind":"message","parts":[`+given+`]}}`, "Prefer", "wait=10")
		a.state("completed")
		if !strings.Contains(a.Body, `"parts":[`+want+`]`) {
			t.Errorf("%s: got %s, want the part %s", given, a.Body, want)
		}
	}
	for _, params := range []string{
		`{"task_id":"s-1","session_id":"ctx","history_length":1,"message":{"role":"ROLE_USER","message_id":"m","parts":[{"text":"x"}]}}`,
		`{"id":"s-2","message":{"contextId":"ctx","parts":[{"text":"x"}]}}`,
	} {
		r := w.rpc(ada, "echo", "tasks/send", params, "Prefer", "wait=10").state("completed")
		if r.Result.ContextID != "ctx" {
			t.Errorf("context = %q, want ctx", r.Result.ContextID)
		}
	}
	for params, pointer := range map[string]string{
		`{}`:                                        "/message",
		`{"message":null}`:                          "/message",
		`{"message":[]}`:                            "/message",
		`{"message":{}}`:                            "/message/parts",
		`{"message":{"parts":[]}}`:                  "/message/parts",
		`{"message":{"parts":{}}}`:                  "/message/parts",
		`{"message":{"parts":[1]}}`:                 "/message/parts/0",
		`{"message":{"parts":[{}]}}`:                "/message/parts/0/type",
		`{"message":{"parts":[{"text":"\u0000"}]}}`: "/message/parts/0/text",
		`{"message":{"parts":[{"type":"text","kind":"data","text":"x"}]}}`:                           "/message/parts/0/kind",
		`{"message":{"parts":[{"type":"file","file":{"bytes":"!"}}]}}`:                               "/message/parts/0/file/bytes",
		`{"message":{"parts":[{"type":"file","file":{}}]}}`:                                          "/message/parts/0/file",
		`{"message":{"parts":[{"text":"x"}],"role":"agent"}}`:                                        "/message/role",
		`{"message":{"parts":[{"text":"x"}],"metadata":[]}}`:                                         "/message/metadata",
		`{"message":{"parts":[{"text":"x"}],"messageId":"a\u0007"}}`:                                 "/message/messageId",
		`{"id":"` + strings.Repeat("x", 257) + `","message":{"parts":[{"text":"x"}]}}`:               "/id",
		`{"id":"","message":{"parts":[{"text":"x"}]}}`:                                               "/id",
		`{"contextId":7,"message":{"parts":[{"text":"x"}]}}`:                                         "/contextId",
		`{"metadata":"x","message":{"parts":[{"text":"x"}]}}`:                                        "/metadata",
		`{"historyLength":"one","message":{"parts":[{"text":"x"}]}}`:                                 "/historyLength",
		`{"message":{"parts":[` + strings.Repeat(`{"text":"x"},`, task.MaxParts) + `{"text":"x"}]}}`: "/message/parts",
	} {
		for _, method := range []string{"tasks/send", "tasks/sendSubscribe"} {
			r := w.rpc(ada, "echo", method, params).fails(200, codeInvalidParams)
			var data []struct{ Pointer, Detail string }
			err := json.Unmarshal(r.Error.Data, &data)
			if err != nil || len(data) != 1 || data[0].Pointer != pointer || data[0].Detail == "" {
				t.Errorf("%.200s: data = %s, want the pointer %s", params, r.Error.Data, pointer)
			}
		}
	}
}

func TestAMessageIsNoTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	params := `{"message":{"role":"user","parts":[{"type":"text","text":"psst"}]}}`
	a := w.rpc(ada, "bot", "message/send", params)
	var r struct {
		Result struct {
			Kind, ID string
			Accepted bool
			Status   *struct{}
		}
	}
	err := json.Unmarshal([]byte(a.Body), &r)
	if err != nil || r.Result.Kind != "ack" || !r.Result.Accepted || r.Result.Status != nil {
		t.Fatalf("got %s, %v, want an acknowledgement", a.Body, err)
	}
	w.rpc(ada, "bot", "tasks/get", `{"id":"`+r.Result.ID+`"}`).fails(200, codeNoTask)
	c, err := w.tasks.Claim(context.Background(), w.post("bot"),
		dispatch.ClaimRequest{Max: 0, Worker: "w", Capacity: 1})
	if err != nil || len(c.Messages) != 1 || c.Messages[0].ID != r.Result.ID {
		t.Errorf("claim = %+v, %v, want the message %s", c, err, r.Result.ID)
	}
	// With a messageId it is version 0.3, and makes a task.
	named := strings.Replace(params, `{"role"`, `{"messageId":"m-1","role"`, 1)
	named = strings.Replace(named, `{"message"`, `{"configuration":{"blocking":false},"message"`, 1)
	if a := w.rpc(ada, "bot", "message/send", named); !strings.Contains(a.Body, `"result":{"kind":"task"`) {
		t.Errorf("got %s, want a task", a.Body)
	}
}
