package corpus

// clients covers OAuth clients of an org.
func clients(s *session) {
	s.cast()
	const at = "/api/v1/orgs/clients/clients"
	reports := `{"name":"Reports","redirect_uris":["https://reports.example/done"],"scopes":["svc:tasks:read"],` +
		`"method":"client_secret_basic"}`
	s.do("create", "root", "POST "+at, reports, "Idempotency-Key: c")
	s.do("again", "root", "POST "+at, reports, "Idempotency-Key: c")
	s.do("a public one", "root", "POST "+at,
		`{"name":"App","redirect_uris":["com.example.app:/done","http://127.0.0.1/done"]}`)
	s.do("nothing", "root", "POST "+at,
		`{"redirect_uris":["http://evil.example","x"],"scopes":["svc:a2a:serve","x"],"method":"y"}`)
	s.do("without the scope", "ann", "POST "+at, reports)
	s.do("list", "root", "GET "+at+"?limit=1", "")
	s.do("the next page", "root", "GET "+at+"?limit=1&cursor=<client-2>", "")
	s.do("bad parameters", "root", "GET "+at+"?limit=x&cursor=y", "")
	tag := s.do("get", "root", "GET "+at+"/<client-1>", "").header.Get("ETag")
	s.do("not changed since it was read", "root", "GET "+at+"/<client-1>", "", "If-None-Match: "+tag)
	s.do("not changed", "root", "GET "+at+"/<client-1>", "", "If-None-Match: *")
	s.do("get nothing", "root", "GET "+at+"/client-nope", "")
	s.do("change", "root", "PATCH "+at+"/<client-1>",
		`{"name":"All reports","scopes":["svc:tasks:read","svc:admin:admin"]}`,
		"If-Match: "+tag)
	s.do("change with an old tag", "root", "PATCH "+at+"/<client-1>", `{"name":"x"}`, "If-Match: "+tag)
	s.do("change nothing", "root", "PATCH "+at+"/<client-1>", `{}`)
	s.do("change the method", "root", "PATCH "+at+"/<client-1>", `{"method":"none"}`)
	s.do("rotate", "root", "POST "+at+"/<client-1>/rotate", `{"overlap_seconds":60}`, "Idempotency-Key: r")
	s.do("again", "root", "POST "+at+"/<client-1>/rotate", `{"overlap_seconds":60}`, "Idempotency-Key: r")
	s.do("rotate one without a secret", "root", "POST "+at+"/<client-2>/rotate", "")
	s.do("rotate nothing", "root", "POST "+at+"/client-nope/rotate", "")
	s.do("delete", "root", "DELETE "+at+"/<client-1>", "")
	s.do("delete again", "root", "DELETE "+at+"/<client-1>", "")
}
