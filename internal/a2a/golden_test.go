package a2a

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/task"
)

// exchange formats a request and its response for a golden file.
func exchange(tb testing.TB, target, body string, headers []string, a *answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "POST %s\n", target)
	for i := 0; i+1 < len(headers); i += 2 {
		fmt.Fprintf(&b, "%s: %s\n", headers[i], headers[i+1])
	}
	fmt.Fprintf(&b, "\n%s\n\n-- %d %s\n", indent(tb, body), a.Status, http.StatusText(a.Status))
	for _, name := range []string{"Content-Type", "Preference-Applied", "WWW-Authenticate", "Retry-After"} {
		if v := a.Header.Get(name); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	b.WriteByte('\n')
	if strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
		b.WriteString(a.Body)
	} else {
		b.WriteString(indent(tb, a.Body) + "\n")
	}
	return stable(b.String())
}

// The golden files are section 4.7 of the specification: each method and each error on the wire.
func TestTheWire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	p := w.post("bot")
	w.rpc(ada, "bot", "tasks/send", hello("crm-1")).state("submitted") // completed by a worker
	lease := w.claim(p)
	w.report(p, lease, task.Report{Artifacts: []task.ArtifactUpdate{
		{Artifact: task.Artifact{
			ID: "report", Type: "text", Name: "report.txt", Description: "What was found.",
			Parts: []task.Part{{Kind: task.TextPart, Text: "One. "}},
		}},
		{
			Artifact: task.Artifact{ID: "report", Type: "text", Parts: []task.Part{{Kind: task.TextPart, Text: "Two."}}},
			Append:   true, LastChunk: true,
		},
		{Artifact: task.Artifact{ID: "data", Parts: []task.Part{
			{Kind: task.DataPart, Data: []byte(`{"n":1}`)},
			{Kind: task.FilePart, Name: "a.txt", MediaType: "text/plain", Bytes: []byte("hi")},
			{Kind: task.FilePart, URL: "https://example.com/b"},
		}}},
	}, State: task.Completed, Message: says("done")})
	w.rpc(ada, "bot", "tasks/send", hello("crm-2")).state("submitted") // waits for input
	w.report(p, w.claim(p), task.Report{State: task.InputRequired, Message: says("Which one?")})
	w.rpc(ada, "bot", "tasks/send", hello("crm-3")).state("submitted") // to be canceled
	w.rpc(ada, "bot", "tasks/send", hello("crm-4")).state("submitted") // waits for a worker

	restricted := w.key("acme", "service:partner", "svc:a2a:write", "agent:other")
	reader := w.key("acme", "user:ada", "svc:tasks:read")
	send := envelope("tasks/send", hello("crm-9"))
	for _, c := range []struct {
		name, secret, target, body string
		headers                    []string
	}{
		{"tasks_send_offline_agent", ada, "/a2a/bot", envelope("tasks/send", hello("crm-5")), nil},
		{
			"tasks_send_wait", ada, "/a2a/echo", envelope("tasks/send", `{"id":"crm-6","contextId":"ctx-1",`+
				`"metadata":{"a":1},"historyLength":3,
			"message":{"role":"user","parts":[{"type":"text","text":"hello"},{"kind":"data","data":{"x":[1,2]}}],`+
				`"messageId":"m-1","metadata":{"b":2}}}`), []string{"Prefer", "wait=5"},
		},
		{"tasks_send_known_id", ada, "/a2a/bot", envelope("tasks/send", hello("crm-4")), nil},
		{
			"tasks_send_further_turn", ada, "/a2a/bot", envelope("tasks/send", `{"id":"crm-2","historyLength":9,`+
				`"message":{"role":"user","parts":[{"type":"text","text":"That one."}]}}`), nil,
		},
		{"tasks_get", ada, "/a2a/bot", envelope("tasks/get", `{"id":"crm-4"}`), nil},
		{"tasks_get_completed", ada, "/a2a/bot", envelope("tasks/get", `{"id":"crm-1","historyLength":2}`), nil},
		{"tasks_cancel", ada, "/a2a/bot", envelope("tasks/cancel", `{"id":"crm-3"}`), nil},
		{"tasks_sendSubscribe", ada, "/a2a/echo", envelope("tasks/sendSubscribe", hello("crm-7")), nil},
		{"tasks_resubscribe", ada, "/a2a/bot", envelope("tasks/resubscribe", `{"id":"crm-1"}`), nil},
		{
			"tasks_resubscribe_from", ada, "/a2a/bot", envelope("tasks/resubscribe", `{"id":"crm-1"}`),
			[]string{"Last-Event-ID", "5"},
		},
		{
			"message_send", ada, "/a2a/bot",
			envelope("message/send", `{"message":{"role":"user","parts":[{"type":"text","text":"psst"}]}}`), nil,
		},
		{"notification", ada, "/a2a/echo", `{"jsonrpc":"2.0","method":"tasks/get","params":{"id":"crm-7"}}`, nil},
		{"batch", ada, "/a2a/bot", `[` + envelope("tasks/get", `{"id":"crm-3"}`) + `,{"jsonrpc":"2.0","method":"tasks/get"},7,` +
			envelope("tasks/resubscribe", `{"id":"crm-1"}`) + `]`, nil},

		{"error_parse", ada, "/a2a/bot", `{"jsonrpc":`, nil},
		{"error_duplicate_member", ada, "/a2a/bot", `{"jsonrpc":"2.0","id":1,"id":2,"method":"tasks/get"}`, nil},
		{"error_invalid_request", ada, "/a2a/bot", `{"jsonrpc":"1.0","id":"x","method":"tasks/get"}`, nil},
		{"error_empty_batch", ada, "/a2a/bot", `[]`, nil},
		{"error_no_such_method", ada, "/a2a/bot", envelope("tasks/delete", `{}`), nil},
		{"error_params_array", ada, "/a2a/bot", envelope("tasks/get", `["crm-1"]`), nil},
		{
			"error_params", ada, "/a2a/bot", envelope("tasks/send", `{"id":7,"message":{"role":"agent",`+
				`"parts":[{"type":"text"},{"type":"sound"},{"text":1}]},"historyLength":-1}`), nil,
		},
		{"error_no_such_task", ada, "/a2a/bot", envelope("tasks/get", `{"id":"crm-0"}`), nil},
		{"error_not_cancelable", ada, "/a2a/bot", envelope("tasks/cancel", `{"id":"crm-1"}`), nil},
		{
			"error_terminal", ada, "/a2a/bot", envelope("tasks/send",
				`{"id":"crm-1","message":{"role":"user","parts":[{"type":"text","text":"more"}]}}`), nil,
		},
		{
			"error_last_event_id", ada, "/a2a/bot", envelope("tasks/resubscribe", `{"id":"crm-1"}`),
			[]string{"Last-Event-ID", "x"},
		},
		{"error_401_missing", "", "/a2a/bot", send, nil},
		{"error_401_invalid", "parley_nonsense", "/a2a/bot", send, nil},
		{"error_403_scope", reader, "/a2a/bot", send, nil},
		{"error_403_agent", restricted, "/a2a/bot", send, nil},
		{"error_404_agent", ada, "/a2a/nobody", send, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := w.do(c.secret, "POST", c.target, c.body, c.headers...)
			golden(t, c.name+".txt", exchange(t, c.target, c.body, c.headers, a))
		})
	}
}

func TestTooLargeAndTooMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(ho *httpx.Options, _ *Options) { ho.RateLimit = 1 })
	ada := w.caller("user:ada")
	big := envelope("tasks/send", `{"message":{"parts":[{"text":"`+strings.Repeat("x", maxBody)+`"}]}}`)
	a := w.do(ada, "POST", "/a2a/bot", big)
	golden(t, "error_413.txt", exchange(t, "/a2a/bot", "(more than 4 MiB)", nil, a))
	deadline := time.Now().Add(10 * time.Second)
	for a.Status != http.StatusTooManyRequests {
		if time.Now().After(deadline) {
			t.Fatal("no limit was reached")
		}
		a = w.rpc(ada, "bot", "tasks/get", `{"id":"x"}`)
	}
	golden(t, "error_429.txt", exchange(t, "/a2a/bot", envelope("tasks/get", `{"id":"x"}`), nil, a))
}

func TestTheCard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/.well-known/agent.json"
	public := w.do("", "GET", path, "")
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(public.Body, `"available"`) { // until echo is available
		if time.Now().After(deadline) {
			t.Fatalf("card = %s, want an available agent", public.Body)
		}
		public = w.do("", "GET", path, "")
	}
	golden(t, "card_public.json", indent(t, public.Body)+"\n")
	if h := public.Header; h.Get("Cache-Control") != "public, max-age=5" || h.Get("Vary") != "Authorization" ||
		h.Get("Last-Modified") == "" {
		t.Errorf("public card: headers = %v, want those of a public response", h)
	}
	known := `"x", W/` + public.Header.Get("ETag")
	if a := w.do("", "GET", path, "", "If-None-Match", known); a.Status != 304 || a.Body != "" {
		t.Errorf("If-None-Match: status = %d, want 304: %s", a.Status, a.Body)
	}
	if a := w.do("", "HEAD", path, ""); a.Status != 200 || a.Header.Get("ETag") != public.Header.Get("ETag") {
		t.Errorf("HEAD: got %+v, want 200 with the same ETag", a)
	}
	if a := w.do("parley_nonsense", "GET", path, ""); a.Status != 401 {
		t.Errorf("bad key: status = %d, want 401: %s", a.Status, a.Body)
	}
	own := w.do(w.caller("user:ada"), "GET", path, "")
	golden(t, "card_member.json", indent(t, own.Body)+"\n")
	if h := own.Header; h.Get("Cache-Control") != "private, no-cache" || h.Get("Vary") != "Authorization" {
		t.Errorf("own card: headers = %v, want those of a private response", h)
	}
	for name, c := range map[string]struct {
		key  string
		want []string
		not  []string
	}{
		"restricted": {
			w.key("acme", "service:x", "svc:a2a:write", "agent:bot"),
			[]string{`"bot"`, `"echo"`},
			[]string{`"other"`},
		},
		"all": {
			w.key("acme", "service:x", "svc:a2a:write", "agent:*"), []string{`"bot"`, `"echo"`, `"other"`}, nil,
		},
		"no right": {w.key("acme", "service:x", "svc:tasks:read"), []string{`"echo"`}, []string{`"bot"`, `"other"`}},
		"another org": {
			w.key("globex", "service:x", "svc:a2a:write"), []string{`"echo"`}, []string{`"bot"`, `"other"`},
		},
	} {
		body := w.do(c.key, "GET", path, "").Body
		for _, s := range c.want {
			if !strings.Contains(body, `"id":`+s) {
				t.Errorf("%s: got %s, want %s in it", name, body, s)
			}
		}
		for _, s := range c.not {
			if strings.Contains(body, `"id":`+s) {
				t.Errorf("%s: got %s, want no %s in it", name, body, s)
			}
		}
	}
}

func TestACardFollowsWhatAnAdminDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/.well-known/agent.json"
	before := w.do("", "GET", path, "")
	busy := "busy"
	yes := true
	w.orgs.EditAgent("acme", "echo", agentEdit(&busy, nil))
	// The public card is cached for a second.
	w.until("the card shows it", func() bool {
		pinned := w.do("", "GET", path, "", "If-None-Match", before.Header.Get("ETag"))
		return pinned.Status == 200 && strings.Contains(pinned.Body, `"status":"busy"`)
	})
	w.orgs.EditAgent("acme", "echo", agentEdit(nil, &yes))
	w.until("the agent is gone", func() bool { return !strings.Contains(w.do("", "GET", path, "").Body, "echo") })
	w.rpc(w.caller("user:ada"), "echo", "tasks/send", hello("x")).fails(404, codeInvalidRequest)
}
