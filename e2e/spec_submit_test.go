package e2e

import "strings"

const record = `{"=":0,"id":"<prop>","title":"Retry failed uploads","category":"reliability","problem":"Uploads fail now and then.",
	"suggested_fix":"Try three times.","priority":"normal","status":"open","submitted_by":"user:ann","submitted_at":"<time>",
	"updated_at":"<time>","votes_for":0,"votes_against":0,
	"votes_by":{"people":{"for":0,"against":0},"agents":{"for":0,"against":0}},"resolution_note":"","duplicate_of":null,"my_vote":null,
	"allowed_transitions":["approved","rejected"],"followup_id":null,"followup_status":null,"resolvable":false,
	"fingerprint":null,"evidence_count":0,"text_version":1}`

var submitTable = table{"2.1, 2.2 and 4.2 submitting", []row{
	{
		rule: "4.2 answers id, status open, submitted_by, submitted_at and the whole record", as: "ann",
		call: "POST /proposals", body: good,
		status: 201, want: record, save: "p", header: []string{
			"Location: .*/api/v1/orgs/{org}/proposals/prop-.+", "Etag: .+",
			"Content-Type: application/json.*",
		},
	},
	{rule: "4.2 what was submitted can be read", as: "ann", call: "GET /proposals/{p}", status: 200, want: record},
	{
		rule: "2.1 submitted_by is the submitting agent", as: "bot", call: "POST /proposals", body: good, status: 201,
		want: `{"submitted_by":"agent:bot-{org}"}`,
	},
	{
		rule: "2.1 priority high", as: "ann", call: "POST /proposals", body: but(`priority:"high"`), status: 201,
		want: `{"priority":"high"}`,
	},
	{
		rule: "2.1 priority normal", as: "ann", call: "POST /proposals", body: but(`priority:"normal"`), status: 201,
		want: `{"priority":"normal"}`,
	},
	{
		rule: "2.1 priority low", as: "ann", call: "POST /proposals", body: but(`priority:"low"`), status: 201,
		want: `{"priority":"low"}`,
	},
	{
		rule: "2.1 another priority", as: "ann", call: "POST /proposals", body: but(`priority:"urgent"`), status: 422,
		want: complains("/priority"),
	},
	{
		rule: "2.2 reliability", as: "ann", call: "POST /proposals", body: but(`category:"reliability"`), status: 201,
		want: `{"category":"reliability"}`,
	},
	{
		rule: "2.2 performance", as: "ann", call: "POST /proposals", body: but(`category:"performance"`), status: 201,
		want: `{"category":"performance"}`,
	},
	{
		rule: "2.2 security", as: "ann", call: "POST /proposals", body: but(`category:"security"`), status: 201,
		want: `{"category":"security"}`,
	},
	{
		rule: "2.2 process", as: "ann", call: "POST /proposals", body: but(`category:"process"`), status: 201,
		want: `{"category":"process"}`,
	},
	{
		rule: "2.2 feature", as: "ann", call: "POST /proposals", body: but(`category:"feature"`), status: 201,
		want: `{"category":"feature"}`,
	},
	{
		rule: "2.2 documentation", as: "ann", call: "POST /proposals", body: but(`category:"documentation"`), status: 201,
		want: `{"category":"documentation"}`,
	},
	{
		rule: "2.2 another category", as: "ann", call: "POST /proposals", body: but(`category:"other"`), status: 422,
		want: complains("/category"),
	},
	{
		rule: "2.2 category is case-sensitive", as: "ann", call: "POST /proposals", body: but(`category:"Security"`),
		status: 422, want: complains("/category"),
	},
	{
		rule: "2.1 title is required", as: "ann", call: "POST /proposals", body: but("title"), status: 422,
		want: complains("/title"),
	},
	{
		rule: "2.1 category is required", as: "ann", call: "POST /proposals", body: but("category"), status: 422,
		want: complains("/category"),
	},
	{
		rule: "2.1 problem is required", as: "ann", call: "POST /proposals", body: but("problem"), status: 422,
		want: complains("/problem"),
	},
	{
		rule: "2.1 suggested_fix is required", as: "ann", call: "POST /proposals", body: but("suggested_fix"), status: 422,
		want: complains("/suggested_fix"),
	},
	{
		rule: "2.1 a blank title", as: "ann", call: "POST /proposals", body: but(`title:" \t "`), status: 422,
		want: complains("/title"),
	},
	{
		rule: "2.1 a title of two lines", as: "ann", call: "POST /proposals", body: but(`title:"a\nb"`), status: 422,
		want: complains("/title"),
	},
	{rule: "8 title of 200 characters", as: "ann", call: "POST /proposals", body: but("title:" + long(200)), status: 201},
	{
		rule: "8 title of 201", as: "ann", call: "POST /proposals", body: but("title:" + long(201)), status: 422,
		want: complains("/title"),
	},
	{rule: "8 problem of 20,000", as: "ann", call: "POST /proposals", body: but("problem:" + long(20_000)), status: 201},
	{
		rule: "8 problem of 20,001", as: "ann", call: "POST /proposals", body: but("problem:" + long(20_001)), status: 422,
		want: complains("/problem"),
	},
	{
		rule: "8 suggested_fix of 20,000", as: "ann", call: "POST /proposals", body: but("suggested_fix:" + long(20_000)),
		status: 201,
	},
	{
		rule: "8 suggested_fix of 20,001", as: "ann", call: "POST /proposals", body: but("suggested_fix:" + long(20_001)),
		status: 422, want: complains("/suggested_fix"),
	},
	{
		rule: "2.1 text comes back as it was sent", as: "ann", call: "POST /proposals",
		body: but(`problem:"<b>&\"'\\ \u2028 日本 🦜\n\t"`), status: 201,
		want: `{"problem":"<b>&\"'\\ \u2028 日本 🦜\n\t"}`,
	},
	{
		rule: "2.1 a NUL cannot be stored", as: "ann", call: "POST /proposals", body: but(`problem:"a\u0000b"`), status: 422,
		want: complains("/problem"),
	},
	{
		rule: "3.1 a draft", as: "ann", call: "POST /proposals", body: but(`status:"draft"`), status: 201,
		want: `{"status":"draft","allowed_transitions":["open"]}`,
	},
	{
		rule: "3.1 explicitly open", as: "ann", call: "POST /proposals", body: but(`status:"open"`), status: 201,
		want: `{"status":"open"}`,
	},
	{
		rule: "3.1 nothing is born approved", as: "ann", call: "POST /proposals", body: but(`status:"approved"`), status: 422,
		want: complains("/status"),
	},
	{
		rule: "2.1 the id is the service's", as: "ann", call: "POST /proposals", body: but(`id:"prop-1"`), status: 422,
		want: complains("/id"),
	},
	{
		rule: "2.1 submitted_by is the service's", as: "ann", call: "POST /proposals", body: but(`submitted_by:"user:root"`),
		status: 422, want: complains("/submitted_by"),
	},
	{
		rule: "2.1 submitted_at is the service's", as: "ann", call: "POST /proposals",
		body: but(`submitted_at:"2020-01-01T00:00:00Z"`), status: 422, want: complains("/submitted_at"),
	},
	{
		rule: "2.1 votes are the voters'", as: "ann", call: "POST /proposals", body: but(`votes_for:9`), status: 422,
		want: complains("/votes_for"),
	},
	{
		rule: "7 all broken fields are named at once", as: "ann", call: "POST /proposals",
		body: `{"title":"","category":"x","problem":"p","suggested_fix":"f"}`, status: 422,
		want:   `{"errors":[{"pointer":"/title"},{"pointer":"/category"}]}`,
		header: []string{`Content-Type: application/problem\+json`},
	},

	{
		rule: "4.2 Idempotency-Key, first", as: "ann", call: "POST /proposals", body: good,
		with: []string{"Idempotency-Key: k1"}, status: 201, save: "once",
	},
	{
		rule: "4.2 the same key and body answer the same", as: "ann", call: "POST /proposals", body: good,
		with: []string{"Idempotency-Key: k1"}, status: 201,
		want: `{"id":"{once}"}`, header: []string{"Idempotency-Replayed: true"},
	},
	{
		rule: "4.2 the same key with another body", as: "ann", call: "POST /proposals", body: but(`title:"Other"`),
		with: []string{"Idempotency-Key: k1"}, status: 422, want: `{"code":"idempotency.key_reused"}`,
	},
	{
		rule: "4.2 another's key of the same name is another key", as: "bot", call: "POST /proposals",
		body: but(`title:"Other"`), with: []string{"Idempotency-Key: k1"}, status: 201,
	},
	{
		rule: "4.2 a key that is too long", as: "ann", call: "POST /proposals", body: good,
		with: []string{"Idempotency-Key: " + strings.Repeat("k", 256)}, status: 422,
	},
}}

var malformedTable = table{"4 and 7 bodies that cannot be read", []row{
	{
		rule: "7 not JSON", as: "ann", call: "POST /proposals", body: `{"title":`, status: 400,
		want:   `{"type":"<string>","title":"<string>","status":400,"detail":"<string>","code":"request.malformed","request_id":"<string>"}`,
		header: []string{`Content-Type: application/problem\+json`},
	},
	{
		rule: "7 two values", as: "ann", call: "POST /proposals", body: good + good, status: 400,
		want: `{"code":"request.malformed"}`,
	},
	{rule: "7 an array", as: "ann", call: "POST /proposals", body: `[]`, status: 422},
	{rule: "7 null", as: "ann", call: "POST /proposals", body: `null`, status: 422},
	{
		rule: "7 duplicate keys", as: "ann", call: "POST /proposals", body: `{"title":"a","title":"b"}`, status: 400,
		want: `{"code":"request.malformed","errors":[{"pointer":"/title"}]}`,
	},
	{
		rule: "7 nested deeper than 32", as: "ann", call: "POST /proposals",
		body: but("x:" + strings.Repeat("[", 40) + strings.Repeat("]", 40)), status: 400,
		want: `{"code":"request.malformed"}`,
	},
	{
		rule: "7 a number for a string", as: "ann", call: "POST /proposals", body: but(`title:7`), status: 422,
		want: complains("/title"),
	},
	{
		rule: "7 null for a string", as: "ann", call: "POST /proposals", body: but(`title:null`), status: 422,
		want: complains("/title"),
	},
	{
		rule: "7 an object for a string", as: "ann", call: "POST /proposals", body: but(`problem:{}`), status: 422,
		want: complains("/problem"),
	},
	{
		rule: "7 an unknown member", as: "ann", call: "POST /proposals", body: but(`colour:"red"`), status: 422,
		want: complains("/colour"),
	},
	{rule: "7 names are case-sensitive", as: "ann", call: "POST /proposals", body: but("title", `Title:"a"`), status: 422},
	{
		rule: "7 no body", as: "ann", call: "POST /proposals", with: []string{"Content-Type: application/json"}, status: 400,
		want: `{"code":"request.malformed"}`,
	},
	{
		rule: "4 another content type", as: "ann", call: "POST /proposals", body: good,
		with: []string{"Content-Type: text/plain"}, status: 415, want: `{"code":"request.unsupported_media_type"}`,
	},
	{
		rule: "4 application/json with a charset", as: "ann", call: "POST /proposals", body: good,
		with: []string{"Content-Type: application/json; charset=utf-8"}, status: 201,
	},
	{
		rule: "8 a body over 256 KiB", as: "ann", call: "POST /proposals",
		body: but(`problem:"` + strings.Repeat("x", 256<<10) + `"`), status: 413, want: `{"code":"request.too_large"}`,
	},
	{
		rule: "7 nothing of all this was stored", as: "root", call: "GET /proposals?status=all", status: 200,
		want: `{"total":1}`,
	},
	{
		rule: "7 the caller's request id is kept", as: "ann", call: "GET /proposals/{none}",
		with: []string{"X-Request-Id: my-id.1"}, status: 404, want: `{"request_id":"my-id.1"}`,
		header: []string{"X-Request-Id: my-id.1"},
	},
	{
		rule: "7 a request id of other characters is not", as: "ann", call: "GET /proposals/{none}",
		with: []string{"X-Request-Id: a b"}, status: 404, absent: "a b",
	},
	{rule: "4 an unknown path", as: "ann", call: "GET /nothing", status: 404, want: `{"code":"resource.not_found"}`},
	{
		rule: "4 a method that is not there", as: "ann", call: "DELETE /proposals", status: 405,
		want: `{"code":"request.method_not_allowed"}`, header: []string{"Allow: .*GET.*"},
	},
	{rule: "9 paths carry v1", as: "ann", call: "GET ~/api/v2/orgs/{org}/proposals", status: 404},
}}
