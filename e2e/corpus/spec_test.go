package corpus

const hello = `{"role":"user","parts":[{"type":"text","text":"Hello."}]}`

// spec covers the dialect of the specification over JSON-RPC from both sides: the sender's view,
// while the script works as the agent's worker.
func spec(s *session) {
	s.cast()
	const bot, claim = "spec-bot", "POST /api/v1/agents/spec-bot/claim"
	lease := "POST /api/v1/agents/spec-bot/leases/"
	s.rpc("send", "partner", bot, "tasks/send", `{"id":"crm-1","message":`+hello+`}`)
	s.rpc("send it again", "partner", bot, "tasks/send", `{"id":"crm-1","message":`+hello+`}`)
	s.do("claim", "worker", claim, `{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	s.rpc("get", "partner", bot, "tasks/get", `{"id":"crm-1"}`)
	s.do("ask", "worker", lease+"<lease-1>",
		`{"status":"input-required","message":{"parts":[{"type":"text","text":"Which one?"}]}}`)
	s.rpc("it asks", "partner", bot, "tasks/get", `{"id":"crm-1","historyLength":1}`)
	s.rpc("answer", "partner", bot, "tasks/send",
		`{"id":"crm-1","message":{"role":"user","parts":[{"type":"data","data":{"which":2}}]},"metadata":{"a":1}}`)
	s.do("claim again", "worker", claim, `{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	st := s.stream("follow", "partner", "POST /a2a/"+bot, call("tasks/resubscribe", `{"id":"crm-1"}`), 5)
	s.do("an artifact in pieces", "worker", lease+"<lease-2>",
		`{"artifacts":[{"artifact_id":"a","name":"out","parts":[{"type":"text","text":"one "}]}]}`)
	s.do("the rest of it", "worker", lease+"<lease-2>",
		`{"status":"completed","artifacts":[{"artifact_id":"a","parts":[{"type":"text","text":"two"}],"append":true,`+
			`"last_chunk":true},`+
			`{"name":"file","parts":[{"type":"file","file":{"name":"x.txt","mimeType":"text/plain","bytes":"eA=="}}]}]}`)
	st.end()
	s.rpc("completed", "partner", bot, "tasks/get", `{"id":"crm-1"}`)
	s.stream("go on behind an event", "partner", "POST /a2a/"+bot, call("tasks/resubscribe",
		`{"id":"crm-1"}`), 1, "Last-Event-ID: 5").end()
	s.rpc("a message on what is over", "partner", bot, "tasks/send",
		`{"id":"crm-1","message":{"parts":[{"type":"text","text":"More."}]}}`)
	s.rpc("cancel what is over", "partner", bot, "tasks/cancel", `{"id":"crm-1"}`)
	s.rpc("another's task", "ann", bot, "tasks/get", `{"id":"crm-1"}`)
	s.rpc("a task to cancel", "partner", bot, "tasks/send", `{"message":`+hello+`,"sessionId":"s-1"}`)
	s.rpc("cancel", "partner", bot, "tasks/cancel", `{"id":"<t-1>"}`)
	s.rpc("cancel again", "partner", bot, "tasks/cancel", `{"id":"<t-1>"}`)
	s.rpc("wait for it", "partner", "echo", "tasks/send",
		`{"id":"crm-2","message":`+hello+`,"historyLength":5}`, "Prefer: wait=30")
	s.stream("send and follow", "partner", "POST /a2a/echo", call("tasks/sendSubscribe",
		`{"id":"crm-3","message":`+hello+`}`), 1).end()
	s.stream("an empty stream", "partner", "POST /a2a/echo", call("tasks/resubscribe",
		`{"id":"crm-3"}`), 0, "Last-Event-ID: 99").end()

	s.rpc("a direct message", "partner", bot, "message/send", `{"message":`+hello+`}`)
	s.do("reaches the worker", "worker", claim, `{"worker":"w","max":0,"wait_seconds":5}`)
	s.do("and is acknowledged", "worker", claim, `{"worker":"w","max":0,"wait_seconds":0,"ack":["<msg-1>"]}`)
	s.rpc("a message of nothing", "partner", bot, "message/send", `{"message":{"parts":[]}}`)
	s.rpc("a message that is too large", "partner", bot, "message/send",
		`{"message":{"role":"user","parts":[{"type":"text","text":"<pad:300000>"}]}}`)

	at := "POST /a2a/echo"
	s.do("a batch", "partner", at,
		`[`+call("tasks/get", `{"id":"crm-2"}`)+`,{"jsonrpc":"2.0","method":"tasks/get","params":{"id":"crm-2"}},7,`+
			`{"jsonrpc":"2.0","id":"two","method":"nope"},{"jsonrpc":"2.0","id":null,"method":"tasks/get",`+
			`"params":{"id":"none"}},`+
			`{"jsonrpc":"2.0","id":3,"method":"tasks/sendSubscribe","params":{}}]`)
	s.do("a batch of notifications", "partner", at, `[{"jsonrpc":"2.0","method":"tasks/get","params":{"id":"crm-2"}}]`)
	s.do("an empty batch", "partner", at, `[]`)
	s.do("a notification", "partner", at, `{"jsonrpc":"2.0","method":"tasks/get","params":{"id":"crm-2"}}`)
	s.do("a notification that fails", "partner", at, `{"jsonrpc":"2.0","method":"nope"}`)
	s.do("a message without an id", "partner", at, `{"jsonrpc":"2.0","method":"message/send","params":{}}`)
	s.do("not JSON", "partner", at, `{"jsonrpc":`)
	s.do("a member twice", "partner", at, `{"jsonrpc":"2.0","jsonrpc":"2.0"}`)
	s.do("no request", "partner", at, `{"jsonrpc":"1.0","id":{},"method":7}`)
	s.do("a string", "partner", at, `"tasks/get"`)
	s.do("params of the wrong type", "partner", at, `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":[]}`)
	s.do("another media type", "partner", at, call("tasks/get", `{"id":"crm-2"}`), "Content-Type: text/plain")
	s.do("what curl says", "partner", at, call("tasks/get",
		`{"id":"none"}`), "Content-Type: application/x-www-form-urlencoded")
	s.do("a body that is too large", "partner", at, call("tasks/get", `{"id":"<pad:4200000>"}`))
	s.rpc("no such method", "partner", "echo", "tasks/nope", `{}`)
	s.rpc("no such task", "partner", "echo", "tasks/get", `{"id":"none"}`)
	s.rpc("bad params", "partner", "echo", "tasks/send",
		`{"id":7,"message":{"role":"agent","parts":[{"type":"text"},{"type":"nope"},{"type":"file","file":{}}]},`+
			`"historyLength":-1}`)
	s.rpc("no params", "partner", "echo", "tasks/send", `{}`)
	s.rpc("a control character", "partner", "echo", "tasks/send", `{"id":"a\u0007","message":`+hello+`}`)
	s.rpc("a stream of nothing", "partner", "echo", "tasks/sendSubscribe", `{}`)
	s.rpc("a stream of nothing, for clients of events", "partner", "echo", "tasks/resubscribe",
		`{"id":"none"}`, "Accept: text/event-stream")
	s.rpc("a bad event id", "partner", "echo", "tasks/resubscribe", `{"id":"crm-3"}`, "Last-Event-ID: x")
	s.rpc("no such agent", "partner", "nobody", "tasks/get", `{"id":"x"}`)
	s.rpc("no agent", "partner", "", "tasks/get", `{"id":"x"}`)
	s.rpc("no key", "", "echo", "tasks/get", `{"id":"x"}`)
	s.rpc("a bad key", "bad", "echo", "tasks/get", `{"id":"x"}`)
	s.rpc("no scope", "reader", "echo", "tasks/get", `{"id":"x"}`)
	s.ownKey("narrow", "service:partner", `"svc:a2a:write","agent:spec-bot"`)
	s.rpc("a key for another agent", "narrow", "echo", "tasks/get", `{"id":"x"}`)
	s.do("another method", "partner", "PUT /a2a/echo", `{}`)
}
