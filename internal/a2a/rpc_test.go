package a2a

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnyLegalIDComesBackAsItWasSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	for _, id := range []string{
		`1`, `0`, `-0`, `-7`, `1.50`, `1e400`, `123456789012345678901234567890`,
		`""`, `"x"`, `"\u00e9\n\""`, `"é"`, `null`,
	} {
		a := w.do(ada, "POST", "/a2a/bot",
			`{"id": `+id+` ,"method":"tasks/get","params":{"id":"x"},"jsonrpc":"2.0","extra":[1]}`)
		if a.Status != 200 || !strings.HasPrefix(a.Body, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32001,`) {
			t.Errorf("%s: got %d %s, want the same id", id, a.Status, a.Body)
		}
	}
}

func TestWhatIsNoRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	for body, want := range map[string]struct {
		code int
		id   string
	}{
		``:                    {codeParse, "null"},
		` `:                   {codeParse, "null"},
		`{`:                   {codeParse, "null"},
		`{"jsonrpc":"2.0"} x`: {codeParse, "null"},
		`{"a":1,"a":2}`:       {codeParse, "null"},
		`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"a":{"b":1,"b":2}}}`: {codeParse, "null"},
		"{\"jsonrpc\":\"\xff\"}": {codeParse, "null"},
		`"x"`:                    {codeInvalidRequest, "null"},
		`7`:                      {codeInvalidRequest, "null"},
		`null`:                   {codeInvalidRequest, "null"},
		`[]`:                     {codeInvalidRequest, "null"},
		`{}`:                     {codeInvalidRequest, "null"},
		`{"jsonrpc":"2.0","method":"tasks/get","id":{}}`:              {codeInvalidRequest, "null"},
		`{"jsonrpc":"2.0","method":"tasks/get","id":[1]}`:             {codeInvalidRequest, "null"},
		`{"jsonrpc":"2.0","method":"tasks/get","id":true}`:            {codeInvalidRequest, "null"},
		`{"jsonrpc":2.0,"method":"tasks/get","id":5}`:                 {codeInvalidRequest, "5"},
		`{"method":"tasks/get","id":5}`:                               {codeInvalidRequest, "5"},
		`{"jsonrpc":"2.0","method":7,"id":5}`:                         {codeInvalidRequest, "5"},
		`{"jsonrpc":"2.0","id":5}`:                                    {codeInvalidRequest, "5"},
		`{"jsonrpc":"2.0","method":"tasks/get","params":"x","id":5}`:  {codeInvalidRequest, "5"},
		`{"jsonrpc":"2.0","method":"tasks/get","params":null,"id":5}`: {codeInvalidRequest, "5"},
		`{"jsonrpc":"2.0","method":"tasks/get","params":[],"id":5}`:   {codeInvalidParams, "5"},
		`{"jsonrpc":"2.0","method":"tasks/get","id":5}`:               {codeInvalidParams, "5"},
		`{"jsonrpc":"2.0","method":"TASKS/GET","id":5}`:               {codeNoMethod, "5"},
		strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000):         {codeInvalidRequest, "null"},
	} {
		r := w.do(ada, "POST", "/a2a/bot", body).fails(200, want.code)
		if string(r.ID) != want.id {
			t.Errorf("%s: id = %s, want %s", body, r.ID, want.id)
		}
	}
}

func TestABatchIsAnsweredElementByElement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	get := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tasks/get","params":{"id":"x"}}`
	}
	note := `{"jsonrpc":"2.0","method":"tasks/send","params":` + hello("noted") + `}`
	a := w.do(ada, "POST", "/a2a/bot", `[`+note+`,1,`+get(`"a"`)+`,{},[],`+note+`,`+get(`2`)+`]`)
	var replies []reply
	if err := json.Unmarshal([]byte(a.Body), &replies); err != nil {
		t.Fatalf("not a batch: %v in %s", err, a.Body)
	}
	type line struct {
		id   string
		code int
	}
	var got []line
	for _, r := range replies {
		got = append(got, line{string(r.ID), r.Error.Code})
	}
	want := []line{{"null", -32600}, {`"a"`, -32001}, {"null", -32600}, {"null", -32600}, {"2", -32001}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(line{})); diff != "" {
		t.Error(diff)
	}
	w.rpc(ada, "bot", "tasks/get", `{"id":"noted"}`).state("submitted")

	for _, body := range []string{
		note, `[` + note + `]`, `[` + note + `,` + note + `]`, `{"jsonrpc":"2.0","method":"no/such"}`,
	} {
		a := w.do(ada, "POST", "/a2a/bot", body)
		if a.Status != http.StatusNoContent || a.Body != "" || a.Header.Get("Content-Type") != "" {
			t.Errorf("%s: got %d %q, want 204 without a body", body, a.Status, a.Body)
		}
	}
	many := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = get(strconv.Itoa(i))
		}
		return `[` + strings.Join(list, ",") + `]`
	}
	err := json.Unmarshal([]byte(w.do(ada, "POST", "/a2a/bot", many(50)).Body), &replies)
	if err != nil || len(replies) != 50 {
		t.Errorf("responses = %d, %v, want 50", len(replies), err)
	}
	w.do(ada, "POST", "/a2a/bot", many(51)).fails(200, codeInvalidRequest)
	// A stream in a batch, or as a notification, has no effect.
	w.do(ada, "POST", "/a2a/bot", `[`+envelope("tasks/sendSubscribe", hello("batched"))+`]`)
	w.do(ada, "POST", "/a2a/bot", `{"jsonrpc":"2.0","method":"tasks/sendSubscribe","params":`+hello("batched")+`}`)
	w.rpc(ada, "bot", "tasks/get", `{"id":"batched"}`).fails(200, codeNoTask)
}

func TestPreferWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	a := w.rpc(ada, "echo", "tasks/send", hello("t-1"), "Prefer", "wait=600")
	a.state("completed")
	if h := a.Header.Get("Preference-Applied"); h != "wait=60" {
		t.Errorf("Preference-Applied = %q, want wait=60", h)
	}
	got := w.rpc(ada, "echo", "tasks/get", `{"id":"t-1"}`, "Prefer", "wait=5").Header.Get("Preference-Applied")
	if got != "" {
		t.Errorf("Preference-Applied = %q, want none", got)
	}
	// The agent bot has no workers: the time runs out, and the task is unchanged.
	w.rpc(ada, "bot", "tasks/send", hello("t-1"), "Prefer", "wait=1").state("submitted")
}

func FuzzRPC(f *testing.F) {
	w := newWorld(f)
	ada := w.caller("user:ada")
	w.rpc(ada, "bot", "tasks/send", hello("known")).state("submitted")
	for _, s := range []string{
		envelope("tasks/send", hello("known")), envelope("tasks/get", `{"id":"known","historyLength":1}`),
		envelope("tasks/cancel", `{"id":"known"}`),
		`[` + envelope("message/send", hello("x")) + `,{"jsonrpc":"2.0","method":"tasks/get"}]`,
		`{"a":1,"a":2}`, `[[[[`, `{"id":1e999,"jsonrpc":"2.0","method":"\u0000"}`,
		envelope("tasks/send", `{"message":{"parts":[{"kind":"file","file":{"bytes":"aGk","mimeType":"x"}},`+
			`{"data":null},{"url":"x"}],"metadata":{"a":{}}},"sessionId":"s"}`),
		envelope("tasks/send", `{"id":"\ud83d\ude00","message":{"role":"ROLE_USER","parts":[{"text":"\u0000"}]}}`),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if strings.Contains(body, "ubscribe") || strings.Contains(body, `\u00`) && strings.Contains(body, "tasks") {
			return // a stream would not end here
		}
		here := *w
		here.tb = t
		a := here.do(ada, "POST", "/a2a/bot", body)
		if a.Status != 200 && a.Status != 204 && a.Status != 429 {
			t.Fatalf("status = %d, want 200, 204 or 429: %s", a.Status, a.Body)
		}
		if a.Status == 200 && !json.Valid([]byte(a.Body)) {
			t.Fatalf("body = %s, want JSON", a.Body)
		}
		if strings.Contains(a.Body, `"code":-32603`) {
			t.Fatalf("got a server error: %s\n%s", a.Body, w.logs)
		}
	})
}
