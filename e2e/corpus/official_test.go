package corpus

const say = `{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"Hello."}]}`

// v1 covers version 1.0 of the official protocol over JSON-RPC.
func v1(s *session) {
	s.cast()
	const bot = "v1-bot"
	const version = "A2A-Version: 1.0"
	s.rpc("send and wait", "ann", "echo", "SendMessage", `{"message":`+say+`}`, version)
	s.rpc("get", "ann", "echo", "GetTask", `{"id":"<t-1>","historyLength":1}`, version)
	s.stream("stream", "ann", "POST /a2a/echo", call("SendStreamingMessage", `{"message":`+say+`}`), 1, version).end()
	s.rpc("send at once", "ann", bot, "SendMessage",
		`{"message":`+say+`,"configuration":{"returnImmediately":true,"acceptedOutputModes":["text/plain"]},`+
			`"metadata":{"k":"v"}}`)
	s.do("claim", "worker", "POST /api/v1/agents/v1-bot/claim", `{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	st := s.stream("subscribe", "ann", "POST /a2a/"+bot, call("SubscribeToTask", `{"id":"<t-3>"}`), 1, version)
	s.do("ask", "worker", "POST /api/v1/agents/v1-bot/leases/<lease-1>",
		`{"status":"input-required","message":{"parts":[{"type":"text","text":"Which?"}]}}`)
	st.end()
	s.rpc("answer", "ann", bot, "SendMessage",
		`{"message":{"messageId":"m-2","taskId":"<t-3>","role":"ROLE_USER","parts":[{"data":{"n":1}},`+
			`{"url":"https://example.com/x","filename":"x"}]},"configuration":{"returnImmediately":true}}`, version)
	s.do("claim again", "worker", "POST /api/v1/agents/v1-bot/claim",
		`{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	s.do("complete with a reply", "worker", "POST /api/v1/agents/v1-bot/leases/<lease-2>",
		`{"status":"completed","reply":true,"message":{"parts":[{"type":"text","text":"Two."}]}}`)
	s.stream("subscribe behind an event", "ann", "POST /a2a/"+bot, call("SubscribeToTask",
		`{"id":"<t-3>"}`), 1, version, "Last-Event-ID: 4").end()
	s.rpc("list", "ann", bot, "ListTasks", `{"pageSize":1,"includeArtifacts":true,"historyLength":1}`, version)
	s.rpc("list of echo", "ann", "echo", "ListTasks", `{"pageSize":1}`, version)
	s.rpc("the next page", "ann", "echo", "ListTasks", `{"pageSize":1,"pageToken":"<cursor-1>"}`, version)
	s.rpc("list by state", "ann", "echo", "ListTasks", `{"status":"TASK_STATE_WORKING"}`, version)
	s.rpc("list by what there is not", "ann", "echo", "ListTasks",
		`{"status":"NOPE","pageSize":1000,"pageToken":"x","statusTimestampAfter":"y"}`, version)
	s.rpc("a task to cancel", "ann", bot, "SendMessage",
		`{"message":`+say+`,"configuration":{"returnImmediately":true}}`, version)
	s.rpc("set push", "ann", bot, "CreateTaskPushNotificationConfig",
		`{"taskId":"<t-4>","id":"p","url":"https://example.com/hook","token":"tok",`+
			`"authentication":{"scheme":"Bearer","credentials":"c"}}`, version)
	s.rpc("get push", "ann", bot, "GetTaskPushNotificationConfig", `{"taskId":"<t-4>","id":"p"}`, version)
	s.rpc("list push", "ann", bot, "ListTaskPushNotificationConfigs", `{"taskId":"<t-4>"}`, version)
	s.rpc("delete push", "ann", bot, "DeleteTaskPushNotificationConfig", `{"taskId":"<t-4>","id":"p"}`, version)
	s.rpc("get what was deleted", "ann", bot, "GetTaskPushNotificationConfig", `{"taskId":"<t-4>","id":"p"}`, version)
	s.rpc("push to a private address", "ann", bot, "CreateTaskPushNotificationConfig",
		`{"taskId":"<t-4>","url":"http://10.0.0.1/"}`, version)
	s.rpc("push of no task", "ann", bot, "CreateTaskPushNotificationConfig",
		`{"taskId":"none","url":"https://example.com/"}`, version)
	s.rpc("cancel", "ann", bot, "CancelTask", `{"id":"<t-4>"}`, version)
	s.rpc("cancel again", "ann", bot, "CancelTask", `{"id":"<t-4>"}`, version)
	s.rpc("subscribe to what is over", "ann", bot, "SubscribeToTask", `{"id":"<t-4>"}`, version)
	s.rpc("a message on what is over", "ann", bot, "SendMessage",
		`{"message":{"messageId":"m","taskId":"<t-4>","role":"ROLE_USER","parts":[{"text":"x"}]}}`, version)
	s.rpc("a message on nothing", "ann", bot, "SendMessage",
		`{"message":{"messageId":"m","taskId":"none","role":"ROLE_USER","parts":[{"text":"x"}]}}`, version)
	s.rpc("another context", "ann", bot, "SendMessage",
		`{"message":{"messageId":"m","taskId":"<t-3>","contextId":"other","role":"ROLE_USER",`+
			`"parts":[{"text":"x"}]}}`, version)
	s.rpc("bad params", "ann", bot, "SendMessage",
		`{"message":{"role":"nope","parts":[{"text":"x","data":1},{}]},"configuration":{"historyLength":-1}}`, version)
	s.rpc("another tenant", "ann", bot, "GetTask", `{"tenant":"other","id":"<t-3>"}`, version)
	s.rpc("no task", "ann", bot, "GetTask", `{"id":"none"}`, version)
	s.rpc("the extended card", "ann", bot, "GetExtendedAgentCard", `{}`, version)
	s.rpc("no such method", "ann", bot, "Nope", `{}`, version)
	s.do("not JSON", "ann", "POST /a2a/"+bot, `{`, version)
	s.rpc("no key", "", bot, "GetTask", `{"id":"x"}`, version)
	s.rpc("a version that nobody speaks", "ann", bot, "GetTask", `{"id":"x"}`, "A2A-Version: 9.0")
	s.rpc("a stream of nothing", "ann", bot, "SendStreamingMessage", `{}`, version, "Accept: text/event-stream")
}

// v03 covers version 0.3 of the official protocol over JSON-RPC.
func v03(s *session) {
	s.cast()
	const bot = "v03-bot"
	const message = `{"kind":"message","messageId":"m-1","role":"user","parts":[{"kind":"text","text":"Hello."}]}`
	s.rpc("send and wait", "ann", "echo", "message/send", `{"message":`+message+`,"configuration":{"blocking":true}}`)
	s.stream("stream", "ann", "POST /a2a/echo", call("message/stream", `{"message":`+message+`}`), 1).end()
	s.rpc("get", "ann", "echo", "tasks/get", `{"id":"<t-1>","historyLength":2}`)
	s.rpc("send at once", "ann", bot, "message/send",
		`{"message":`+message+`,"configuration":{"blocking":false,"acceptedOutputModes":["text/plain"]}}`)
	s.do("claim", "worker", "POST /api/v1/agents/v03-bot/claim", `{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	st := s.stream("resubscribe", "ann", "POST /a2a/"+bot, call("tasks/resubscribe", `{"id":"<t-3>"}`), 1,
		"A2A-Version: 0.3")
	s.do("complete", "worker", "POST /api/v1/agents/v03-bot/leases/<lease-1>",
		`{"status":"completed","artifacts":[{"name":"n","parts":[{"type":"data","data":{"a":1}}]}]}`)
	st.end()
	s.rpc("a message on what is over", "ann", bot, "message/send",
		`{"message":{"kind":"message","messageId":"m-2","taskId":"<t-3>","role":"user","parts":[{"kind":"text",`+
			`"text":"x"}]}}`)
	s.rpc("a task for push", "ann", bot, "message/send",
		`{"message":`+message+`,"configuration":{"blocking":false,`+
			`"pushNotificationConfig":{"url":"https://example.com/first","token":"t"}}}`)
	s.rpc("set push", "ann", bot, "tasks/pushNotificationConfig/set",
		`{"taskId":"<t-4>","pushNotificationConfig":{"id":"p","url":"https://example.com/hook",`+
			`"authentication":{"schemes":["Bearer"],"credentials":"c"}}}`)
	s.rpc("get push", "ann", bot, "tasks/pushNotificationConfig/get", `{"id":"<t-4>","pushNotificationConfigId":"p"}`)
	s.rpc("list push", "ann", bot, "tasks/pushNotificationConfig/list", `{"id":"<t-4>"}`)
	s.rpc("delete push", "ann", bot, "tasks/pushNotificationConfig/delete",
		`{"id":"<t-4>","pushNotificationConfigId":"p"}`)
	s.rpc("get what was deleted", "ann", bot, "tasks/pushNotificationConfig/get",
		`{"id":"<t-4>","pushNotificationConfigId":"p"}`)
	s.rpc("push to a private address", "ann", bot, "tasks/pushNotificationConfig/set",
		`{"taskId":"<t-4>","pushNotificationConfig":{"url":"http://10.0.0.1/"}}`)
	s.rpc("cancel", "ann", bot, "tasks/cancel", `{"id":"<t-4>"}`)
	s.rpc("cancel again", "ann", bot, "tasks/cancel", `{"id":"<t-4>"}`)
	s.rpc("bad params", "ann", bot, "message/send",
		`{"message":{"kind":"message","messageId":7,"role":"x","parts":[{"kind":"nope"}]},`+
			`"configuration":{"blocking":"x"}}`)
	s.rpc("no task", "ann", bot, "tasks/get", `{"id":"none"}`, "A2A-Version: 0.3")
	s.rpc("a stream of nothing, for clients of events", "ann", bot, "message/stream", `{}`, "Accept: text/event-stream")
	s.rpc("the extended card", "ann", bot, "agent/getAuthenticatedExtendedCard", `{}`)
}

// binding covers HTTP+JSON of versions 1.0 and 0.3.
func binding(s *session) {
	s.cast()
	const bot = "binding-bot"
	const version = "A2A-Version: 1.0"
	at := "/a2a/echo/"
	s.do("send and wait", "ann", "POST "+at+"message:send", `{"message":`+say+`}`, version)
	s.do("a2a+json", "ann", "POST "+at+"message:send", `{"message":`+say+`}`, "Content-Type: application/a2a+json")
	s.stream("stream", "ann", "POST "+at+"message:stream", `{"message":`+say+`}`, 1, version).end()
	s.do("get", "ann", "GET "+at+"tasks/<t-1>?historyLength=1", "", version)
	s.do("list", "ann", "GET "+at+"tasks?pageSize=1&includeArtifacts=true", "", version)
	s.do("the next page", "ann", "GET "+at+"tasks?pageSize=1&pageToken=<cursor-1>", "")
	s.do("list by what there is not", "ann", "GET "+at+"tasks?pageSize=x&status=y", "")
	s.do("the card", "ann", "GET "+at+"extendedAgentCard", "", version)
	at = "/a2a/" + bot + "/"
	s.do("send at once", "ann", "POST "+at+"message:send",
		`{"message":`+say+`,"configuration":{"returnImmediately":true}}`)
	st := s.stream("subscribe", "ann", "GET "+at+"tasks/<t-4>:subscribe", "", 1)
	s.do("claim", "worker", "POST /api/v1/agents/binding-bot/claim", `{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	s.do("complete", "worker", "POST /api/v1/agents/binding-bot/leases/<lease-1>", `{"status":"completed"}`)
	st.end()
	s.stream("subscribe behind an event", "ann", "POST "+at+"tasks/<t-4>:subscribe", "", 1, "Last-Event-ID: 1").end()
	s.do("subscribe to what is over", "ann", "POST "+at+"tasks/<t-4>:subscribe", "")
	s.do("another task", "ann", "POST "+at+"message:send",
		`{"message":`+say+`,"configuration":{"returnImmediately":true}}`)
	s.do("set push", "ann", "POST "+at+"tasks/<t-5>/pushNotificationConfigs",
		`{"id":"p","url":"https://example.com/hook"}`)
	s.do("get push", "ann", "GET "+at+"tasks/<t-5>/pushNotificationConfigs/p", "")
	s.do("list push", "ann", "GET "+at+"tasks/<t-5>/pushNotificationConfigs", "")
	s.do("delete push", "ann", "DELETE "+at+"tasks/<t-5>/pushNotificationConfigs/p", "")
	s.do("cancel", "ann", "POST "+at+"tasks/<t-5>:cancel", `{}`)
	s.do("cancel again", "ann", "POST "+at+"tasks/<t-5>:cancel", "")
	s.do("no task", "ann", "GET "+at+"tasks/none", "")
	s.do("no such address", "ann", "GET "+at+"nope", "")
	s.do("another method", "ann", "GET "+at+"message:send", "")
	s.do("not JSON", "ann", "POST "+at+"message:send", `{`)
	s.do("an array", "ann", "POST "+at+"message:send", `[]`)
	s.do("bad params", "ann", "POST "+at+"message:send", `{"message":{"role":"x","parts":[{}]}}`)
	s.do("another media type", "ann", "POST "+at+"message:send", `{}`, "Content-Type: text/plain")
	s.do("another version", "ann", "GET "+at+"tasks", "", "A2A-Version: 9.0")
	s.do("no key", "", "GET "+at+"tasks", "")
	s.do("no scope", "reader", "GET "+at+"tasks", "")
	s.do("no agent", "ann", "GET /a2a/nobody/tasks", "")
	s.do("too large", "ann", "POST "+at+"message:send", `{"message":"<pad:4200000>"}`)

	const proto = `{"messageId":"m-1","role":"ROLE_USER","content":[{"text":"Hello."}]}`
	at = "/a2a/echo/v1/"
	s.do("0.3: send and wait", "ann", "POST "+at+"message:send", `{"message":`+proto+`,"configuration":{"blocking":true}}`)
	s.stream("0.3: stream", "ann", "POST "+at+"message:stream", `{"message":`+proto+`}`, 1).end()
	s.do("0.3: get", "ann", "GET "+at+"tasks/<t-6>", "")
	s.do("0.3: list", "ann", "GET "+at+"tasks?pageSize=1", "")
	s.do("0.3: the card", "ann", "GET "+at+"card", "")
	at = "/a2a/" + bot + "/v1/"
	s.do("0.3: send at once", "ann", "POST "+at+"message:send", `{"message":`+proto+`,"configuration":{"blocking":false}}`)
	s.do("0.3: set push", "ann", "POST "+at+"tasks/<t-8>/pushNotificationConfigs",
		`{"configId":"p","config":{"pushNotificationConfig":{"url":"https://example.com/hook"}}}`)
	s.do("0.3: get push", "ann", "GET "+at+"tasks/<t-8>/pushNotificationConfigs/p", "")
	s.do("0.3: list push", "ann", "GET "+at+"tasks/<t-8>/pushNotificationConfigs", "")
	s.do("0.3: delete push", "ann", "DELETE "+at+"tasks/<t-8>/pushNotificationConfigs/p", "")
	st = s.stream("0.3: subscribe", "ann", "GET "+at+"tasks/<t-8>:subscribe", "", 1)
	s.do("0.3: cancel", "ann", "POST "+at+"tasks/<t-8>:cancel", "")
	st.end()
	s.do("0.3: cancel again", "ann", "POST "+at+"tasks/<t-8>:cancel", "")
	s.do("0.3: no task", "ann", "GET "+at+"tasks/none", "")
	s.do("0.3: bad params", "ann", "POST "+at+"message:send", `{"message":{"content":[{}]}}`)
	s.do("0.3: no such address", "ann", "GET "+at+"extendedAgentCard", "")
	s.do("0.3: no key", "", "GET "+at+"tasks", "")
}
