package a2a

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// outcome is the result of a request over one binding, or that it was refused as invalid.
type outcome struct {
	binding string
	invalid bool
	result  string // JSON, without what differs from call to call
}

// bindings sends the same request over each binding of version 1.0.
type bindings struct {
	*world
	secret string
	grpc   a2apb.A2AServiceClient
}

func (b *bindings) jsonrpc(agent, method, params string) outcome {
	b.tb.Helper()
	r := b.rpc(b.secret, agent, method, params)
	var reply struct {
		Result json.RawMessage
		Error  *struct{ Code int }
	}
	if err := json.Unmarshal([]byte(r.Body), &reply); err != nil {
		b.tb.Fatalf("not a JSON-RPC response: %v in %s", err, r.Body)
	}
	if reply.Error != nil {
		return outcome{"JSON-RPC", reply.Error.Code == codeInvalidParams, r.Body}
	}
	return outcome{"JSON-RPC", false, comparable(b.tb, reply.Result)}
}

func (b *bindings) rest(agent, method, params string) outcome {
	b.tb.Helper()
	var r *answer
	if method == "SendMessage" {
		r = b.do(b.secret, "POST", "/a2a/"+agent+"/message:send", params)
	} else { // ListTasks, whose params become the query
		var members map[string]any
		if err := json.Unmarshal([]byte(params), &members); err != nil {
			b.tb.Fatal(err)
		}
		query := url.Values{}
		for name, v := range members {
			query.Set(name, fmt.Sprint(v))
		}
		r = b.do(b.secret, "GET", "/a2a/"+agent+"/tasks?"+query.Encode(), "")
	}
	if r.Status != 200 {
		return outcome{"HTTP+JSON", r.Status == 400 && strings.Contains(r.Body, `"INVALID_PARAMS"`), r.Body}
	}
	return outcome{"HTTP+JSON", false, comparable(b.tb, []byte(r.Body))}
}

// overGRPC sends the message that protobuf's JSON reader makes of the params. What the reader
// refuses cannot be sent.
func (b *bindings) overGRPC(agent, method, params string) outcome {
	b.tb.Helper()
	ctx := as(b.tb.Context(), b.secret)
	params = `{"tenant":"` + agent + `",` + params[1:]
	var in, out proto.Message
	var call func() error
	switch method {
	case "SendMessage":
		r := &a2apb.SendMessageRequest{}
		in, call = r, func() (err error) { out, err = b.grpc.SendMessage(ctx, r); return err }
	case "ListTasks":
		r := &a2apb.ListTasksRequest{}
		in, call = r, func() (err error) { out, err = b.grpc.ListTasks(ctx, r); return err }
	}
	if err := protojson.Unmarshal([]byte(params), in); err != nil {
		return outcome{"gRPC", true, "not sent: " + err.Error()}
	}
	if err := call(); err != nil {
		return outcome{"gRPC", status.Code(err) == codes.InvalidArgument, err.Error()}
	}
	text, err := protojson.Marshal(out)
	if err != nil {
		b.tb.Fatal(err)
	}
	return outcome{"gRPC", false, comparable(b.tb, text)}
}

// comparable returns a result without ids and times, and without empty members, which ProtoJSON may
// omit.
func comparable(tb testing.TB, text []byte) string {
	tb.Helper()
	v := normal(tb, text)
	if members, ok := v.(map[string]any); ok && members["totalSize"] == 0.0 {
		delete(members, "totalSize")
	}
	out, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return stable(string(out))
}

// TestBindingsReadAlike sends what ProtoJSON allows, and what it does not, over all three bindings.
func TestBindingsReadAlike(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	b := &bindings{w, ada, a2apb.NewA2AServiceClient(dial(t, w.h2c()))}
	for _, id := range []string{"t-1", "t-2", "t-3"} {
		w.rpc(ada, "bot", "tasks/send", hello(id)).state("submitted")
	}
	w.rpc(ada, "bot", "tasks/cancel", `{"id":"t-3"}`).state("canceled")
	newest := strings.TrimSuffix(times.FindString(w.rpc(ada, "bot", "ListTasks", `{"pageSize":1}`).Body), "Z")
	const message = `"messageId":"m","contextId":"c","role":"ROLE_USER"`
	part := func(p string) string { return `{"message":{` + message + `,"parts":[` + p + `]}}` }
	for _, c := range []struct {
		name, method, params string
		want                 string // in the result; empty: it is refused
	}{
		{"data null", "SendMessage", part(`{"data":null}`), `"parts":[{`},
		{"text and data null", "SendMessage", part(`{"text":"a","data":null}`), ""},
		{
			"data null with a media type", "SendMessage", part(`{"data":null,"mediaType":"application/json"}`),
			`"application/json"`,
		},
		{"text null beside data", "SendMessage", part(`{"text":null,"data":[1]}`), `"data":[1]`},
		{"a part without content", "SendMessage", part(`{"mediaType":"text/plain"}`), ""},
		{"text and data", "SendMessage", part(`{"text":"a","data":{"b":1}}`), ""},
		{"text and a URL", "SendMessage", part(`{"text":"a","url":"https://example.com/a"}`), ""},
		{"bytes and a URL", "SendMessage", part(`{"raw":"AAAA","url":"https://example.com/a"}`), ""},
		{
			"role as a number", "SendMessage",
			`{"message":{"messageId":"m","contextId":"c","role":1,"parts":[{"text":"a"}]}}`, `"ROLE_USER"`,
		},
		{
			"role of the agent as a number", "SendMessage",
			`{"message":{"messageId":"m","role":2,"parts":[{"text":"a"}]}}`, "",
		},
		{"no role as a number", "SendMessage", `{"message":{"messageId":"m","role":0,"parts":[{"text":"a"}]}}`, ""},
		{"an unknown role", "SendMessage", `{"message":{"messageId":"m","role":17,"parts":[{"text":"a"}]}}`, ""},
		{
			"historyLength in quotes", "SendMessage",
			`{"message":{` + message + `,"parts":[{"text":"a"}]},"configuration":{"historyLength":"1"}}`, `"history"`,
		},
		{
			"historyLength not a number", "SendMessage",
			`{"message":{` + message + `,"parts":[{"text":"a"}]},"configuration":{"historyLength":"one"}}`, "",
		},
		{"pageSize 0", "ListTasks", `{"pageSize":0}`, `"pageSize":50`},
		{"pageSize in quotes", "ListTasks", `{"pageSize":"2"}`, `"pageSize":2`},
		{"pageSize 0 in quotes", "ListTasks", `{"pageSize":"0"}`, `"pageSize":50`},
		{"pageSize below 0", "ListTasks", `{"pageSize":-1}`, ""},
		{"pageSize too large", "ListTasks", `{"pageSize":101}`, ""},
		{"pageSize not a whole number", "ListTasks", `{"pageSize":1.5}`, ""},
		{"a state by name", "ListTasks", `{"status":"TASK_STATE_CANCELED"}`, `"totalSize":1`},
		{"a state by number", "ListTasks", `{"status":5}`, `"totalSize":1`},
		{"any state by number", "ListTasks", `{"status":0}`, `"totalSize":3`},
		{"an unknown state", "ListTasks", `{"status":99}`, ""},
		{"a state that is none", "ListTasks", `{"status":"TASK_STATE_ASLEEP"}`, ""},
		{"auth required", "ListTasks", `{"status":"TASK_STATE_AUTH_REQUIRED"}`, `"pageSize":50`},
		{"auth required by number", "ListTasks", `{"status":8}`, `"pageSize":50`},
		{"the very time", "ListTasks", `{"statusTimestampAfter":"` + newest + `Z"}`, `"totalSize":1`},
		{"a moment later", "ListTasks", `{"statusTimestampAfter":"` + newest + `001Z"}`, `"pageSize":50`},
	} {
		agent := "bot"
		if c.method == "SendMessage" {
			agent = "echo"
		}
		outcomes := []outcome{
			b.jsonrpc(agent, c.method, c.params), b.rest(agent, c.method, c.params),
			b.overGRPC(agent, c.method, c.params),
		}
		for _, o := range outcomes {
			if o.invalid != (c.want == "") || !strings.Contains(o.result, c.want) {
				t.Errorf("%s, %s: got %s, want %q in it", c.name, o.binding, o.result, c.want)
			}
			if !o.invalid && o.result != outcomes[0].result {
				t.Errorf("%s (- %s, + %s): %s", c.name, outcomes[0].binding, o.binding,
					cmp.Diff(outcomes[0].result, o.result))
			}
		}
	}
	w.rpc(ada, "bot", "ListTasks", `{"status":99}`).contains("unknown enum number 99; use a name such as TASK_STATE_")
	// The comparison above omits null.
	w.rpc(ada, "echo", "SendMessage", part(`{"data":null}`)).contains(`"parts":[{"data":null}]`)
}
