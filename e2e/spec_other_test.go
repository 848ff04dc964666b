package e2e

var otherTable = table{"4.5 reading and editing one proposal", []row{
	{rule: "4.2 submit", as: "ann", call: "POST /proposals", body: good, status: 201, save: "p"},
	{
		rule: "4.5 get has an ETag", as: "reader", call: "GET /proposals/{p}", status: 200,
		want: `{"id":"{p}","my_vote":null}`, header: []string{"Etag: .+"},
	},
	{
		rule: "4.5 unchanged since", as: "ann", call: "GET /proposals/{p}", with: []string{"If-None-Match: {p.etag}"},
		status: 304,
	},
	{
		rule: "4.5 an unknown id", as: "ann", call: "GET /proposals/{none}", status: 404,
		want: `{"=":0,"type":"<string>","title":"<string>","status":404,"detail":"<string>","code":"resource.not_found","request_id":"<string>"}`,
	},
	{
		rule: "4.5 an id of another shape", as: "ann", call: "GET /proposals/x", status: 404,
		want: `{"code":"resource.not_found"}`,
	},
	{
		rule: "4.5 edit by the submitter", as: "ann", call: "PATCH /proposals/{p}",
		body: `{"title":"Retry uploads","priority":"high"}`, with: []string{"If-Match: {p.etag}"}, status: 200,
		want:   `{"title":"Retry uploads","priority":"high","category":"reliability","status":"open"}`,
		header: []string{"Etag: .+"},
	},
	{
		rule: "4.5 a stale If-Match", as: "ann", call: "PATCH /proposals/{p}", body: `{"title":"Again"}`,
		with: []string{"If-Match: {p.etag}"}, status: 412, want: `{"code":"request.stale"}`,
	},
	{
		rule: "4.5 a stale If-Match on a status change", as: "root", call: "PATCH /proposals/{p}",
		body: `{"status":"approved"}`, with: []string{"If-Match: {p.etag}"}, status: 412,
	},
	{
		rule: "4.5 If-Match: *", as: "ann", call: "PATCH /proposals/{p}",
		body: `{"problem":"It fails.","suggested_fix":"Retry.","category":"process"}`, with: []string{"If-Match: *"},
		status: 200,
		want:   `{"problem":"It fails.","suggested_fix":"Retry.","category":"process"}`,
	},
	{
		rule: "4.5 the list and its order follow an edit", as: "ann",
		call: "GET /proposals?category=process&priority=high&q=fails", status: 200,
		want: `{"proposals":[{"id":"{p}","title":"Retry uploads"}],"total":1}`,
	},
	{
		rule: "4.5 and the old words find it no more", as: "ann", call: "GET /proposals?q=then", status: 200,
		want: `{"proposals":[],"total":0}`,
	},
	{
		rule: "4.5 and the old category counts it no more", as: "ann", call: "GET /proposals?category=reliability",
		status: 200, want: `{"proposals":[],"total":0}`,
	},
	{
		rule: "4.5 edit by another member", as: "bot", call: "PATCH /proposals/{p}", body: `{"title":"Mine"}`, status: 403,
		want: `{"code":"proposal.not_yours"}`,
	},
	{
		rule: "4.5 edit by an admin", as: "admin", call: "PATCH /proposals/{p}", body: `{"priority":"low"}`, status: 200,
		want: `{"priority":"low"}`,
	},
	{
		rule: "4.5 one PATCH does not mix the two", as: "root", call: "PATCH /proposals/{p}",
		body: `{"status":"approved","title":"x"}`, status: 422, want: `{"code":"request.invalid"}`,
	},
	{
		rule: "4.5 an empty PATCH", as: "root", call: "PATCH /proposals/{p}", body: `{}`, status: 422,
		want: `{"code":"request.invalid"}`,
	},
	{
		rule: "4.5 a note without a status", as: "root", call: "PATCH /proposals/{p}", body: `{"resolution_note":"x"}`,
		status: 422, want: `{"code":"request.invalid"}`,
	},
	{
		rule: "4.5 a blank title", as: "ann", call: "PATCH /proposals/{p}", body: `{"title":""}`, status: 422,
		want: complains("/title"),
	},
	{
		rule: "4.5 null leaves nothing out", as: "ann", call: "PATCH /proposals/{p}", body: `{"title":null}`, status: 422,
		want: complains("/title"),
	},
	{
		rule: "4.5 an unknown member", as: "ann", call: "PATCH /proposals/{p}", body: `{"votes_for":7}`, status: 422,
		want: complains("/votes_for"),
	},
	{
		rule: "4.5 the history has the edits with what was before", as: "reader", call: "GET /proposals/{p}/history?limit=2",
		status: 200,
		want: `{"history":[{"kind":"submitted","actor":"user:ann"},{"=":0,"seq":2,"at":"<time>","actor":"user:ann","kind":"edited",
			"changes":[{"=":0,"field":"title","from":"Retry failed uploads","to":"Retry uploads"},
			{"field":"priority","from":"normal","to":"high"}]}],"total":4,"page":1}`,
	},
	{rule: "4.3 vote", as: "bot", call: "POST /proposals/{p}/vote", body: `{"vote":"for","comment":"ok"}`, status: 200},
	{rule: "4.3 withdraw", as: "bot", call: "DELETE /proposals/{p}/vote", status: 200},
	{
		rule: "4.5 the history has votes", as: "reader", call: "GET /proposals/{p}/history?limit=4&page=2", status: 200,
		want: `{"history":[{"kind":"voted","actor":"agent:bot-{org}","vote":"for","comment":"ok"},
			{"kind":"vote_withdrawn","actor":"agent:bot-{org}"}],"total":6,"page":2}`,
	},
	{
		rule: "4.4 reject", as: "root", call: "PATCH /proposals/{p}", body: `{"status":"rejected","resolution_note":"no"}`,
		status: 200,
	},
	{
		rule: "4.5 what is decided is not edited", as: "ann", call: "PATCH /proposals/{p}", body: `{"title":"Late"}`,
		status: 409, want: `{"code":"proposal.not_editable"}`,
	},
	{
		rule: "4.5 deleting is not offered", as: "root", call: "DELETE /proposals/{p}", status: 405,
		header: []string{"Allow: .*GET.*"},
	},
}}

const task = `{"=":0,"id":"<followup>","title":"Write the runbook","description":"For the night shift.",
	"proposal_id":null,"text_hash":null,"status":"open","assignee":null,
	"a2a_task":null,"created_by":"user:ann","created_at":"<time>","updated_at":"<time>",
	"allowed_transitions":["in_progress","done","canceled"]}`

var taskTable = table{"3.1 and 6 follow-ups", []row{
	{
		rule: "6 none before the first approval", as: "ann", call: "GET /followups", status: 200,
		want: `{"=":0,"followups":[],"total":0,"page":1}`,
	},
	{
		rule: "6 made by hand", as: "ann", call: "POST /followups",
		body: `{"title":"Write the runbook","description":"For the night shift."}`, status: 201, want: task, save: "t",
		header: []string{"Location: .*/followups/fup-.+"},
	},
	{rule: "6 get", as: "reader", call: "GET /followups/{t}", status: 200, want: task, header: []string{"Etag: .+"}},
	{rule: "4.2 submit", as: "ann", call: "POST /proposals", body: good, status: 201, save: "p"},
	{
		rule: "3.1 approval creates one", as: "root", call: "PATCH /proposals/{p}", body: `{"status":"approved"}`,
		status: 200, want: `{"followup_id":"<followup>"}`,
	},
	{
		rule: "6 the list, newest first", as: "reader", call: "GET /followups", status: 200,
		want: `{"followups":[{"proposal_id":"{p}","title":"Retry failed uploads","created_by":"user:root"},{"id":"{t}"}],"total":2,"page":1}`,
	},
	{
		rule: "6 by proposal", as: "reader", call: "GET /followups?proposal_id={p}", status: 200,
		want: `{"followups":[{"proposal_id":"{p}"}],"total":1}`,
	},
	{
		rule: "6 assign to a user", as: "ann", call: "PATCH /followups/{t}",
		body: `{"assignee":"user:root","status":"in_progress"}`, status: 200,
		want: `{"assignee":"user:root","status":"in_progress","allowed_transitions":["open","done","canceled"]}`,
	},
	{
		rule: "6 by assignee", as: "reader", call: "GET /followups?assignee=user:root", status: 200,
		want: `{"followups":[{"id":"{t}"}],"total":1}`,
	},
	{
		rule: "6 without assignee", as: "reader", call: "GET /followups?assignee=none", status: 200,
		want: `{"followups":[{"proposal_id":"{p}"}],"total":1}`,
	},
	{
		rule: "6 by status", as: "reader", call: "GET /followups?status=in_progress", status: 200,
		want: `{"followups":[{"id":"{t}"}],"total":1}`,
	},
	{rule: "6 an unknown status", as: "reader", call: "GET /followups?status=late", status: 422, want: refuses("status")},
	{
		rule: "6 pages", as: "reader", call: "GET /followups?limit=1&page=2", status: 200,
		want: `{"followups":[{"id":"{t}"}],"total":2,"page":2}`,
	},
	{rule: "8 with the same maximum", as: "reader", call: "GET /followups?limit=101", status: 422, want: refuses("limit")},
	{
		rule: "6 an assignee that is no member", as: "ann", call: "PATCH /followups/{t}", body: `{"assignee":"user:nobody"}`,
		status: 422, want: complains("/assignee"),
	},
	{
		rule: "6 a service is no assignee", as: "ann", call: "PATCH /followups/{t}", body: `{"assignee":"service:partner"}`,
		status: 422, want: complains("/assignee"),
	},
	{
		rule: "5 assigning to an agent needs svc:a2a:write", as: "ann", call: "PATCH /followups/{t}",
		body: `{"assignee":"agent:bot-{org}"}`, status: 403, want: `{"code":"auth.scope_missing","scope":"svc:a2a:write"}`,
	},
	{
		rule: "6 unassign", as: "ann", call: "PATCH /followups/{t}", body: `{"assignee":""}`, status: 200,
		want: `{"assignee":null}`,
	},
	{
		rule: "6 done", as: "ann", call: "PATCH /followups/{t}", body: `{"status":"done"}`, status: 200,
		want: `{"status":"done","allowed_transitions":["open"]}`,
	},
	{
		rule: "6 what is done can only be opened again", as: "ann", call: "PATCH /followups/{t}",
		body: `{"status":"canceled"}`, status: 409, want: `{"code":"followup.transition_not_allowed","allowed":["open"]}`,
	},
	{
		rule: "6 an empty title", as: "ann", call: "POST /followups", body: `{"title":""}`, status: 422,
		want: complains("/title"),
	},
	{
		rule: "6 a title of 201", as: "ann", call: "POST /followups", body: `{"title":` + long(201) + `}`, status: 422,
		want: complains("/title"),
	},
	{
		rule: "6 proposal_id is the service's", as: "ann", call: "POST /followups", body: `{"title":"x","proposal_id":"{p}"}`,
		status: 422, want: complains("/proposal_id"),
	},
	{
		rule: "6 an unknown id", as: "ann", call: "GET /followups/{nofollowup}", status: 404,
		want: `{"code":"resource.not_found"}`,
	},
	{
		rule: "6 a stale If-Match", as: "ann", call: "PATCH /followups/{t}", body: `{"title":"x"}`,
		with: []string{"If-Match: {t.etag}"}, status: 412, want: `{"code":"request.stale"}`,
	},
	{
		rule: "6 Idempotency-Key, first", as: "ann", call: "POST /followups", body: `{"title":"Once"}`,
		with: []string{"Idempotency-Key: t1"}, status: 201, save: "once",
	},
	{
		rule: "6 a retry makes no second", as: "ann", call: "POST /followups", body: `{"title":"Once"}`,
		with: []string{"Idempotency-Key: t1"}, status: 201, want: `{"id":"{once}"}`,
		header: []string{"Idempotency-Replayed: true"},
	},
}}
