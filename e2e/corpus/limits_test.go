package corpus

import "net/http"

// limits covers the refusal of a sender with too many live tasks.
func limits(s *session) {
	s.cast()
	const send = `{"message":` + hello + `}`
	// The server counts now and then, so a task more or less may pass.
	eventually(s.T, "the sender has too many tasks", func() error {
		if r := s.quiet("partner", "POST /a2a/limits-bot", call("tasks/send", send)); r.status != http.StatusTooManyRequests {
			return errStill(r.body)
		}
		return nil
	})
	const version = "A2A-Version: 1.0"
	s.rpc("one too many", "partner", "limits-bot", "tasks/send", send)
	s.rpc("as a stream", "partner", "limits-bot", "tasks/sendSubscribe", send)
	s.rpc("in version 1.0", "partner", "limits-bot", "SendMessage", `{"message":`+say+`}`, version)
	s.do("over HTTP+JSON", "partner", "POST /a2a/limits-bot/message:send", `{"message":`+say+`}`, version)
	s.do("in version 0.3", "partner", "POST /a2a/limits-bot/v1/message:send",
		`{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"Hello."}]}}`)
	defer s.dial()()
	s.invoke("over gRPC", "partner", grpcV1+"/SendMessage", `{"tenant":"limits-bot","message":`+say+`}`)
	s.do("as a tool", "partner", "POST /mcp",
		call("tools/call", `{"name":"send_task","arguments":{"agent":"limits-bot","message":"Hello."}}`),
		"Accept: application/json, text/event-stream", "MCP-Protocol-Version: 2025-06-18")
	s.do("a batch of which nothing is done", "partner", "POST /a2a/limits-bot", `[`+call("tasks/send", send)+`]`)
	s.rpc("others are not concerned", "ann", "limits-bot", "tasks/send", send)
}
