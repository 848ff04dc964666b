package corpus

// followups covers follow-ups of proposals.
func followups(s *session) {
	s.cast()
	const org = "/api/v1/orgs/followups"
	s.do("a proposal", "ann", "POST "+org+"/proposals",
		`{"title":"Rotate keys","category":"security","problem":"Keys are old.","suggested_fix":"Rotate them."}`)
	s.do("its approval creates a follow-up", "root", "PATCH "+org+"/proposals/<prop-1>", `{"status":"approved"}`)
	s.do("list", "reader", "GET "+org+"/followups", "")
	s.do("get", "reader", "GET "+org+"/followups/<fup-1>", "")
	s.do("not changed", "reader", "GET "+org+"/followups/<fup-1>", "", "If-None-Match: *")
	s.do("create", "ann", "POST "+org+"/followups",
		`{"title":"By hand","description":"Two lines\nof text.","assignee":"user:ann"}`, "Idempotency-Key: f")
	s.do("again", "ann", "POST "+org+"/followups",
		`{"title":"By hand","description":"Two lines\nof text.","assignee":"user:ann"}`, "Idempotency-Key: f")
	s.do("the key with another body", "ann", "POST "+org+"/followups", `{"title":"Other"}`, "Idempotency-Key: f")
	s.do("create nothing", "ann", "POST "+org+"/followups", `{}`)
	s.do("an assignee who does not exist", "ann", "POST "+org+"/followups", `{"title":"x","assignee":"user:nobody"}`)
	s.do("a control character", "ann", "POST "+org+"/followups", `{"title":"a\u009bb"}`)
	s.do("without the scope", "reader", "POST "+org+"/followups", `{"title":"x"}`)
	s.do("filters", "reader", "GET "+org+"/followups?status=open&assignee=user:ann&limit=1", "")
	s.do("pages", "reader", "GET "+org+"/followups?limit=1&page=2", "")
	s.do("of a proposal", "reader", "GET "+org+"/followups?proposal_id=<prop-1>&assignee=none", "")
	s.do("bad parameters", "reader", "GET "+org+"/followups?status=x&assignee=y&page=0&cursor=1", "")
	s.do("change", "ann", "PATCH "+org+"/followups/<fup-2>", `{"status":"in_progress","assignee":""}`)
	tag := s.quiet("ann", "GET "+org+"/followups/<fup-2>", "").header.Get("ETag")
	s.do("change with the tag", "ann", "PATCH "+org+"/followups/<fup-2>", `{"description":"Shorter."}`, "If-Match: "+tag)
	s.do("not changed since it was read", "ann", "GET "+org+"/followups/<fup-2>", "", "If-None-Match: "+tag)
	s.do("change with an old tag", "ann", "PATCH "+org+"/followups/<fup-2>", `{"status":"done"}`, `If-Match: "v1-0"`)
	s.do("a way that there is not", "ann", "PATCH "+org+"/followups/<fup-2>", `{"status":"nope"}`)
	s.do("done", "ann", "PATCH "+org+"/followups/<fup-2>", `{"status":"done"}`)
	s.do("canceled after it is done", "ann", "PATCH "+org+"/followups/<fup-2>", `{"status":"canceled"}`)
	s.do("change nothing", "ann", "PATCH "+org+"/followups/<fup-2>", `{}`)
	s.do("assign to an agent", "root", "PATCH "+org+"/followups/<fup-1>", `{"assignee":"agent:followups-bot"}`)
	s.do("the agent's worker gets it", "worker", "POST /api/v1/agents/followups-bot/claim",
		`{"worker":"w","wait_seconds":5,"lease_seconds":600}`)
	s.do("and is done", "worker", "POST /api/v1/agents/followups-bot/leases/<lease-1>",
		`{"status":"completed","message":{"parts":[{"type":"text","text":"Rotated."}]}}`)
	eventually(s.T, "the follow-up is done", func() error {
		if r := s.quiet("root", "GET "+org+"/followups/<fup-1>", ""); r.member("status") != "done" {
			return errStill(r.body)
		}
		return nil
	})
	s.do("so the follow-up is done", "reader", "GET "+org+"/followups/<fup-1>", "")
	s.do("and the proposal can be resolved", "reader", "GET "+org+"/proposals/<prop-1>", "")
	s.do("not under the old name", "reader", "GET "+org+"/tasks", "")
	s.do("not found", "reader", "GET "+org+"/followups/fup-nope", "")
	s.do("change what does not exist", "ann", "PATCH "+org+"/followups/fup-nope", `{"status":"done"}`)
	s.do("in another org", "ann", "GET /api/v1/orgs/main/followups", "")
}
