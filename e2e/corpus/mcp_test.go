package corpus

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"

	"github.com/parley-dev/parley/internal/servertest"
)

// mcp covers the tools over streamable HTTP and over stdio.
func mcp(s *session) {
	s.cast()
	const accept, revision = "Accept: application/json, text/event-stream", "MCP-Protocol-Version: 2025-06-18"
	send := func(title, who, body string, headers ...string) {
		s.Helper()
		s.do(title, who, "POST /mcp", body, append([]string{accept}, headers...)...)
	}
	tool := func(title, who, name, args string) {
		s.Helper()
		send(title, who, call("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args)), revision)
	}
	const initialize = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"corpus","version":"1"}}`
	send("initialize", "ann", call("initialize", initialize))
	send("initialized", "ann", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, revision)
	send("ping", "ann", call("ping", `{}`), revision)
	send("the tools", "ann", call("tools/list", `{}`), revision)
	tool("submit", "ann", "submit_proposal",
		`{"title":"Cache it","category":"performance","problem":"Slow.","suggested_fix":"Cache."}`)
	tool("submit nothing", "ann", "submit_proposal", `{"category":"x","nope":1}`)
	tool("submit without the scope", "reader", "submit_proposal",
		`{"title":"Cache it","category":"performance","problem":"Slow.","suggested_fix":"Cache."}`)
	tool("submit as a service", "partner", "submit_proposal",
		`{"title":"Cache it","category":"performance","problem":"Slow.","suggested_fix":"Cache."}`)
	tool("list", "reader", "list_proposals", `{"limit":1}`)
	tool("list badly", "reader", "list_proposals", `{"limit":1000,"status":"x","cursor":"y"}`)
	tool("get", "reader", "get_proposal", `{"id":"<prop-2>"}`)
	tool("get nothing", "reader", "get_proposal", `{"id":"prop-nope"}`)
	tool("vote", "bot", "vote_on_proposal", `{"id":"<prop-2>","vote":"for","comment":"Yes."}`)
	tool("vote badly", "bot", "vote_on_proposal", `{"id":"<prop-2>","vote":"x"}`)
	tool("withdraw", "bot", "withdraw_vote", `{"id":"<prop-2>"}`)
	tool("withdraw again", "bot", "withdraw_vote", `{"id":"<prop-2>"}`)
	tool("agents", "ann", "list_agents", `{}`)
	tool("find an agent", "ann", "find_agent", `{"words":"mcp"}`)
	tool("find badly", "ann", "find_agent", `{"words":"%","presence":"asleep"}`)
	tool("from a task of nobody", "ann", "send_task", `{"agent":"echo","message":"Hello.","parent_task":"nothing"}`)
	tool("send a task", "ann", "send_task", `{"agent":"echo","message":"Hello.","task_id":"m-1","wait_seconds":30}`)
	tool("to nobody", "ann", "send_task", `{"agent":"nobody","message":"Hello."}`)
	tool("of nothing", "ann", "send_task", `{"agent":"echo","parts":[{"type":"x"}],"wait_seconds":100}`)
	tool("a task that waits", "ann", "send_task",
		`{"agent":"mcp-bot","parts":[{"type":"data","data":{"a":1}}],"task_id":"m-2"}`)
	tool("get it", "ann", "get_task", `{"agent":"mcp-bot","task_id":"m-2"}`)
	tool("get nothing", "ann", "get_task", `{"agent":"mcp-bot","task_id":"none"}`)
	tool("cancel it", "ann", "cancel_task", `{"agent":"mcp-bot","task_id":"m-2"}`)
	tool("cancel it again", "ann", "cancel_task", `{"agent":"mcp-bot","task_id":"m-2"}`)
	tool("report friction", "bot", "report_friction",
		`{"fingerprint":"f","title":"F","category":"process","problem":"p","evidence":"e"}`)
	tool("report nothing", "bot", "report_friction", `{}`)
	tool("no such tool", "ann", "nope", `{}`)
	send("no such method", "ann", call("nope", `{}`), revision)
	send("a batch", "ann", `[`+call("ping", `{}`)+`]`, revision)
	send("not JSON", "ann", `{`, revision)
	send("an unknown revision", "ann", call("ping", `{}`), "MCP-Protocol-Version: 1999-01-01")
	send("too large", "ann", call("ping", `{"x":"<pad:1100000>"}`), revision)
	send("another origin", "ann", call("ping", `{}`), revision, "Origin: https://evil.example")
	send("no key", "", call("ping", `{}`))
	send("a bad key", "bad", call("ping", `{}`))
	send("no useful scope", "worker", call("ping", `{}`))
	s.do("nothing to follow", "ann", "GET /mcp", "", "Accept: text/event-stream")
	s.do("no session to end", "ann", "DELETE /mcp", "")
	s.do("another media type", "ann", "POST /mcp", call("ping", `{}`), accept, "Content-Type: text/plain")
	s.do("a client that takes no JSON", "ann", "POST /mcp", call("ping", `{}`), "Accept: text/html")
	s.stdio([]string{
		call("initialize", initialize), `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		strings.Replace(call("tools/call", `{"name":"get_proposal","arguments":{"id":"<prop-2>"}}`), `"id":1`, `"id":2`, 1),
		strings.Replace(call("tools/call", `{"name":"get_proposal","arguments":{"id":"nope"}}`), `"id":1`, `"id":3`, 1),
		strings.Replace(call("nope", `{}`), `"id":1`, `"id":4`, 1),
	})
}

// stdio talks to parley mcp: a line for each message, and a response line for each that has an id.
func (s *session) stdio(lines []string) {
	s.Helper()
	s.say("parley mcp, over stdio")
	cmd := exec.CommandContext(s.Context(), program, "mcp", "--server", s.base)
	cmd.Env = servertest.Environ("PARLEY_KEY=" + s.expand("<ann>"))
	var stderr servertest.Output
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	answers := bufio.NewReader(stdout)
	for _, line := range lines {
		s.out.WriteString(prefixed("> ", pretty(line)))
		if _, err := fmt.Fprintln(stdin, s.expand(line)); err != nil {
			s.Fatal(err)
		}
		if !strings.Contains(line, `"id"`) {
			continue
		}
		answer, err := answers.ReadString('\n')
		if err != nil {
			s.Fatalf("parley mcp: %v\n%s", err, stderr.String())
		}
		s.out.WriteString(s.normalize(prefixed("< ", pretty(answer))))
	}
	if err := stdin.Close(); err != nil {
		s.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		s.Fatalf("parley mcp: %v\n%s", err, stderr.String())
	}
	s.out.WriteByte('\n')
}
