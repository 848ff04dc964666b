package corpus

// keys covers creating, listing, rotating and revoking keys: by admins for others, and by
// principals for themselves.
func keys(s *session) {
	s.cast()
	const at = "/api/v1/orgs/keys/keys"
	s.do("create", "root", "POST "+at,
		`{"principal":"service:partner","scopes":["svc:tasks:read"],"name":"CRM",`+
			`"expires_at":"2099-01-01T00:00:00Z"}`, "Idempotency-Key: k")
	s.do("again", "root", "POST "+at,
		`{"principal":"service:partner","scopes":["svc:tasks:read"],"name":"CRM",`+
			`"expires_at":"2099-01-01T00:00:00Z"}`, "Idempotency-Key: k")
	s.do("the key with another body", "root", "POST "+at,
		`{"principal":"service:partner","scopes":["svc:tasks:read"]}`, "Idempotency-Key: k")
	s.do("for another user", "root", "POST "+at, `{"principal":"user:ann","scopes":["svc:tasks:read"]}`)
	s.do("nothing", "root", "POST "+at, `{}`)
	s.do("unknown scopes", "root", "POST "+at,
		`{"principal":"service:partner","scopes":["tasks:read","agent:nobody","agent:*"],`+
			`"expires_at":"2001-01-01T00:00:00Z"}`)
	s.do("for nobody", "root", "POST "+at, `{"principal":"service:nobody","scopes":["svc:tasks:read"]}`)
	s.do("without the scope", "ann", "POST "+at, `{"principal":"user:ann","scopes":["svc:tasks:read"]}`)
	s.do("get", "root", "GET "+at+"/<key-1>", "")
	s.do("no such key", "root", "GET "+at+"/key-nope", "")
	s.do("list", "root", "GET "+at+"?principal=service:partner&limit=1", "")
	s.do("the next page", "root", "GET "+at+"?principal=service:partner&limit=1&cursor=<key-1>", "")
	s.do("filters", "root", "GET "+at+"?state=live&ends_within=30&scope=svc:tasks:read", "")
	s.do("bad parameters", "root", "GET "+at+"?state=x&principal=y&ends_within=-1&never_used=z&scope=q&limit=0", "")
	s.do("rotate", "root", "POST "+at+"/<key-1>/rotate", `{"overlap_seconds":60}`, "Idempotency-Key: rot")
	s.do("again", "root", "POST "+at+"/<key-1>/rotate", `{"overlap_seconds":60}`, "Idempotency-Key: rot")
	s.do("rotate what was rotated", "root", "POST "+at+"/<key-1>/rotate", "")
	s.do("rotate for too long", "root", "POST "+at+"/<key-1>/rotate", `{"overlap_seconds":6048000}`)
	s.do("rotate nothing", "root", "POST "+at+"/key-nope/rotate", "")
	s.do("revoke", "root", "DELETE "+at+"/<key-1>", "")
	s.do("revoke again", "root", "DELETE "+at+"/<key-1>", "")
	s.do("rotate what is revoked", "root", "POST "+at+"/<key-1>/rotate", "")
	s.do("revoke nothing", "root", "DELETE "+at+"/key-nope", "")

	const own = "/api/v1/me/keys"
	s.do("an own key", "ann", "POST "+own, `{"scopes":["svc:tasks:read"],"name":"mine"}`, "Idempotency-Key: own")
	s.do("again", "ann", "POST "+own, `{"scopes":["svc:tasks:read"],"name":"mine"}`, "Idempotency-Key: own")
	s.do("again with other credentials", "root", "POST "+own,
		`{"scopes":["svc:tasks:read"],"name":"mine"}`, "Idempotency-Key: own")
	s.do("more than one has", "ann", "POST "+own, `{"scopes":["svc:admin:admin"]}`)
	s.do("no scopes", "ann", "POST "+own, `{"scopes":[]}`)
	s.do("own keys", "ann", "GET "+own+"?limit=1", "")
	s.do("more of them", "ann", "GET "+own+"?limit=1&cursor=<key-4>", "")
	s.do("bad parameters", "ann", "GET "+own+"?state=x&principal=y", "")
	s.do("one", "ann", "GET "+own+"/<key-4>", "")
	s.do("another's", "ann", "GET "+own+"/<key-1>", "")
	s.do("rotate it", "ann", "POST "+own+"/<key-4>/rotate", "", "Idempotency-Key: ownrot")
	s.do("rotate another's", "ann", "POST "+own+"/<key-1>/rotate", "")
	s.do("revoke it", "ann", "DELETE "+own+"/<key-4>", "")
	s.do("who am I", "ann", "GET /api/v1/me", "")
	s.do("an agent", "worker", "GET /api/v1/me", "")
	s.do("revoke another's", "ann", "DELETE "+own+"/<key-1>", "")
}
