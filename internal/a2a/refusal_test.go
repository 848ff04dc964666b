package a2a

import (
	"strings"
	"testing"
)

// A refusal before the method runs has the id of the request if it can be read.
func TestRefusalsEchoTheID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	reader := w.key("acme", "user:bo", "svc:tasks:read")
	request := `{"jsonrpc":"2.0","id":"r-7","method":"tasks/get","params":{"id":"t"}}`
	for _, c := range []struct {
		name, key, path, body string
		headers               []string
		want                  string
	}{
		{"an unknown agent", ada, "/a2a/nobody", request, nil, `"r-7"`},
		{"no scope", reader, "/a2a/bot", request, nil, `"r-7"`},
		{"no credentials", "", "/a2a/bot", request, nil, `"r-7"`},
		{"another media type", ada, "/a2a/bot", request, []string{"Content-Type", "text/plain"}, `"r-7"`},
		{"another version", ada, "/a2a/bot", request, []string{"A2A-Version", "7.0"}, `"r-7"`},
		{"no method", ada, "/a2a/bot", `{"jsonrpc":"2.0","id":7}`, nil, `7`},
		{"an envelope that is wrong", ada, "/a2a/nobody", `{"jsonrpc":"1.0","id":8,"method":"x"}`, nil, `8`},
		{"a batch", ada, "/a2a/nobody", `[` + request + `]`, nil, `null`},
		{"an id that is none", ada, "/a2a/nobody", `{"jsonrpc":"2.0","id":{},"method":"x"}`, nil, `null`},
		{"no JSON", ada, "/a2a/nobody", `{"id":1`, nil, `null`},
		{
			"a large body", ada, "/a2a/nobody",
			strings.Replace(request, `"t"`, `"`+strings.Repeat("x", maxRefused)+`"`, 1), nil, `null`,
		},
		{"a body that waits", ada, "/a2a/nobody", request, []string{"Expect", "100-continue"}, `null`},
	} {
		got := w.do(c.key, "POST", c.path, c.body, c.headers...)
		if !strings.HasPrefix(got.Body, `{"jsonrpc":"2.0","id":`+c.want+`,"error":`) {
			t.Errorf("%s: got %d %.200s, want the id %s", c.name, got.Status, got.Body, c.want)
		}
	}
}

func TestOtherMethodsOnAnAgentAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.caller("user:ada")
	for _, method := range []string{"PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
		for _, path := range []string{"/a2a/bot", "/a2a/bot/", "/a2a/nobody"} {
			if got := w.do(ada, method, path, ""); got.Status != 405 || got.Header.Get("Allow") != "GET, HEAD, POST" {
				t.Errorf("%s %s: status = %d, want 405 with Allow: %v", method, path, got.Status, got.Header)
			}
		}
	}
}
