package a2a

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	v03pb "github.com/a2aproject/a2a-go/a2apb"
	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-dev/parley/internal/task"
)

// TestTheSDKReadsWhatWeWrite decodes responses of version 1.0 with the types of the official SDK
// and compares their encoding with the response.
func TestTheSDKReadsWhatWeWrite(t *testing.T) {
	t.Parallel()
	w, ada := official(t)
	same := func(name, text string, into any) {
		t.Helper()
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("%s: %v in %s", name, err, text)
			return
		}
		again, err := json.Marshal(into)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(normal(t, []byte(text)), normal(t, again)); diff != "" {
			t.Errorf("%s (- ours, + the SDK's):\n%s", name, diff)
		}
	}
	for _, id := range []string{"t-done", "t-asks", "t-waits"} {
		same(id, w.do(ada, "GET", "/a2a/bot/tasks/"+id, "").Body, &sdk.Task{})
	}
	same("send", w.do(ada, "POST", "/a2a/echo/message:send", v1Hello(`,"metadata":{"x":1}`)).Body,
		&sdk.StreamResponse{})
	same("list", w.do(ada, "GET", "/a2a/bot/tasks?includeArtifacts=true&historyLength=9", "").Body,
		&sdk.ListTasksResponse{})
	push := `{"taskId":"t-waits","id":"p-1","url":"https://example.com/hook","token":"s3cret",` +
		`"authentication":{"scheme":"Bearer","credentials":"c"}}`
	same("push", w.do(ada, "POST", "/a2a/bot/tasks/t-waits/pushNotificationConfigs", push).Body, &sdk.PushConfig{})
	same("card", w.do(ada, "GET", "/a2a/bot/.well-known/agent-card.json", "",
		"A2A-Version", "1.0", "User-Agent", goAgent).Body, &sdk.AgentCard{})
	for i, e := range parseEvents(w.do(ada, "POST", "/a2a/echo/message:stream", v1Hello("")).Body) {
		same(fmt.Sprint("event ", i), e.Data, &sdk.StreamResponse{})
	}
}

// normal returns JSON as values, without what does not matter: empty lists, zeros, and the
// precision of times.
func normal(tb testing.TB, text []byte) any {
	tb.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		tb.Fatal(err)
	}
	return clean(v)
}

func clean(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if e = clean(e); e != nil {
				out[k] = e
			}
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = clean(v[i])
		}
	case string:
		if v == "" {
			return nil
		}
		if times.MatchString(v) || strings.HasPrefix(v, "20") && strings.HasSuffix(v, "Z") {
			return "time"
		}
	case bool:
		if !v {
			return nil
		}
	}
	return v
}

func TestASendWaitsUntilTheTaskRests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, p := w.caller("user:ada"), w.post("bot")
	w.do(ada, "POST", "/a2a/bot/message:send", atOnce(v1Hello(""))).contains(`"TASK_STATE_SUBMITTED"`)
	first := w.claim(p) // now the agent has a worker
	done := make(chan *answer)
	go func() { done <- w.rpc(ada, "bot", "SendMessage", v1Hello("")) }()
	w.report(p, w.claim(p), task.Report{State: task.InputRequired, Message: says("Which?")})
	(<-done).contains(`"TASK_STATE_INPUT_REQUIRED"`, `"Which?"`)
	w.report(p, first, task.Report{State: task.Completed})
}

// A worker may reply with a message instead of a task; a client that knows the task's id gets the
// task.
func TestAReplyIsAMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, p := w.caller("user:ada"), w.post("bot")
	w.do(ada, "POST", "/a2a/bot/message:send", atOnce(v1Hello(""))).contains(`"task"`)
	w.report(p, w.claim(p), task.Report{State: task.Completed})
	old := strings.Replace(v1Hello(""), "ROLE_USER", "user", 1)
	for _, c := range []struct{ method, params, want string }{
		{"SendMessage", v1Hello(`,"contextId":"ctx-1"`), `"result":{"message":{"messageId":"m-`},
		{"message/send", old, `"result":{"kind":"message","messageId":"m-`},
		{"tasks/send", hello("t-9"), `"result":{"id":"t-9"`},
	} {
		done := make(chan *answer)
		go func() { done <- w.rpc(ada, "bot", c.method, c.params, "Prefer", "wait=30") }()
		w.report(p, w.claim(p), task.Report{State: task.Completed, Message: says("42"), Reply: true})
		a := <-done
		a.contains(c.want, `"42"`)
		if c.method != "tasks/send" && !strings.Contains(a.Body, `"taskId":"`) { // so that it can be read later
			t.Errorf("got %s, want a taskId", a.Body)
		}
	}
	old = `{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"hello"}]},` +
		`"configuration":{"blocking":true}}`
	only, conn := w.key("acme", "user:ada", "svc:a2a:write", "agent:bot"), dial(t, w.h2c())
	for name, send := range map[string]func() string{
		"0.3 HTTP+JSON": func() string { return w.do(ada, "POST", "/a2a/bot/v1/message:send", old).Body },
		"gRPC": func() string {
			r, err := a2apb.NewA2AServiceClient(conn).SendMessage(as(t.Context(), only), protoSend("", "hello"))
			return fmt.Sprint(r.GetMessage().GetTaskId(), r.GetMessage().GetParts(), err)
		},
		"0.3 gRPC": func() string {
			m := &v03pb.Message{
				MessageId: "m", Role: v03pb.Role_ROLE_USER,
				Parts: []*v03pb.Part{{Part: &v03pb.Part_Text{Text: "hello"}}},
			}
			r, err := v03pb.NewA2AServiceClient(conn).SendMessage(as(t.Context(), only), &v03pb.SendMessageRequest{
				Request: m, Configuration: &v03pb.SendMessageConfiguration{Blocking: true},
			})
			return fmt.Sprint(r.GetMsg().GetTaskId(), r.GetMsg().GetParts(), err)
		},
	} {
		done := make(chan string)
		go func() { done <- send() }()
		w.report(p, w.claim(p), task.Report{State: task.Completed, Message: says("42"), Reply: true})
		if a := <-done; !strings.Contains(a, `"42"`) || !ulids.MatchString(a) && !strings.Contains(a, `"taskId":"`) {
			t.Errorf("%s: got %s, want the reply with a taskId", name, a)
		}
	}
}

func (a *answer) contains(parts ...string) {
	a.tb.Helper()
	for _, part := range parts {
		if !strings.Contains(a.Body, part) {
			a.tb.Errorf("got %d %s, want %s in it", a.Status, a.Body, part)
		}
	}
}

// A stream that was cut continues after the event that was seen last, over each binding; a new
// stream begins with the task.
func TestAnOfficialStreamResumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, p := w.caller("user:ada"), w.post("bot")
	url := w.serve()
	var id string
	{
		a := w.do(ada, "POST", "/a2a/bot/message:send", atOnce(v1Hello("")))
		var r struct{ Task struct{ ID string } }
		if err := json.Unmarshal([]byte(a.Body), &r); err != nil {
			t.Fatal(err)
		}
		id = r.Task.ID
	}
	lease := w.claim(p)
	w.report(p, lease, task.Report{Message: says("begun")})
	w.report(p, lease, task.Report{Artifacts: []task.ArtifactUpdate{artifact("a", "1")}})
	rpc := envelope("SubscribeToTask", `{"id":"`+id+`"}`)
	read := func(target, body, last string, n int) []event {
		t.Helper()
		res := open(t, t.Context(), url+target, ada, body, last)
		r := bufio.NewReader(res.Body)
		var out []event
		for range n {
			e, err := nextEvent(r)
			if err != nil {
				t.Fatalf("err = %v after %v, want more events", err, out)
			}
			out = append(out, e)
		}
		_ = res.Body.Close()
		return out
	}
	for target, body := range map[string]string{"/a2a/bot": rpc, "/a2a/bot/tasks/" + id + ":subscribe": ""} {
		anew := read(target, body, "", 1)
		if anew[0].ID != "5" || !strings.Contains(anew[0].Data, `{"task":{"id":"`+id) ||
			!strings.Contains(anew[0].Data, `"artifactId":"a"`) {
			t.Errorf("%s: first events = %v, want the task", target, anew)
		}
		resumed := read(target, body, "3", 2)
		if resumed[0].ID != "4" || !strings.Contains(resumed[0].Data, "begun") || resumed[1].ID != "5" ||
			!strings.Contains(resumed[1].Data, "artifactUpdate") {
			t.Errorf("%s: resumed events = %v, want 4 and 5", target, resumed)
		}
	}
	w.report(p, lease, task.Report{State: task.InputRequired, Message: says("Which?")})
	// A task that waits for input can be followed: its end comes later.
	res := open(t, t.Context(), url+"/a2a/bot", ada, rpc, "")
	r := bufio.NewReader(res.Body)
	if e, err := nextEvent(r); err != nil || !strings.Contains(e.Data, "TASK_STATE_INPUT_REQUIRED") {
		t.Fatalf("got %v, %v, want TASK_STATE_INPUT_REQUIRED", e, err)
	}
	w.do(ada, "POST", "/a2a/bot/message:send", atOnce(v1Hello(`,"taskId":"`+id+`"`)))
	w.report(p, w.claim(p), task.Report{State: task.Completed})
	rest := parseEvents(readAll(t, r))
	if len(rest) != 3 || !strings.Contains(rest[2].Data, "TASK_STATE_COMPLETED") {
		t.Errorf("events = %v, want 3 up to TASK_STATE_COMPLETED", rest)
	}
	// Missed events of a finished task can still be read.
	missed := parseEvents(w.do(ada, "POST", "/a2a/bot", rpc, "Last-Event-ID", "8").Body)
	if len(missed) != 2 || missed[1].ID != rest[2].ID {
		t.Errorf("events = %v, want the last 2", missed)
	}
}

func TestCardsOfAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada, eve := w.caller("user:ada"), w.key("globex", "user:eve", "svc:a2a:write")
	only := w.key("acme", "service:partner", "svc:a2a:write", "agent:bot")
	none := w.do("", "GET", "/a2a/nobody/.well-known/agent-card.json", "").Body
	for _, path := range []string{"/.well-known/agent-card.json", "/.well-known/agent.json", "", "/"} {
		w.do("", "GET", "/a2a/echo"+path, "").contains(`"name":"Echo"`, `"url":"http://example.com/a2a/echo"`)
		w.do(eve, "GET", "/a2a/echo"+path, "").status(200)
		w.do(ada, "GET", "/a2a/bot"+path, "").contains(`"name":"Bot"`)
		w.do(eve, "GET", "/a2a/bot"+path, "").status(404)
		a := w.do("", "GET", "/a2a/bot"+path, "")
		a.status(404)
		cut := func(s string) string {
			return strings.ReplaceAll(requestIDs.ReplaceAllString(s, ""), "bot", "nobody")
		}
		if cut(a.Body) != cut(none) {
			t.Errorf("a private agent: got %s, want the response for an unknown one", a.Body)
		}
	}
	w.do(only, "GET", "/a2a/.well-known/agent-card.json", "").contains(`"name":"Bot"`)
	w.do(ada, "GET", "/a2a/.well-known/agent-card.json", "").status(404)
	w.do("", "GET", "/a2a/.well-known/agent-card.json", "").status(404)
	w.do("", "GET", "/a2a/echo/.well-known/agent-card.json", "", "A2A-Version", "9.0").status(400)
	v1 := w.do("", "GET", "/a2a/echo/.well-known/agent-card.json", "", "A2A-Version", "1.0").Body
	v03 := w.do("", "GET", "/a2a/echo/.well-known/agent-card.json", "", "A2A-Version", "0.3").Body
	for version, want := range map[string]string{
		"1.1": v1, "1.7": v1, "1.10.3": v1, "1": v1, "0.4": v03, "0.3.0": v03,
	} {
		a := w.do("", "GET", "/a2a/echo/.well-known/agent-card.json", "", "A2A-Version", version)
		if a.Status != 200 || a.Body != want {
			t.Errorf("version %s: got %d %s, want 200 %s", version, a.Status, a.Body, want)
		}
	}
	for _, version := range []string{"2.0", "0.2", "1.x", "1.-1", "01.0", "-1.0"} {
		w.do("", "GET", "/a2a/echo/.well-known/agent-card.json", "", "A2A-Version", version).status(400)
	}

	a := w.do("", "GET", "/a2a/echo/.well-known/agent-card.json", "")
	for _, name := range []string{"ETag", "Cache-Control"} {
		if a.Header.Get(name) == "" {
			t.Errorf("header %s = \"\", want a value", name)
		}
	}
	// The card may have changed although the agent has not.
	if v := a.Header.Get("Last-Modified"); v != "" {
		t.Errorf("Last-Modified = %s, want none", v)
	}
	later := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	w.do("", "GET", "/a2a/echo/.well-known/agent-card.json", "", "If-Modified-Since", later).status(200)
	w.do("", "GET", "/a2a/echo/.well-known/agent-card.json", "", "If-None-Match", a.Header.Get("ETag")).status(304)
	var old, both bytes.Buffer
	card03 := w.do("", "GET", "/a2a/echo/.well-known/agent-card.json", "", "A2A-Version", "0.3").Body
	_ = json.Indent(&old, []byte(card03), "", "  ")
	_ = json.Indent(&both, []byte(a.Body), "", "  ")
	golden(t, "v03/agent_card.json", old.String())
	golden(t, "agent_card.json", both.String())
}

// Clients of version 0.3 expect an error for a message that could not be sent, even without an id,
// and read the refusal of a stream only as an event.
func TestWhatClientsOf03Expect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	w.do(ada, "POST", "/a2a/bot", `{"jsonrpc":"2.0","method":"message/ssend","params":{}}`).fails(200, codeNoMethod)
	w.do(ada, "POST", "/a2a/bot", `{"jsonrpc":"2.0","method":"message/send","params":{"":"x"}}`).
		fails(200, codeInvalidParams)
	w.do(ada, "POST", "/a2a/bot", `{"jsonrpc":"2.0","method":"foobar"}`).status(204)
	w.do(ada, "POST", "/a2a/bot", `[{"jsonrpc":"2.0","method":"message/ssend"}]`).status(204)
	w.rpc(ada, "bot", "message/send",
		`{"message":{"kind":"message","role":"user","parts":[{"kind":"text","text":"x"}]}}`).
		fails(200, codeInvalidParams)

	// The Go SDK's client of 1.0 accepts nothing else either.
	for _, method := range []string{"tasks/resubscribe", "SubscribeToTask"} {
		get := envelope(method, `{"id":"none"}`)
		a := w.do(ada, "POST", "/a2a/bot", get, "Accept", "text/event-stream", "User-Agent", "Go-http-client/2.0")
		if events := parseEvents(a.Body); a.Header.Get("Content-Type") != "text/event-stream" || len(events) != 1 ||
			!strings.Contains(events[0].Data, `"code":-32001`) {
			t.Errorf("%s: got %v %s, want -32001 as an event", method, a.Header, a.Body)
		}
		w.do(ada, "POST", "/a2a/bot", get, "Accept", "text/event-stream, application/json").fails(200, codeNoTask)
	}
	// The Python SDK 0.3 sends two Accept lines, the first of which is that of its HTTP library.
	twice := w.do(ada, "POST", "/a2a/bot", envelope("tasks/resubscribe", `{"id":"none"}`),
		"Accept", "*/*", "Accept", "text/event-stream")
	if events := parseEvents(twice.Body); len(events) != 1 || !strings.Contains(events[0].Data, `"code":-32001`) {
		t.Errorf("got %v %s, want -32001 as an event", twice.Header, twice.Body)
	}
	w.do(ada, "POST", "/a2a/bot", envelope("SubscribeToTask", `{"id":"none"}`), "Accept", "text/event-stream").
		fails(200, codeNoTask)
	// A client of 1.0 that speaks 0.3 sends its version, and reads errors in the form of 1.0.
	w.do(ada, "POST", "/a2a/bot", envelope("tasks/get", `{"id":"none"}`), "A2A-Version", "0.3").
		contains(`"data":[{"@type":`)
	w.do(ada, "POST", "/a2a/bot", envelope("tasks/get", `{"id":"none"}`)).contains(`"data":{"code":`)

	w.rpc(ada, "bot", "tasks/send", hello("t-1")).state("submitted")
	w.rpc(ada, "bot", "tasks/pushNotificationConfig/set",
		`{"taskId":"t-1","pushNotificationConfig":{"url":"https://example.com/a"}}`)
	for _, id := range []string{"", `,"pushNotificationConfigId":"default"`, `,"pushNotificationConfigId":"t-1"`} {
		w.rpc(ada, "bot", "tasks/pushNotificationConfig/get", `{"id":"t-1"`+id+`}`).contains("https://example.com/a")
	}
}
