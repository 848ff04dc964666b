package corpus

// workers covers the worker API, with all its errors.
func workers(s *session) {
	s.cast()
	const bot, claim = "workers-bot", "POST /api/v1/agents/workers-bot/claim"
	const lease = "/api/v1/agents/workers-bot/leases/"
	s.do("nothing to do", "worker", claim, `{"wait_seconds":0}`)
	for _, id := range []string{"a", "b", "c", "d"} {
		s.quiet("partner", "POST /a2a/"+bot, call("tasks/send", `{"id":"`+id+`","message":`+hello+`,"metadata":{"n":1}}`))
	}
	s.do("two tasks", "worker", claim, `{"worker":"w","max":2,"lease_seconds":600,"wait_seconds":5,"capacity":4}`)
	s.do("a heartbeat", "worker", "POST "+lease+"<lease-1>", `{"extend_seconds":600}`)
	s.do("progress", "worker", "POST "+lease+"<lease-1>",
		`{"status":"working","message":{"parts":[{"type":"text","text":"Half."}]}}`, "Idempotency-Key: p")
	s.do("again", "worker", "POST "+lease+"<lease-1>",
		`{"status":"working","message":{"parts":[{"type":"text","text":"Half."}]}}`, "Idempotency-Key: p")
	s.do("the key with another body", "worker", "POST "+lease+"<lease-1>", `{"status":"completed"}`, "Idempotency-Key: p")
	s.rpc("the sender has more to say", "partner", bot, "tasks/send",
		`{"id":"a","message":{"parts":[{"type":"text","text":"One more thing."}]}}`)
	s.do("the worker hears it", "worker", "POST "+lease+"<lease-1>", `{"extend_seconds":600,"seen":1}`)
	s.do("everything is wrong", "worker", "POST "+lease+"<lease-1>",
		`{"status":"submitted","extend_seconds":-1,"seen":-1,"artifacts":[{"parts":[]},{"parts":[{"type":"x"}]}],`+
			`"message":{"role":"user"},"reply":1,"nope":1}`)
	s.do("nothing", "worker", "POST "+lease+"<lease-1>", `{}`)
	s.do("not JSON", "worker", "POST "+lease+"<lease-1>", `{`)
	s.do("failed", "worker", "POST "+lease+"<lease-1>",
		`{"status":"failed","message":{"parts":[{"type":"text","text":"No."}]}}`)
	s.do("after the end", "worker", "POST "+lease+"<lease-1>", `{"status":"completed"}`)
	s.do("a heartbeat after the end", "worker", "POST "+lease+"<lease-1>", `{"extend_seconds":5}`)
	s.rpc("the sender cancels", "partner", bot, "tasks/cancel", `{"id":"b"}`)
	s.do("the worker hears it", "worker", "POST "+lease+"<lease-2>", `{"extend_seconds":5}`)
	s.do("and reports in vain", "worker", "POST "+lease+"<lease-2>", `{"status":"completed"}`)
	s.do("a third task", "worker", claim, `{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	s.do("hand it back", "worker", "DELETE "+lease+"<lease-3>", "")
	s.do("hand it back again", "worker", "DELETE "+lease+"<lease-3>", "")
	s.do("a report on what was handed back", "worker", "POST "+lease+"<lease-3>", `{"status":"completed"}`)
	s.do("claim it again", "worker", claim, `{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	s.do("needs to sign in", "worker", "POST "+lease+"<lease-4>", `{"status":"auth-required"}`)
	s.do("a fourth", "worker", claim, `{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	s.do("rejected", "worker", "POST "+lease+"<lease-5>", `{"status":"rejected"}`)
	s.do("a lease of the wrong form", "worker", "POST "+lease+"nope", `{"status":"completed"}`)
	s.do("hand back a lease of the wrong form", "worker", "DELETE "+lease+"nope", "")
	s.do("a claim of everything wrong", "worker", claim,
		`{"worker":"<pad:200>","max":101,"wait_seconds":61,"lease_seconds":0,"capacity":0,"ack":[7],"nope":1}`)
	s.do("a claim with a key", "worker", claim, `{}`, "Idempotency-Key: x")
	s.do("a claim of another media type", "worker", claim, `{}`, "Content-Type: text/plain")
	s.do("no key", "", claim, `{}`)
	s.do("no scope", "ann", claim, `{}`)
	s.do("another agent", "worker", "POST /api/v1/agents/echo/claim", `{}`)
	s.do("a report for another agent", "worker", "POST /api/v1/agents/echo/leases/<lease-1>", `{"status":"completed"}`)
	exchanges(s)
	s.do("tasks of the org", "root", "GET /api/v1/orgs/workers/a2a/tasks?limit=2", "")
	s.do("the next page", "root", "GET /api/v1/orgs/workers/a2a/tasks?limit=2&cursor=<id-3>", "")
	s.do("filters", "root", "GET /api/v1/orgs/workers/a2a/tasks?agent=workers-bot&state=failed", "")
	s.do("bad parameters", "root", "GET /api/v1/orgs/workers/a2a/tasks?state=x&limit=0&cursor=y", "")
	s.do("one", "root", "GET /api/v1/orgs/workers/a2a/tasks/<id-1>", "")
	s.do("none", "root", "GET /api/v1/orgs/workers/a2a/tasks/nope", "")
	s.do("without the scope", "ann", "GET /api/v1/orgs/workers/a2a/tasks", "")
	reruns(s)
}

// reruns covers tasks that are sent again, and policies.
func reruns(s *session) {
	const rerun = "POST /api/v1/agents/workers-bot/tasks/"
	s.do("a failed task again", "partner", rerun+"a/rerun", "", "Idempotency-Key: again")
	s.do("the same key", "partner", rerun+"a/rerun", "", "Idempotency-Key: again")
	s.do("a task that is not over", "partner", rerun+"a.2/rerun", "")
	s.do("a task of another sender", "ann", rerun+"a/rerun", "")
	s.do("an admin sends it again", "root", "POST /api/v1/orgs/workers/a2a/tasks/<id-1>/rerun", "")
	s.rpc("a policy that is wrong", "partner", "workers-bot", "tasks/send",
		`{"id":"p","message":`+hello+`,"metadata":{"parley.dev/policy":{"timeout_seconds":0,"retry":{"on":["x"]}}}}`)
	eventually(s.T, "the agent is available", func() error { // presences are cached for a moment
		if r := s.quiet("root", "GET /api/v1/orgs/workers/agents/workers-bot", ""); r.member("status") != "available" {
			return errStill(r.body)
		}
		return nil
	})
	s.do("the policy of an agent", "root", "PATCH /api/v1/orgs/workers/agents/workers-bot",
		`{"policy":{"timeout_seconds":600,"retry":{"max_attempts":2,"backoff_seconds":5,"on":["failed"]}}}`)
	s.do("a wrong policy of an agent", "root", "PATCH /api/v1/orgs/workers/agents/workers-bot",
		`{"policy":{"deadline":"2030-01-01T00:00:00Z"}}`)
	s.do("no policy any more", "root", "PATCH /api/v1/orgs/workers/agents/workers-bot", `{"policy":null}`)
}

// exchanges covers reports that travel together with claims.
func exchanges(s *session) {
	const work = "POST /api/v1/agents/workers-bot/work"
	s.do("nothing to exchange", "worker", work, `{}`)
	for _, id := range []string{"x", "y"} {
		s.quiet("partner", "POST /a2a/workers-bot", call("tasks/send", `{"id":"`+id+`","message":`+hello+`}`))
	}
	s.do("claim by an exchange", "worker", work, `{"claim":{"worker":"w","wait_seconds":5,"lease_seconds":600}}`)
	const reports = `{"reports":[{"lease":"<lease-6>","report":{"status":"completed"}},
		{"lease":"<lease-1>","report":{"status":"failed"}},{"lease":"<lease-6>","report":{"nope":1}},{"lease":7}],
		"claim":{"worker":"w","lease_seconds":600}}`
	s.do("report and claim", "worker", work, reports)
	s.do("the same reports", "worker", work, reports)
	s.do("an exchange of everything wrong", "worker", work, `{"reports":{},"claim":{"max":101},"nope":1}`)
	s.do("an exchange with a key", "worker", work, `{}`, "Idempotency-Key: x")
	s.do("an exchange for another agent", "worker", "POST /api/v1/agents/echo/work", `{}`)
}
