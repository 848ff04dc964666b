package corpus

// proposals are submitted, listed, voted on and decided over REST.
func proposals(s *session) {
	s.cast()
	const at = "/api/v1/orgs/proposals/proposals"
	fix := `{"title":"Retry the upload","category":"reliability","problem":"Uploads fail at night.","suggested_fix":"Retry three times.","priority":"high"}`

	s.do("submit", "ann", "POST "+at, fix)
	s.do("get", "ann", "GET "+at+"/<prop-1>", "")
	s.do("not changed since", "ann", "GET "+at+"/<prop-1>", "", `If-None-Match: "<etag-1>"`)
}
