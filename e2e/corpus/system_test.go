package corpus

// system covers what needs no key: health, documents, and unknown paths.
func system(s *session) {
	s.cast()
	s.do("alive", "", "GET /healthz", "")
	s.do("ready", "", "GET /readyz", "")
	s.do("HEAD", "", "HEAD /readyz", "")
	s.do("the contract", "", "GET /openapi.json", "")
	s.do("the contract as YAML", "", "GET /openapi.yaml", "")
	s.do("the contract as a page", "", "GET /docs", "")
	s.do("the keys of signatures", "", "GET /.well-known/jwks.json", "")
	s.do("no such address", "", "GET /nope", "")
	s.do("no such address of the API", "ann", "GET /api/v1/nope", "")
	s.do("a slash too many", "ann", "GET /api/v1/orgs/system/proposals/", "")
	s.do("no such method", "ann", "PUT /api/v1/orgs/system/proposals", "{}")
	s.do("a method that health has not", "", "POST /healthz", "{}")
	s.do("no CORS unless it is turned on", "", "OPTIONS /api/v1/orgs/system/proposals", "", "Origin: https://app.example",
		"Access-Control-Request-Method: GET")
	s.do("the caller's own request id", "", "GET /api/v1/me", "", "X-Request-Id: mine-1")
	s.do("a request id that is not taken", "", "GET /api/v1/me", "", "X-Request-Id: not mine")
	s.do("a key of the wrong form", "", "GET /api/v1/me", "", "Authorization: Basic eDp5")
	s.do("a key that does not exist", "bad", "GET /api/v1/me", "")
	s.do("a public page", "", "GET /login", "")
	s.do("a page that needs a session", "", "GET /orgs/system/proposals", "")
}
