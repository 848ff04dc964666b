package corpus

// members covers creating, changing and inviting members, and the audit log.
func members(s *session) {
	s.cast()
	const org = "/api/v1/orgs/members"
	s.do("list", "root", "GET "+org+"/members?limit=3", "")
	s.do("the next page", "root", "GET "+org+"/members?limit=3&cursor=user:ann", "")
	s.do("filters", "root", "GET "+org+"/members?kind=user&state=enabled", "")
	s.do("bad parameters", "root", "GET "+org+"/members?kind=x&state=y&limit=z&cursor=q", "")
	s.do("create", "root", "POST "+org+"/members", `{"kind":"user","id":"bob","name":"Bob"}`, "Idempotency-Key: m")
	s.do("again", "root", "POST "+org+"/members", `{"kind":"user","id":"bob","name":"Bob"}`, "Idempotency-Key: m")
	s.do("who exists", "root", "POST "+org+"/members", `{"kind":"user","id":"bob"}`)
	s.do("nothing", "root", "POST "+org+"/members", `{"kind":"agent","id":"A B","name":"a\u200bb"}`)
	s.do("without the scope", "ann", "POST "+org+"/members", `{"kind":"user","id":"eve"}`)
	s.do("get", "root", "GET "+org+"/members/user:bob", "")
	s.do("nobody", "root", "GET "+org+"/members/user:nobody", "")
	s.do("a ref of the wrong form", "root", "GET "+org+"/members/bob", "")
	s.do("change", "root", "PATCH "+org+"/members/user:bob", `{"name":"Robert","admin":true}`)
	s.do("disable", "root", "PATCH "+org+"/members/user:bob", `{"disabled":true}`)
	s.do("a flag of the wrong type", "root", "PATCH "+org+"/members/user:bob", `{"admin":"x"}`)
	s.do("oneself", "root", "PATCH "+org+"/members/user:root", `{"disabled":true}`)
	s.do("the last admin", "root", "PATCH "+org+"/members/user:root", `{"admin":false}`)
	s.do("an agent is no admin", "root", "PATCH "+org+"/members/agent:members-bot", `{"admin":true}`)
	s.do("nothing to change", "root", "PATCH "+org+"/members/user:bob", `{}`)
	s.do("change nobody", "root", "PATCH "+org+"/members/user:nobody", `{"name":"x"}`)
	s.do("a link", "root", "POST "+org+"/members/user:ann/link", `{"expires_in_seconds":60}`, "Idempotency-Key: l")
	s.do("again", "root", "POST "+org+"/members/user:ann/link", `{"expires_in_seconds":60}`, "Idempotency-Key: l")
	s.do("a link for an agent", "root", "POST "+org+"/members/agent:members-bot/link", "")
	s.do("a link for the disabled", "root", "POST "+org+"/members/user:bob/link", "")
	s.do("a link for nobody", "root", "POST "+org+"/members/user:nobody/link", "")
	s.do("a link for too long", "root", "POST "+org+"/members/user:ann/link", `{"expires_in_seconds":6048000}`)
	s.do("enable", "root", "PATCH "+org+"/members/user:bob", `{"disabled":false}`, "Idempotency-Key: e")

	s.do("invite", "root", "POST "+org+"/invitations",
		`{"user":"cleo","name":"Cleo","admin":true,"expires_in_seconds":3600}`, "Idempotency-Key: i")
	s.do("again", "root", "POST "+org+"/invitations",
		`{"user":"cleo","name":"Cleo","admin":true,"expires_in_seconds":3600}`, "Idempotency-Key: i")
	s.do("invite who exists", "root", "POST "+org+"/invitations", `{"user":"ann"}`)
	s.do("invite nobody", "root", "POST "+org+"/invitations", `{"user":"A B","expires_in_seconds":1}`)
	s.do("another", "root", "POST "+org+"/invitations", `{"user":"dan"}`)
	s.do("invitations", "root", "GET "+org+"/invitations?limit=1", "")
	s.do("the next page", "root", "GET "+org+"/invitations?limit=1&cursor=<inv-2>", "")
	s.do("revoke", "root", "DELETE "+org+"/invitations/<inv-1>", "")
	s.do("revoke again", "root", "DELETE "+org+"/invitations/<inv-1>", "")
	s.do("revoke nothing", "root", "DELETE "+org+"/invitations/inv-nope", "")

	s.do("the audit log", "root", "GET "+org+"/audit?actor=user:root", "")
	s.do("a page", "root", "GET "+org+"/audit?action=member.update&limit=1", "")
	s.do("the next page", "root", "GET "+org+"/audit?action=member.update&limit=1&cursor=<cursor-1>", "")
	s.do("of a time", "root", "GET "+org+"/audit?from=2001-01-01T00:00:00Z&to=2001-01-02T00:00:00Z", "")
	s.do("bad parameters", "root", "GET "+org+"/audit?actor=x&action=y&from=z&to=1&limit=0", "")
	s.do("without the scope", "ann", "GET "+org+"/audit", "")
}
