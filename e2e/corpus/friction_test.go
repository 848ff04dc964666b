package corpus

// friction covers reports until a proposal is filed, notes and settings.
func friction(s *session) {
	s.cast()
	const org = "/api/v1/orgs/friction"
	report := `{"fingerprint":"upload:timeout","title":"Uploads time out","category":"reliability",` +
		`"problem":"They take too long.","evidence":"job 1","occurrence":"1"}`
	s.do("settings", "reader", "GET "+org+"/settings/friction", "")
	s.do("set", "root", "PUT "+org+"/settings/friction", `{"threshold":2}`)
	s.do("set what is not possible", "root", "PUT "+org+"/settings/friction", `{"threshold":1}`)
	s.do("set without the scope", "ann", "PUT "+org+"/settings/friction", `{"threshold":2}`)
	s.do("report", "ann", "POST "+org+"/friction", report, "Idempotency-Key: r")
	s.do("again", "ann", "POST "+org+"/friction", report, "Idempotency-Key: r")
	s.do("the same occurrence counts once", "ann", "POST "+org+"/friction", report)
	s.do("the second files a proposal", "bot", "POST "+org+"/friction",
		`{"fingerprint":"upload:timeout","title":"Uploads time out","category":"reliability",`+
			`"problem":"Too long.","suggested_fix":"Wait.","evidence":"job 2","priority":"high"}`)
	s.do("the proposal", "reader", "GET "+org+"/proposals/<prop-1>", "")
	s.do("by its fingerprint", "reader", "GET "+org+"/proposals?fingerprint=upload:timeout&evidence=yes", "")
	s.do("groups by fingerprint", "reader", "GET "+org+"/proposals/groups?by=fingerprint", "")
	s.do("another report", "ann", "POST "+org+"/friction",
		`{"fingerprint":"b","title":"B","category":"process","problem":"b"}`)
	s.do("list", "reader", "GET "+org+"/friction?limit=1", "")
	s.do("the next page", "reader", "GET "+org+"/friction?limit=1&cursor=<cursor-1>", "")
	s.do("get", "reader", "GET "+org+"/friction/upload:timeout", "")
	s.do("get what there is not", "reader", "GET "+org+"/friction/nope", "")
	s.do("bad parameters", "reader", "GET "+org+"/friction?limit=1000&cursor=x", "")
	s.do("report nothing", "ann", "POST "+org+"/friction", `{"fingerprint":"A B","category":"x"}`)
	s.do("a service's report", "partner", "POST "+org+"/friction", report)
	s.do("without the scope", "reader", "POST "+org+"/friction", report)

	s.do("a note", "root", "POST "+org+"/notes",
		`{"title":"Not now","text":"We will look at it next quarter."}`, "Idempotency-Key: n")
	s.do("again", "root", "POST "+org+"/notes",
		`{"title":"Not now","text":"We will look at it next quarter."}`, "Idempotency-Key: n")
	s.do("a note of nothing", "root", "POST "+org+"/notes", `{"title":""}`)
	s.do("a note without the scope", "ann", "POST "+org+"/notes", `{"title":"a","text":"b"}`)
	s.do("notes", "root", "GET "+org+"/notes", "")
	s.do("delete", "root", "DELETE "+org+"/notes/<note-1>", "")
	s.do("delete again", "root", "DELETE "+org+"/notes/<note-1>", "")
}
