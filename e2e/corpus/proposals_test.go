package corpus

// proposals covers submitting, listing, voting on and deciding proposals over REST.
func proposals(s *session) {
	s.cast()
	const at = "/api/v1/orgs/proposals/proposals"
	fix := `{"title":"Retry the upload","category":"reliability","problem":"Uploads fail at night.",` +
		`"suggested_fix":"Retry three times.","priority":"high"}`

	s.do("submit", "ann", "POST "+at, fix)
	first := s.do("get", "ann", "GET "+at+"/<prop-1>", "").header.Get("ETag")
	s.do("not changed since it was read", "ann", "GET "+at+"/<prop-1>", "", "If-None-Match: "+first)
	s.do("not changed since, of whatever tag", "ann", "GET "+at+"/<prop-1>", "", `If-None-Match: "v1-0", *`)
	s.do("the tag is another viewer's", "bot", "GET "+at+"/<prop-1>", "", `If-None-Match: "v1-0"`)
	s.do("submit a draft", "bot", "POST "+at,
		`{"title":"Document the limits","category":"documentation","problem":"Nobody knows them.",`+
			`"suggested_fix":"A page.","status":"draft"}`)
	s.do("submit with a key", "ann", "POST "+at,
		`{"title":"Cache the card","category":"performance","problem":"The card is slow.",`+
			`"suggested_fix":"Cache it."}`, "Idempotency-Key: once")
	s.do("again", "ann", "POST "+at,
		`{"title":"Cache the card","category":"performance","problem":"The card is slow.",`+
			`"suggested_fix":"Cache it."}`, "Idempotency-Key: once")
	s.do("the key with another body", "ann", "POST "+at, fix, "Idempotency-Key: once")
	s.do("a key of the wrong form", "ann", "POST "+at, fix, "Idempotency-Key: ö")
	s.do("everything is wrong", "ann", "POST "+at,
		`{"title":" ","category":"nope","suggested_fix":7,"priority":"huge","status":"approved","extra":1}`)
	s.do("a control character", "ann", "POST "+at,
		`{"title":"a\u0007b","category":"process","problem":"p","suggested_fix":"f"}`)
	s.do("a title of two lines", "ann", "POST "+at,
		`{"title":"a\nb","category":"process","problem":"p","suggested_fix":"f"}`)
	s.do("a title that turns around", "ann", "POST "+at,
		`{"title":"a\u202eb","category":"process","problem":"p","suggested_fix":"f"}`)
	s.do("a title that is too long", "ann", "POST "+at,
		`{"title":"<pad:201>","category":"process","problem":"p","suggested_fix":"f"}`)
	s.do("not JSON", "ann", "POST "+at, `{"title":`)
	s.do("a member twice", "ann", "POST "+at, `{"title":"a","title":"b"}`)
	s.do("an array", "ann", "POST "+at, `[]`)
	s.do("no body", "ann", "POST "+at, "", "Content-Type: application/json")
	s.do("another media type", "ann", "POST "+at, fix, "Content-Type: text/plain")
	s.do("a compressed body", "ann", "POST "+at, fix, "Content-Encoding: gzip")
	s.do("a body that is too large", "ann", "POST "+at, `{"title":"<pad:300000>"}`)
	s.do("without a key", "", "POST "+at, fix)
	s.do("without the scope", "reader", "POST "+at, fix)
	s.do("a service is no member", "partner", "POST "+at, fix)
	s.do("another org", "ann", "POST /api/v1/orgs/main/proposals", fix)

	s.do("list", "reader", "GET "+at, "")
	s.do("the first page", "reader", "GET "+at+"?status=all&sort=oldest&limit=1&include=excerpt", "")
	s.do("the second by its cursor", "reader", "GET "+at+"?status=all&sort=oldest&limit=1&cursor=<cursor-1>", "")
	s.do("the last by its number", "reader", "GET "+at+"?status=all&sort=oldest&limit=2&page=2", "")
	s.do("filters", "reader", "GET "+at+
		"?category=performance&submitted_by=user:ann&submitted_by_kind=user&priority=normal&evidence=no&sort=votes", "")
	s.do("search", "reader", "GET "+at+"?q=upload+nig", "")
	s.do("bad parameters", "reader", "GET "+at+"?status=x&category=y&limit=0&page=-1&sort=z&nope=1&q=a&q=b", "")
	s.do("page and cursor", "reader", "GET "+at+"?page=2&cursor=<cursor-1>", "")
	s.do("a cursor of something else", "reader", "GET "+at+"?cursor=abc", "")
	s.do("counts", "reader", "GET "+at+"/counts", "")
	s.do("counts of a filter that is wrong", "reader", "GET "+at+"/counts?priority=x", "")
	s.do("groups", "reader", "GET "+at+"/groups?by=submitter", "")
	s.do("groups by what there is not", "reader", "GET "+at+"/groups?by=x", "")
	s.do("similar to a text", "reader", "GET "+at+"/similar?title=Retry+the+upload&problem=uploads", "")
	s.do("similar to nothing", "reader", "GET "+at+"/similar", "")
	s.do("similar to a proposal", "reader", "GET "+at+"/<prop-1>/similar", "")
	s.do("similar to one that does not exist", "reader", "GET "+at+"/prop-nope/similar", "")
	s.do("no such proposal", "reader", "GET "+at+"/prop-00000000000000000000000000", "")
	s.do("an id of the wrong form", "reader", "GET "+at+"/nope", "")

	s.do("vote", "bot", "POST "+at+"/<prop-1>/vote", `{"vote":"for","comment":"Yes."}`)
	s.do("change the vote", "bot", "POST "+at+"/<prop-1>/vote", `{"vote":"against"}`)
	s.do("vote with a key", "root", "POST "+at+"/<prop-1>/vote", `{"vote":"for"}`, "Idempotency-Key: vote")
	s.do("again", "root", "POST "+at+"/<prop-1>/vote", `{"vote":"for"}`, "Idempotency-Key: vote")
	s.do("a vote for nothing", "bot", "POST "+at+"/<prop-1>/vote", `{"vote":"maybe","comment":1}`)
	s.do("a vote on a draft", "ann", "POST "+at+"/<prop-2>/vote", `{"vote":"for"}`)
	s.do("a service's vote", "partner", "POST "+at+"/<prop-1>/vote", `{"vote":"for"}`)
	s.do("a vote on nothing", "ann", "POST "+at+"/prop-nope/vote", `{"vote":"for"}`)
	s.do("votes", "reader", "GET "+at+"/<prop-1>/votes?limit=1", "")
	s.do("more votes", "reader", "GET "+at+"/<prop-1>/votes?limit=1&page=2", "")
	s.do("votes on nothing", "reader", "GET "+at+"/prop-nope/votes", "")
	s.do("withdraw", "bot", "DELETE "+at+"/<prop-1>/vote", "")
	s.do("withdraw what is not there", "bot", "DELETE "+at+"/<prop-1>/vote", "")

	s.do("edit", "ann", "PATCH "+at+"/<prop-1>", `{"title":"Retry each upload","priority":"normal","text_version":1}`)
	s.do("edit what has changed", "ann", "PATCH "+at+"/<prop-1>", `{"title":"Other","text_version":1}`)
	s.do("edit with an old tag", "ann", "PATCH "+at+"/<prop-1>", `{"title":"Other"}`, "If-Match: "+first)
	tag := s.quiet("ann", "GET "+at+"/<prop-1>", "").header.Get("ETag")
	s.do("edit with the tag", "ann", "PATCH "+at+"/<prop-1>", `{"category":"process"}`, "If-Match: "+tag)
	s.do("edit with a tag of the wrong form", "ann", "PATCH "+at+"/<prop-1>", `{"title":"Other"}`, `If-Match: x`)
	s.do("edit another's", "bot", "PATCH "+at+"/<prop-1>", `{"title":"Mine"}`)
	s.do("edit nothing", "ann", "PATCH "+at+"/<prop-1>", `{}`)
	s.do("edit and decide", "root", "PATCH "+at+"/<prop-1>", `{"title":"x","status":"approved"}`)
	s.do("a merge patch", "root", "PATCH "+at+"/<prop-1>", `{"title":"x"}`, "Content-Type: application/merge-patch+json")
	s.do("decide without the scope", "ann", "PATCH "+at+"/<prop-1>", `{"status":"approved"}`)
	s.do("a way that there is not", "root", "PATCH "+at+"/<prop-1>", `{"status":"resolved"}`)
	s.do("reject without a reason", "root", "PATCH "+at+"/<prop-1>", `{"status":"rejected"}`)
	s.do("reject as a duplicate", "root", "PATCH "+at+"/<prop-3>", `{"status":"rejected","duplicate_of":"<prop-1>"}`)
	s.do("vote on what is decided", "ann", "POST "+at+"/<prop-3>/vote", `{"vote":"for"}`)
	s.do("edit what is decided", "ann", "PATCH "+at+"/<prop-3>", `{"title":"x"}`)
	s.do("reopen", "root", "PATCH "+at+"/<prop-3>", `{"status":"open"}`)
	s.do("approve", "root", "PATCH "+at+"/<prop-1>",
		`{"status":"approved","resolution_note":"Good.","text_version":2}`, "Idempotency-Key: approve")
	s.do("again", "root", "PATCH "+at+"/<prop-1>",
		`{"status":"approved","resolution_note":"Good.","text_version":2}`, "Idempotency-Key: approve")
	s.do("resolve", "root", "PATCH "+at+"/<prop-1>", `{"status":"resolved"}`)
	s.do("open a draft", "root", "PATCH "+at+"/<prop-2>", `{"status":"open"}`)
	s.do("decide many", "root", "POST "+at+"/decisions",
		`{"status":"rejected","resolution_note":"Later.","items":[{"id":"<prop-2>","text_version":1},{"id":"<prop-3>",`+
			`"text_version":7},{"id":"prop-00000000000000000000000000","text_version":1}]}`,
		"Idempotency-Key: many")
	s.do("again", "root", "POST "+at+"/decisions",
		`{"status":"rejected","resolution_note":"Later.","items":[{"id":"<prop-2>","text_version":1},{"id":"<prop-3>",`+
			`"text_version":7},{"id":"prop-00000000000000000000000000","text_version":1}]}`,
		"Idempotency-Key: many")
	s.do("decide none", "root", "POST "+at+"/decisions", `{"status":"rejected","items":[]}`)
	s.do("decide without the scope", "ann", "POST "+at+"/decisions",
		`{"status":"approved","items":[{"id":"<prop-2>","text_version":1}]}`)
	s.do("history", "reader", "GET "+at+"/<prop-1>/history", "")
	s.do("a page of it", "reader", "GET "+at+"/<prop-1>/history?limit=1&page=2", "")
	s.do("history of nothing", "reader", "GET "+at+"/prop-nope/history", "")
}
